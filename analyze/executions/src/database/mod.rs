//! Executions in one file: an SQLite database that can be copied, mailed, appended to and queried
//! in SQL.
//!
//! `writer` numbers the names, contexts and threads of executions, and hands out batches of
//! executions for encoding (`encode`). The pages of a new database are laid out batch by batch and
//! written in parallel (`paged`, `pages`). When a database is appended to, SQLite adds the rows in
//! a thread of its own (`store`). Both add columns as rows need them. `reader` reads rows into
//! tables by column (`column_builder`), with functions renamed (`renames`). `lists` reads the small
//! tables without trusting their contents.
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
