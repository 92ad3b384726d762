//! `tracebraid view`: a web page that compares executions.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use tracebraid_server::{Export, ExportError, Options, Watch, export, is_built, serve};

use crate::commands::executions::{kind_with_executions, open};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::spare;

/// Compare executions in the browser, with a flame graph
///
/// Serves the page to this machine, and only to holders of the address with its token, until
/// Ctrl-C; --export writes it as one file that needs no server.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid view requests.db
  tracebraid view requests.db --listen 127.0.0.1:8080
  tracebraid view requests.db --export requests.html")]
pub(crate) struct ViewArgs {
    /// The database, written by `tracebraid executions build`
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// Address to listen on (port 0: any free port). Other machines can connect unless it is a
    /// loopback address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// Token to require (at least 16 characters, 8 of them different); default: a random one
    #[arg(long, value_name = "TEXT", conflicts_with = "no_token", value_parser = token)]
    token: Option<String>,
    /// Answer without a token; other machines are answered only with --public
    #[arg(long)]
    no_token: bool,
    /// With --no-token: let every machine that reaches the address read the executions
    #[arg(long, requires = "no_token")]
    public: bool,
    /// Accept requests for this host name, besides addresses and `localhost`; others are refused
    /// (DNS rebinding)
    #[arg(long, value_name = "NAME", value_parser = host)]
    host: Vec<String>,
    /// Write the page with all its data to FILE and exit
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "token", "no_token", "host"])]
    export: Option<PathBuf>,
    /// With --export: the kind of executions, where there are several
    #[arg(long, value_name = "KIND", requires = "export")]
    kind: Option<String>,
    /// With --export: include the critical paths of the N longest executions
    #[arg(long, value_name = "N", default_value_t = 1000)]
    paths: usize,
}

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
    let kind = kind_with_executions(&database, args.kind.as_deref())?;
    // Data that exceeds memory is written beside the page.
    let directory = match file.parent() {
        _ if is_special(file) => std::env::temp_dir(),
        Some(directory) if !directory.as_os_str().is_empty() => directory.to_owned(),
        _ => PathBuf::from("."),
    };
    let wanted = Export {
        database: &database,
        kind,
        paths: args.paths,
        directory: &directory,
        watch: &*progress(),
    };
    output::replace_with(file, |out| {
        export(&wanted, out).map_err(|error| match error {
            ExportError::Refused(why) => {
                Failure::nothing_readable(format!("{}: {why}", args.file.display()))
            }
            ExportError::Output(error) => output::cannot_be_written(file, &error),
        })
    })
}

/// Shows the progress of reading executions.
fn progress() -> Arc<Watch> {
    let shown: Mutex<Option<Progress>> = Mutex::new(None);
    Arc::new(move |done, total| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = shown.get_or_insert_with(|| Progress::of_items(total, "executions"));
        progress.at(|| done);
        if done >= total {
            progress.finish();
            *shown = None;
        }
    })
}

/// Whether the path is a pipe, a device or another special file.
fn is_special(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|known| !known.is_file())
}

fn answer(args: &ViewArgs) -> Result<(), Failure> {
    let listen = addresses(&args.listen)?;
    let is_reached = listen.iter().any(|address| !address.ip().is_loopback());
    if is_reached && args.no_token && !args.public {
        return Err(Failure::usage(format!(
            "--listen {} --no-token: everyone who reaches this machine could read {}; leave out --no-token, or add --public to \
             allow it",
            args.listen,
            args.file.display()
        )));
    }
    let token = match (&args.token, args.no_token) {
        (_, true) => None,
        (Some(token), false) => Some(token.clone()),
        (None, false) => Some(random()?),
    };
    let database = open(&args.file)?;
    let interrupted = output::interruption();
    let query = token
        .as_ref()
        .map_or_else(String::new, |token| format!("?token={}", escaped(token)));
    let ready = |addresses: &[SocketAddr]| {
        let lines = addresses
            .iter()
            .map(|address| format!("http://{address}/{query}\n"));
        let _ = Output::print(&lines.collect::<String>());
        match (is_reached, args.no_token) {
            (true, true) => output::say!(
                "warning: no token is needed: everyone who reaches this machine may read {}",
                args.file.display()
            ),
            (true, false) => output::say!(
                "warning: the connection is not encrypted: the token and the executions are readable on the network"
            ),
            (false, _) => {}
        }
        output::say!("Press Ctrl-C to stop");
    };
    let options = Options {
        token: token.clone(),
        hosts: args.host.clone(),
        paths: args.paths,
        directory: std::env::temp_dir(),
        watch: Some(progress()),
    };
    let stop = move || interrupted.load(std::sync::atomic::Ordering::Relaxed);
    serve(database, options, &listen, ready, stop)
        .map_err(|error| Failure::output(format!("{}: cannot listen there: {error}", args.listen)))
}

/// The addresses of a text: `ADDRESS:PORT`, `NAME:PORT`, or either without a port.
fn addresses(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, 0)]);
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, port.parse::<u16>().ok()),
        None => (text, Some(0)),
    };
    let wrong = |why: &str| {
        Failure::usage(format!(
            "--listen {text}: {why}; use ADDRESS:PORT or NAME:PORT, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080"
        ))
    };
    let port = port.ok_or_else(|| wrong("invalid port"))?;
    if name.eq_ignore_ascii_case("localhost") {
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        return Ok(loopback.map(|ip| SocketAddr::new(ip, port)).into());
    }
    if name.is_empty() {
        return Err(wrong("the address is missing"));
    }
    // Resolvers interpret a number as an IPv4 address.
    if name.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong("the address is missing"));
    }
    let found: io::Result<Vec<SocketAddr>> = (name, port).to_socket_addrs().map(Iterator::collect);
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong("the name does not resolve")),
        Err(error) => Err(wrong(&error.to_string())),
    }
}

/// Minimum number of characters of a token, and of different characters.
const LEAST: usize = 16;
const DIFFERENT: usize = 8;

/// Checks that a token is hard to guess.
fn token(text: &str) -> Result<String, String> {
    let different: std::collections::BTreeSet<char> = text.chars().collect();
    if text.chars().count() < LEAST || different.len() < DIFFERENT {
        return Err(format!(
            "too easy to guess: a token needs at least {LEAST} characters, {DIFFERENT} of them different; without --token it is \
             random"
        ));
    }
    // The token is sent in an HTTP header.
    match text.chars().all(|letter| letter.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => {
            Err("a token may contain only letters, digits and punctuation of ASCII".to_owned())
        }
    }
}

/// Checks that a host is a name without scheme, port and path.
fn host(text: &str) -> Result<String, String> {
    let is_of_names =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    match !text.is_empty() && text.chars().all(is_of_names) {
        true => Ok(text.to_owned()),
        false => Err("expected a host name, without `http://`, port and path".to_owned()),
    }
}

/// 128 random bits in hexadecimal digits.
fn random() -> Result<String, Failure> {
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(|error| {
            Failure::output(format!("/dev/urandom: {error}: give a token (--token)"))
        })?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// A token, escaped for a URL.
fn escaped(token: &str) -> String {
    let escape = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    token.bytes().map(escape).collect()
}
