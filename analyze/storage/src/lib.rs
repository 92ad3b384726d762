//! Files that analyses keep: replaced only as a whole ([`aside`]), with integers of variable length
//! in them ([`varint`]).
//!
//! In: bytes and numbers. Out: files. Promise: a file that was not completed leaves the old one in
//! its place; no bytes make the decoder panic.
//!
//! The crate exists because histories, databases of executions and cached symbol tables have two
//! problems in common. Building a file may take minutes, and may be interrupted or fill the disk:
//! the new file is therefore written beside the old one and renamed, so that readers see one or the
//! other. And most numbers in these files are small (differences of times, indices): with a
//! variable length they take a fraction of eight bytes, which saves time as well as space. The
//! crate does not depend on the content of the files.
#![forbid(unsafe_code)]

pub mod aside;
pub mod varint;
