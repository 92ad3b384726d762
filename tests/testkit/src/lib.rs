//! Test tools: a reference reader, a random trace generator, damage to traces on purpose, a tool
//! that makes real traces longer, recorded traces (whole or with CPUs left out), and waiting for
//! processes.
//!
//! In: a seed, or a trace directory. Out: trace directories whose content is known, and that
//! content as values. Nothing here is fast or meant for users' traces; it is written to be
//! obviously right, because the reader is tested against it.
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
