//! Traces of real programs: readers find exactly the fired events, even after crashes.
#![allow(unsafe_code, missing_docs, unreachable_pub)]

mod crashes;
mod forks;
mod loading;
mod modes;
mod rust;
mod signals;
mod support;
mod switching;
mod users;
mod values;
