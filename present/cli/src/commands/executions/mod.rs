//! `tracebraid executions`: databases of executions.

mod build;
mod export;
mod info;
mod info_data;
mod list;
mod renames;
mod show;

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use tracebraid_executions::database::{Database, DatabaseError, ExecutionKind, Table};
use tracebraid_executions::{chosen, group};

use crate::failure::Failure;

pub(super) use list::{amount, title};

/// Build and query databases of executions (requests, jobs)
///
/// An execution begins and ends at event records that conditions choose, as periods do; or it is a
/// system call, a function, a span, or the life of a process. `build` follows its critical path
/// across threads, and writes one SQLite file: for each execution the time in each calling context
/// (functions, system calls, wait reasons, threads that it waited for), metrics, and captured
/// values. `tracebraid compare` explains what makes slow executions slow; `tracebraid view` shows
/// that in the browser.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid executions build TRACE -o requests.db \\
      --period 'request : srv:begin : srv:end && id == $begin.id' \\
      --captures 'request : id = id'
  tracebraid executions info requests.db
  tracebraid executions list requests.db --where 'duration > 50ms' --top 10
  tracebraid executions show requests.db 17
  tracebraid executions export requests.db \\
      | flamegraph.pl --countname ns > all.svg
  tracebraid sql requests.db 'SELECT avg(duration_ns) / 1e6 FROM executions'
  tracebraid compare requests.db --a 'duration < 20ms' --b 'duration > 50ms'
  tracebraid view requests.db")]
pub(crate) struct ExecutionsArgs {
    #[command(subcommand)]
    command: ExecutionsCommand,
}

#[derive(Subcommand, Debug)]
enum ExecutionsCommand {
    Build(Box<build::BuildArgs>),
    Info(info::InfoArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Export(export::ExportArgs),
    /// Now `tracebraid sql`
    #[command(hide = true)]
    Sql(super::SqlArgs),
}

pub(super) fn run(args: &ExecutionsArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        ExecutionsCommand::Build(args) => build::run(args),
        ExecutionsCommand::Info(args) => info::run(args),
        ExecutionsCommand::List(args) => list::run(args),
        ExecutionsCommand::Show(args) => show::run(args),
        ExecutionsCommand::Export(args) => export::run(args),
        ExecutionsCommand::Sql(args) => super::sql::run(args),
    }
}

/// Opens a database.
///
/// # Errors
/// When it cannot be read.
pub(super) fn open(path: &Path) -> Result<Database, Failure> {
    Database::open(path).map_err(|error| unreadable(&error))
}

/// Failure for a database that cannot be read.
pub(super) fn unreadable(error: &DatabaseError) -> Failure {
    Failure::nothing_readable(error.to_string())
}

/// The executions of a kind.
///
/// # Errors
/// When the executions cannot be read, or the kind does not exist or has none.
pub(super) fn table<'d>(
    database: &'d Database,
    kind: Option<&str>,
) -> Result<(&'d ExecutionKind, Table), Failure> {
    let kind = kind_with_executions(database, kind)?;
    let table = database.table(kind).map_err(|error| unreadable(&error))?;
    match table.is_empty() {
        true => Err(nothing_of(database, kind)),
        false => Ok((kind, table)),
    }
}

/// The kind with this name, or the only kind. It has at least one execution.
///
/// # Errors
/// When the kind does not exist or has no executions.
pub(super) fn kind_with_executions<'d>(
    database: &'d Database,
    kind: Option<&str>,
) -> Result<&'d ExecutionKind, Failure> {
    let kind = database.kind(kind).map_err(|error| {
        Failure::usage(format!("{}: {error} (--kind)", database.path().display()))
    })?;
    match kind.executions {
        0 => Err(nothing_of(database, kind)),
        _ => Ok(kind),
    }
}

fn nothing_of(database: &Database, kind: &ExecutionKind) -> Failure {
    let name = &kind.name;
    Failure::nothing_readable(format!(
        "{}: contains no executions of kind {name}",
        database.path().display()
    ))
}

/// Indices of the executions that satisfy a condition; all without one.
///
/// # Errors
/// When the condition is wrong.
pub(super) fn rows(
    option: &str,
    condition: Option<&str>,
    database: &Database,
    table: &Table,
) -> Result<Vec<usize>, Failure> {
    let Some(condition) = condition else {
        return Ok((0..table.len()).collect());
    };
    let chosen = chosen(condition, database, table);
    chosen
        .map(|chosen| group(&chosen))
        .map_err(|error| Failure::usage(format!("{option}: {error}")))
}
