//! Tests of the whole crate, in one program, since each program takes a second to link.

mod coverage;
mod damage;
mod generated;
mod grow;
mod skip;
