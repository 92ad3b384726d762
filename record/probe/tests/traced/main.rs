//! Real programs, traced: what they fired is what readers find, whatever happened to them.
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
