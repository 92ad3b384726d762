//! Executions in one file: an SQLite database that can be copied, mailed, appended to and queried
//! in SQL.
//!
//! `writer` encodes each execution, in flat batches that are used again; `store` inserts them in a
//! thread of its own, and adds columns as rows need them. `reader` makes tables of columns of them,
//! with functions renamed. `lists` reads the small tables, and trusts nothing in them.
//!
//! `docs/executions-database.md` documents the schema.

mod about;
mod blobs;
mod error;
mod lists;
mod otherwise;
mod pages;
mod reader;
mod schema;
mod store;
mod table;
mod writer;

pub use about::{About, KindAbout, SourceAbout, delimits_alike, trace_path};
pub use error::DatabaseError;
pub use reader::{Database, Kind, PathStep, Recorded, Source, Thread};
pub use schema::{APPLICATION, VERSION};
pub use table::{Column, Figures, Rows, Table, Texts};
pub use writer::Writer;
