//! Test tools: a reference reader, a random trace generator, deliberate damage to traces, a tool
//! that lengthens recorded traces, recorded traces (complete or without some CPUs), and waiting for
//! processes.
//!
//! In: a seed, or a trace directory. Out: trace directories with known content, and that content as
//! values. The tools are neither fast nor intended for users' traces; they are written to be
//! obviously correct, because the reader is tested against them.
#![forbid(unsafe_code)]

pub mod bare;
pub mod bits;
pub mod compare;
pub mod damage;
pub mod directory;
pub mod generate;
pub mod grow;
pub mod index;
pub mod layouts;
pub mod metadata;
pub mod partial;
pub mod processes;
pub mod recorded;
pub mod reference;
pub mod rewrite;
pub mod rng;
pub mod skip;
pub mod value;
pub mod write;
pub mod wrong_index;
