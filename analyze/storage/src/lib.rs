//! Storage of files that analyses keep: atomic replacement ([`aside`]) and integers of variable
//! length ([`varint`]).
//!
//! In: bytes and numbers. Out: files. Promise: an incomplete file never replaces the old one; no
//! input makes the decoder panic.
//!
//! The crate exists because histories, databases of executions and cached symbol tables share two
//! problems. Building a file may take minutes, and may be interrupted or fill the disk; so the new
//! file is written under a temporary name and then renamed, and readers see either the old or the
//! new file. And most numbers in these files are small (differences of times, indices); with a
//! variable length, they take a fraction of eight bytes, which saves time as well as space. The
//! crate does not depend on the content of the files.
#![forbid(unsafe_code)]

pub mod aside;
pub mod varint;
