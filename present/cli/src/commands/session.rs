//! `tracebraid start`, `stop`, `status`, `list`, `snapshot` and `rotate`: background recordings.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use tracebraid_session::control::{self, Request, Server, Status};
use tracebraid_session::{SessionError, is_in_background, logs, put_in_background};

use crate::commands::record::{
    RecordArgs, Written, chunks_below, make_stamped, record, see_it, tell,
};
use crate::failure::{DAMAGED, Failure};
use crate::output::Output;
use crate::table::{self, Column};
use crate::units::{self, grouped};

/// Start a recording in the background
///
/// The recording ends at `tracebraid stop` or at a limit.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid start night --system --syscalls none -o night.trace --max-size 4G
  tracebraid start black-box --system --snapshot --max-size 256M
  tracebraid start week --system --rotate 1G,1h --keep 24
  tracebraid status night
  tracebraid stop night")]
pub(crate) struct StartArgs {
    /// Name of the session
    name: String,
    #[command(flatten)]
    record: RecordArgs,
}

/// Stop a background recording and complete its trace
///
/// With DIR, completes a recording whose recorder was killed or never started: the ring buffers of
/// programs with probes become streams, and the programs stop recording into them.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid stop night
  tracebraid stop night && tracebraid report night.trace
  tracebraid stop ./killed.trace")]
pub(crate) struct StopArgs {
    /// Name of the session, or directory of a recording without a recorder
    #[arg(value_name = "SESSION|DIR")]
    name: String,
}

/// Show the state of background recordings
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid status night
  tracebraid status night --format json | jq '.sessions[].lost'")]
pub(crate) struct StatusArgs {
    /// Name of the session; default: all sessions
    name: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// List background recordings
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid list
  tracebraid list --format json | jq -r '.sessions[].name'")]
pub(crate) struct ListArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Write the events that a recording holds in memory as a trace
///
/// For recordings made with `tracebraid start --snapshot`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid start black-box --system --snapshot --max-size 256M
  tracebraid snapshot black-box -o what-just-happened
  tracebraid report what-just-happened")]
pub(crate) struct SnapshotArgs {
    /// Name of the session
    name: String,
    /// Directory of the trace; default: NAME-DATE-TIME
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// End the current chunk of a background recording
///
/// For recordings made with `tracebraid start --rotate`. Prints the directory of the chunk that
/// ended, which is complete when the command returns.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid start night --system --rotate 100M --keep 5
  tracebraid rotate night
  tracebraid start tests --system --rotate manual
  tracebraid report \"$(tracebraid rotate tests)\"")]
pub(crate) struct RotateArgs {
    /// Name of the session; may be omitted if there is only one
    name: Option<String>,
}

/// Output formats.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Table
    Table,
    /// JSON
    Json,
}

/// Time within which a recording must begin.
const PATIENCE: Duration = Duration::from_secs(30);

fn failed(error: SessionError) -> Failure {
    match error {
        SessionError::Name(_) | SessionError::Exists(_) => Failure::usage(error.to_string()),
        SessionError::NoSession(ref name) => Failure::nothing_readable(match last_words(name) {
            Some(said) => format!("{error}; the last session of this name reported: {said}"),
            None if has_log(name) => format!(
                "{error}; if its recorder was killed, `tracebraid stop DIR` with the directory of the recording completes the \
                 traces of its programs"
            ),
            None => error.to_string(),
        }),
        _ => Failure::output(error.to_string()),
    }
}

/// Whether the last session of this name has left an empty log; a session removes its log when it
/// ends.
fn has_log(name: &str) -> bool {
    logs::path(name).is_ok_and(|path| std::fs::metadata(path).is_ok_and(|about| about.len() == 0))
}

/// The last error that a session reported before it ended.
fn last_words(name: &str) -> Option<String> {
    let said = std::fs::read_to_string(logs::path(name).ok()?).ok()?;
    let last = said.lines().rfind(|line| line.starts_with("error: "))?;
    Some(last.trim_start_matches("error: ").to_owned())
}

/// Runs `start`: first in the foreground, and then again in the background process.
pub(super) fn start(args: &StartArgs) -> Result<ExitCode, Failure> {
    if is_in_background() {
        let server = Server::new(&args.name).map_err(failed)?;
        let ended = record(&args.record, Some((&args.name, &server)));
        if ended.is_ok() {
            logs::ended(&args.name);
        }
        return ended;
    }
    match control::ask(&args.name, &Request::Status) {
        Ok(_) => return Err(failed(SessionError::Exists(args.name.clone()))),
        Err(SessionError::NoSession(_)) => {}
        Err(error) => return Err(failed(error)),
    }
    let log = logs::path(&args.name).map_err(failed)?;
    let cannot = |error: std::io::Error| Failure::output(format!("{}: {error}", log.display()));
    let own = std::env::current_exe().map_err(cannot)?;
    let mut background = Command::new(own);
    background.args(std::env::args_os().skip(1));
    background.stdin(Stdio::null()).stdout(Stdio::null());
    background.stderr(File::create(&log).map_err(cannot)?);
    // Ctrl-C at this terminal must not end the recording.
    let mut child = put_in_background(&mut background).spawn().map_err(cannot)?;
    let Some(status) = begun(&args.name, &mut child)? else {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        // The message is reported by this process.
        let _ = std::fs::remove_file(&log);
        let said = said.trim();
        let said = said.strip_prefix("error: ").unwrap_or(said);
        let code = child
            .try_wait()
            .ok()
            .flatten()
            .and_then(|status| status.code());
        let code = code.and_then(|code| u8::try_from(code).ok());
        return Err(Failure::said(
            code.filter(|&code| code != 0).unwrap_or(DAMAGED),
            said,
        ));
    };
    Output::print(&format!(
        "Recording into {} (process {})\nStop it with: tracebraid stop {}\n",
        status.directory.display(),
        status.pid,
        args.name
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Waits until the background session is recording; `None` if it has ended instead.
fn begun(name: &str, child: &mut Child) -> Result<Option<Status>, Failure> {
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        let status = control::ask(name, &Request::Status).ok();
        // Another session may have taken the name in the meantime.
        if status
            .as_ref()
            .is_some_and(|status| status.pid == child.id())
        {
            return Ok(status);
        }
        let ended = child
            .try_wait()
            .map_err(|error| Failure::output(error.to_string()))?;
        if ended.is_some() {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(None)
}

pub(super) fn stop(args: &StopArgs) -> Result<ExitCode, Failure> {
    let status = match control::ask(&args.name, &Request::Stop) {
        Ok(status) => status,
        Err(SessionError::NoSession(_) | SessionError::Name(_))
            if is_of_probes(Path::new(&args.name)) =>
        {
            return finish(Path::new(&args.name));
        }
        Err(error) => return Err(failed(error)),
    };
    say_stopped(&status)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether programs with probes have recorded into the directory.
fn is_of_probes(directory: &Path) -> bool {
    directory.join("ust").join("pid").is_dir()
}

/// Completes the recording of programs with probes in a directory without a session.
fn finish(directory: &Path) -> Result<ExitCode, Failure> {
    let same =
        |status: &Status| status.directory.canonicalize().ok() == directory.canonicalize().ok();
    if let Some(status) = all().unwrap_or_default().into_iter().find(same) {
        let name = status.name;
        return Err(Failure::usage(format!(
            "the session `{name}` is recording there: stop it with tracebraid stop {name}"
        )));
    }
    let finished = tracebraid_session::finish_probes(directory).map_err(failed)?;
    tell(&finished, directory);
    let code = if finished.failed.is_empty() {
        0
    } else {
        DAMAGED
    };
    Ok(ExitCode::from(code))
}

pub(super) fn snapshot(args: &SnapshotArgs) -> Result<ExitCode, Failure> {
    let directory = match &args.output {
        Some(directory) => directory.clone(),
        None => make_stamped(&args.name)?,
    };
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    let asked = control::ask(&args.name, &Request::Snapshot(directory.clone()));
    if asked.is_err() && args.output.is_none() {
        // Removes the directory only if it is empty.
        let _ = std::fs::remove_dir(&directory);
    }
    asked.map_err(failed)?;
    let written = Written::below(&directory).unwrap_or_default();
    say(&format!("Kept: {written}"), &directory)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn rotate(args: &RotateArgs) -> Result<ExitCode, Failure> {
    let name = match &args.name {
        Some(name) => name.clone(),
        None => only_session()?,
    };
    let status = control::ask(&name, &Request::Rotate).map_err(failed)?;
    Output::print(&format!("{}\n", status.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The name of the only session.
fn only_session() -> Result<String, Failure> {
    let names = control::names().map_err(failed)?;
    match names.as_slice() {
        [name] => Ok(name.clone()),
        [] => Err(Failure::nothing_readable(
            "no background recording is running",
        )),
        names => Err(Failure::usage(format!(
            "there are several sessions; give the name of one: {}",
            names.join(", ")
        ))),
    }
}

/// Prints the summary of a recording, including the events of probes.
fn say_stopped(status: &Status) -> Result<(), Failure> {
    let probes = Written::below(&status.directory.join("ust")).unwrap_or_default();
    let written = Written {
        events: status.events + probes.events,
        lost: status.lost + probes.lost,
        bytes: status.bytes + probes.bytes,
    };
    let elapsed = units::duration(status.elapsed_ns);
    say(
        &format!("Recorded in {elapsed}: {written}"),
        &status.directory,
    )
}

fn say(what: &str, directory: &Path) -> Result<(), Failure> {
    let shown = directory.display();
    Output::print(&format!("{what} in {shown}\n{}\n", see_it(directory)))?;
    Ok(())
}

pub(super) fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let sessions = match &args.name {
        Some(name) => vec![control::ask(name, &Request::Status).map_err(failed)?],
        None => all()?,
    };
    show(&sessions, args.format)
}

pub(super) fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    show(&all()?, args.format)
}

/// All sessions that answer.
fn all() -> Result<Vec<Status>, Failure> {
    let names = control::names().map_err(failed)?;
    let asked = names
        .iter()
        .map(|name| control::ask(name, &Request::Status));
    Ok(asked.flatten().collect())
}

/// A session with the events that probes have written so far. Events in rings are unknown until
/// they are written.
#[derive(Serialize)]
struct Going<'s> {
    #[serde(flatten)]
    status: &'s Status,
    probes: Option<Written>,
    /// Directories of the existing chunks, oldest first.
    kept_chunks: Vec<PathBuf>,
}

fn show(sessions: &[Status], format: Format) -> Result<ExitCode, Failure> {
    let going = |status| Going {
        status,
        probes: match status.keeps_newest {
            true => None,
            false => Written::below(&status.directory.join("ust")),
        },
        kept_chunks: match status.chunks {
            0 => Vec::new(),
            _ => chunks_below(&status.directory),
        },
    };
    let sessions: Vec<Going<'_>> = sessions.iter().map(going).collect();
    let text = match format {
        Format::Json => format!("{:#}\n", json!({ "sessions": sessions })),
        Format::Table if sessions.is_empty() => "No background recording is running.\n".to_owned(),
        Format::Table => rows(&sessions),
    };
    Output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn rows(sessions: &[Going<'_>]) -> String {
    let columns = [
        Column::text("Session"),
        Column::number("PID"),
        Column::number("For"),
        Column::number("Kernel events"),
        Column::number("Lost"),
        Column::number("Bytes"),
        Column::number("Probe events"),
        Column::number("Lost by probes"),
        Column::text("Chunks"),
        Column::text("Directory"),
    ];
    let row = |going: &Going<'_>| {
        let Going { status, probes, .. } = going;
        let of_probes = |number: fn(&Written) -> u64| {
            let written = probes.as_ref().map(number);
            written.map_or_else(|| "-".to_owned(), grouped)
        };
        vec![
            status.name.clone(),
            status.pid.to_string(),
            units::duration(status.elapsed_ns),
            grouped(status.events),
            grouped(status.lost),
            units::bytes(status.bytes),
            of_probes(|written| written.events),
            of_probes(|written| written.lost),
            match (going.kept_chunks.len() as u64, status.chunks) {
                (_, 0) => String::new(),
                (kept, begun) if kept < begun => format!("{kept} of {begun}"),
                (kept, _) => kept.to_string(),
            },
            status.directory.display().to_string(),
        ]
    };
    table::render(&columns, sessions.iter().map(row))
}
