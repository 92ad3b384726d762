//! Files that analyses keep: replaced only as a whole ([`aside`]), with integers of variable length
//! in them ([`varint`]).
//!
//! In: bytes and numbers. Out: files. Promise: a file that was not completed leaves the old one in
//! its place; no bytes make the decoder panic.
#![forbid(unsafe_code)]

pub mod aside;
pub mod varint;
