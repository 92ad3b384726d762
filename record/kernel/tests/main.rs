//! Tests of the whole crate: what it records, what it calls that, and programs that are damaged.

mod damaged_programs;
mod layout;
mod stacks;
