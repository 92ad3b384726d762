//! The web page of executions: served on this machine, or written as one file that needs no server.
//!
//! In: a database of executions. Out: HTTP answers on a socket (`docs/view-formats.md` has the addresses), or a page with all data in it.
//! Promise: nothing is answered to who does not have the token, nor to pages of other origins; the database is only read; memory does not grow
//! with the number of executions, nor with that of connections.
#![forbid(unsafe_code)]

mod connections;
mod export;
mod hosts;
mod pack;
mod page;
mod path;
mod serve;
mod sources;
mod spool;
mod stream;

pub use export::{Export, ExportError, export};
pub use page::is_built;
pub use serve::{Options, serve};

/// What cannot be answered, for people.
pub type Refusal = String;
