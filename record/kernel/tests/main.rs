//! Tests of the whole crate: layouts of events, call stacks, and damaged programs.

mod damaged_programs;
mod layout;
mod stacks;
