//! The web page of executions: served on this machine, or written as one file that needs no server.
//!
//! In: a database of executions. Out: HTTP answers on a socket (`docs/view.md` has the addresses), or a page with all data in it.
//! Promise: nothing is answered to who does not have the token, nor to pages of other origins; the database is only read.
#![forbid(unsafe_code)]

mod export;
mod pack;
mod page;
mod path;
mod serve;

pub use export::{Export, export};
pub use page::is_built;
pub use serve::{Served, serve};

/// What cannot be answered, for people.
pub type Refusal = String;
