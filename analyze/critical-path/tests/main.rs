//! The graph and its paths: against recordings whose causes are known, and against what must always hold.

mod hosts;
mod random;
mod support;
mod truth;
