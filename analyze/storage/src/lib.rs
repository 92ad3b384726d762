//! How the files that analyses keep are stored: replaced only as a whole ([`aside`]), with numbers of variable length in them
//! ([`varint`]).
#![forbid(unsafe_code)]

pub mod aside;
pub mod varint;
