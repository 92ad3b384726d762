//! The web page of executions: served on this machine, or written as one file that needs no server.
//!
//! In: a database of executions. Out: HTTP answers on a socket (`docs/reference/view-formats.md`
//! has the addresses), or a page that contains all data. Promise: requests without the token, or
//! from pages of other origins, get no data; the database is only read; memory grows neither with
//! the number of executions nor with that of connections.
//!
//! One pass over the rows of a database writes the columns of some thousand executions at a time to
//! a temporary file (`spool`); packs and pages are written from it column by column (`pack`,
//! `export`). `connections` limits the number and the idle time of connections; `hosts` holds the
//! names under which the server answers.
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

pub use export::{Export, ExportError, Watch, export};
pub use page::is_built;
pub use serve::{Options, serve};

/// Message for the user about a request that cannot be answered.
pub type Refusal = String;
