//! Files that analyses keep: replaced only as a whole ([`aside`]), with integers of variable length
//! in them ([`varint`]).
//!
//! In: bytes and numbers. Out: files. Promise: a file that was not completed leaves the old one in
//! its place; no bytes make the decoder panic.
//!
//! It exists because histories, databases of executions and kept symbol tables meet the same two
//! difficulties. Building one may take minutes, and may be interrupted or fill the disk: so a
//! file is written beside the old one and renamed, and a reader sees either the old file or the new
//! one. And most of their numbers are small (differences of times, indices): as integers of
//! variable length they take a fraction of their eight bytes, which saves time as well as space,
//! because such files are read more often than computed with. The crate knows nothing of their content.
#![forbid(unsafe_code)]

pub mod aside;
pub mod varint;
