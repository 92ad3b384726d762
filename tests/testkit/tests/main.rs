//! Tests of the whole crate, in one program: each program takes a second to link.

mod coverage;
mod damage;
mod generated;
mod grow;
mod skip;
