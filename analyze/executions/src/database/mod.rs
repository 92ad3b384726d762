//! Executions in one file: an SQLite database that can be copied, mailed, appended to and asked in SQL.
//!
//! `docs/executions-database.md` documents the schema.

mod blobs;
mod error;
mod reader;
mod schema;
mod table;
mod writer;

pub use error::DatabaseError;
pub use reader::{Database, Kind, PathStep, Recorded, Source, Thread};
pub(crate) use schema::value_column;
pub use schema::{APPLICATION, VERSION};
pub use table::{Column, Figures, Rows, Table, Texts};
pub use writer::{About, KindAbout, SourceAbout, Writer};
