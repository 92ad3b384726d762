//! Executions in one file: an SQLite database that can be copied, mailed, appended to and queried
//! in SQL.
//!
//! `writer` numbers what executions refer to and gives batches of them away to be encoded
//! (`encode`). Of a new database the pages are laid out one batch after the other and written in
//! parallel (`paged`, `pages`); when a database is appended to, SQLite adds rows in a thread of its
//! own (`store`). Both add columns as rows need them. `reader` reads rows into tables by column
//! (`column_builder`), with functions renamed (`renames`). `lists` reads the small tables, and
//! trusts nothing in them.
//!
//! `docs/reference/executions-database.md` documents the schema.

mod about;
mod blobs;
mod column_builder;
mod encode;
mod error;
mod lists;
mod otherwise;
mod paged;
mod pages;
mod reader;
mod recorded_execution;
mod renames;
mod row;
mod schema;
mod show_command;
mod sqlite_record;
mod store;
mod table;
mod writer;

pub use about::{About, KindAbout, SourceAbout, delimits_alike, trace_path};
pub use error::DatabaseError;
pub use lists::{ExecutionKind, Source, Thread};
pub use reader::Database;
pub use recorded_execution::{PathStep, Recorded};
pub use schema::{APPLICATION, VERSION};
pub use table::{Column, Figures, Rows, Table, Texts};
pub use writer::Writer;
