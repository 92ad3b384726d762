//! `tracebraid view`: executions in a web page.

use std::fmt::Write as _;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use tracebraid_server::{Export, Served, export, is_built, serve};

use crate::commands::executions::{open, table};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::spare;

/// Shows executions in a web page: two groups beside each other, with histograms, a differential flame graph, and the critical path of
/// each execution.
///
/// Serves the page to this machine only, and only to who has the address with its token, until Ctrl-C; or writes it as one file
/// that needs no server, to be mailed or attached (--export).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid view requests.db
  tracebraid view requests.db --listen 127.0.0.1:8080
  tracebraid view requests.db --export requests.html")]
pub(crate) struct ViewArgs {
    /// The database, as `executions build` writes it
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// Listen there; a port of 0 is any that is free. Others than this machine are answered if the address is not
    /// one of the loopback range
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The token that requests must have; a random one if not given
    #[arg(long, value_name = "TEXT", conflicts_with = "no_token", value_parser = NonEmptyStringValueParser::new())]
    token: Option<String>,
    /// Answer everybody who reaches the address
    #[arg(long)]
    no_token: bool,
    /// Write the page with all data in it to this file, and end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "token", "no_token"])]
    export: Option<PathBuf>,
    /// Of this kind, where there are several (of exported pages)
    #[arg(long, value_name = "KIND", requires = "export")]
    kind: Option<String>,
    /// An exported page tells the critical paths of so many executions, the longest ones
    #[arg(long, value_name = "N", default_value_t = 1000)]
    paths: usize,
}

/// Runs it.
pub(super) fn run(args: &ViewArgs) -> Result<ExitCode, Failure> {
    if !is_built() {
        return Err(Failure::nothing_readable(
            "this program was built without its web page: `make build` builds both",
        ));
    }
    match &args.export {
        Some(file) => write(args, file)?,
        None => answer(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(args: &ViewArgs, file: &Path) -> Result<(), Failure> {
    spare::check_read(file, std::slice::from_ref(&args.file))?;
    let database = open(&args.file)?;
    let (kind, table) = table(&database, args.kind.as_deref())?;
    let page = export(&Export {
        database: &database,
        kind,
        table: &table,
        paths: args.paths,
    });
    let page =
        page.map_err(|error| Failure::nothing_readable(format!("{}: {error}", args.file.display())))?;
    output::replace(file, page.as_bytes())
}

fn answer(args: &ViewArgs) -> Result<(), Failure> {
    let token = match (&args.token, args.no_token) {
        (_, true) => None,
        (Some(token), false) => Some(token.clone()),
        (None, false) => Some(random()?),
    };
    let database = open(&args.file)?;
    let interrupted = output::interruption();
    let ready = |address: SocketAddr| {
        let token = token
            .as_ref()
            .map_or_else(String::new, |token| format!("?token={}", escaped(token)));
        let _ = Output::print(&format!("http://{address}/{token}\n"));
        output::say!("Ctrl-C ends it");
    };
    let served = Served::new(database, token.clone(), args.paths);
    let stop = move || interrupted.load(std::sync::atomic::Ordering::Relaxed);
    serve(served, args.listen, ready, stop)
        .map_err(|error| Failure::output(format!("{}: cannot listen there: {error}", args.listen)))
}

/// 128 random bits in hexadecimal digits.
fn random() -> Result<String, Failure> {
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(|error| Failure::output(format!("/dev/urandom: {error}: give a token (--token)")))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// A token as addresses take it.
fn escaped(token: &str) -> String {
    let escape = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    token.bytes().map(escape).collect()
}
