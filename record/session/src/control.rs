//! Background sessions: discovery, requests and answers.
//!
//! Each session has a socket with its name in a directory that belongs to the user. A client sends
//! one line, a [`Request`] as JSON, and receives one line, an [`Answer`].

use std::cell::RefCell;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{SessionError, logs};

/// A request to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Report the status.
    Status,
    /// End the recording.
    Stop,
    /// Write the trace buffers in memory to this directory.
    Snapshot(PathBuf),
    /// Start a new chunk.
    Rotate,
}

/// Status of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the session.
    pub name: String,
    /// Process id of the recorder.
    pub pid: u32,
    /// Directory of the trace, which may not exist yet.
    pub directory: PathBuf,
    /// Nanoseconds since the session began.
    pub elapsed_ns: u64,
    /// Number of recorded events.
    pub events: u64,
    /// Number of events lost because a buffer was full.
    pub lost: u64,
    /// Bytes written.
    pub bytes: u64,
    /// True if only the newest events are kept, in memory. (Recorders of earlier versions omit it.)
    #[serde(default)]
    pub keeps_newest: bool,
    /// Chunks begun; 0 if the trace is not written as chunks.
    #[serde(default)]
    pub chunks: u64,
}

/// A session's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The request was carried out; the status afterwards.
    Done(Status),
    /// The request failed, for this reason.
    Failed(String),
}

/// The listening side of a session.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    /// Clients that have connected and not yet sent a whole line.
    callers: RefCell<Vec<Caller>>,
}

/// A client that has not yet sent a whole line.
#[derive(Debug)]
struct Caller {
    stream: UnixStream,
    said: Vec<u8>,
    since: Instant,
}

/// Result of reading from a client.
enum Heard {
    Asks(Request),
    Waits,
    /// The client disconnected or sent an invalid request.
    Nothing,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub struct Question {
    /// The request.
    pub request: Request,
    stream: UnixStream,
}

/// Maximum time for the other side to send its line.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum bytes of a line; paths are not longer.
const MOST_BYTES: u64 = 64 << 10;
/// Maximum number of pending clients.
const MOST_CALLERS: usize = 64;
/// Maximum time for a session to carry out a request: stopping writes the remaining buffers.
const LONG: Duration = Duration::from_secs(120);

/// The directory of the sockets, created if missing.
///
/// # Errors
/// If it cannot be created, or belongs to another user.
pub fn directory() -> Result<PathBuf, SessionError> {
    let own = nix::unistd::geteuid();
    let path = match (std::env::var_os("XDG_RUNTIME_DIR"), own.is_root()) {
        (Some(run), _) => Path::new(&run).join("tracebraid"),
        (None, true) => PathBuf::from("/run/tracebraid"),
        (None, false) => std::env::temp_dir().join(format!("tracebraid-{own}")),
    };
    let failed = |source| SessionError::File {
        path: path.clone(),
        source,
    };
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&path);
    made.map_err(failed)?;
    let owner = fs::metadata(&path).map_err(failed)?.uid();
    if owner != own.as_raw() {
        return Err(failed(io::Error::other(
            "this directory belongs to another user: remove it, or set XDG_RUNTIME_DIR",
        )));
    }
    Ok(path)
}

/// Names of all sessions that have a socket, sorted. Removes old logs of ended sessions.
///
/// # Errors
/// If the directory cannot be read.
pub fn names() -> Result<Vec<String>, SessionError> {
    let path = directory()?;
    logs::tidy(&path);
    let entries = fs::read_dir(&path).map_err(|source| SessionError::File { path, source })?;
    let name = |entry: fs::DirEntry| {
        Some(
            entry
                .file_name()
                .to_str()?
                .strip_suffix(".sock")?
                .to_owned(),
        )
    };
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort_unstable();
    Ok(names)
}

/// The path of the socket of a session.
pub(crate) fn socket(name: &str) -> Result<PathBuf, SessionError> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
        return Err(SessionError::Name(name.to_owned()));
    }
    Ok(directory()?.join(format!("{name}.sock")))
}

/// Sends a request to a session and waits for the answer.
///
/// # Errors
/// If the session does not exist, has been killed, does not answer, or cannot carry out the
/// request.
pub fn ask(name: &str, request: &Request) -> Result<Status, SessionError> {
    let path = socket(name)?;
    let none = || SessionError::NoSession(name.to_owned());
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) => {
            // A socket without a listener remains after a session was killed.
            if error.kind() == io::ErrorKind::ConnectionRefused {
                let _ = fs::remove_file(&path);
            }
            return Err(none());
        }
    };
    let answer = exchange(stream, request).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            SessionError::Silent(name.to_owned())
        }
        _ => none(),
    })?;
    match answer {
        Answer::Done(status) => Ok(status),
        Answer::Failed(why) => Err(SessionError::Refused(why)),
    }
}

fn exchange(mut stream: UnixStream, request: &Request) -> io::Result<Answer> {
    stream.set_read_timeout(Some(match request {
        Request::Status => PATIENCE,
        Request::Stop | Request::Snapshot(_) | Request::Rotate => LONG,
    }))?;
    send(&mut stream, request)?;
    receive(&stream)
}

fn send(stream: &mut UnixStream, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn receive<T: for<'d> Deserialize<'d>>(stream: &UnixStream) -> io::Result<T> {
    let mut line = String::new();
    BufReader::new(io::Read::take(stream, MOST_BYTES)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// Listens at a path that does not exist yet. The socket is renamed to the path once it listens: a
/// client that connected earlier would take it for the socket of a killed session, and remove it.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let hidden = path.with_file_name(format!(".{}", std::process::id()));
    let _ = fs::remove_file(&hidden);
    let listener = UnixListener::bind(&hidden)?;
    let named = listener
        .set_nonblocking(true)
        .and_then(|()| fs::hard_link(&hidden, path));
    let _ = fs::remove_file(&hidden);
    named.map(|()| listener)
}

impl Server {
    /// Creates the socket of a session.
    ///
    /// # Errors
    /// If a session of that name exists, or the socket cannot be created.
    pub fn new(name: &str) -> Result<Server, SessionError> {
        let path = socket(name)?;
        if ask(name, &Request::Status).is_ok() {
            return Err(SessionError::Exists(name.to_owned()));
        }
        match listen(&path) {
            Ok(listener) => Ok(Server {
                listener,
                path,
                callers: RefCell::default(),
            }),
            Err(source) => Err(SessionError::File { path, source }),
        }
    }

    /// The next request that has arrived; does not wait. Invalid requests are not answered.
    pub fn question(&self) -> Option<Question> {
        let mut callers = self.callers.borrow_mut();
        while callers.len() < MOST_CALLERS
            && let Ok((stream, _)) = self.listener.accept()
        {
            callers.extend(Caller::new(stream).ok());
        }
        let mut at = 0;
        while let Some(caller) = callers.get_mut(at) {
            match caller.hear() {
                Heard::Waits => at += 1,
                Heard::Nothing => drop(callers.remove(at)),
                Heard::Asks(request) => {
                    let stream = callers.remove(at).stream;
                    stream.set_nonblocking(false).ok()?;
                    return Some(Question { request, stream });
                }
            }
        }
        None
    }
}

impl Caller {
    fn new(stream: UnixStream) -> io::Result<Caller> {
        stream.set_nonblocking(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Caller {
            stream,
            said: Vec::new(),
            since: Instant::now(),
        })
    }

    /// Reads the data that has arrived.
    fn hear(&mut self) -> Heard {
        let room = MOST_BYTES.saturating_sub(self.said.len() as u64);
        let heard = io::Read::take(&self.stream, room).read_to_end(&mut self.said);
        let line = self.said.iter().position(|&byte| byte == b'\n');
        let line = line.and_then(|end| self.said.get(..end));
        match (line, heard) {
            (Some(line), _) => serde_json::from_slice(line).map_or(Heard::Nothing, Heard::Asks),
            (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                match self.since.elapsed() < PATIENCE {
                    true => Heard::Waits,
                    false => Heard::Nothing,
                }
            }
            _ => Heard::Nothing,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Question {
    /// Sends the answer.
    pub fn answer(mut self, answer: &Answer) {
        // A client that no longer waits does not get it.
        let _ = send(&mut self.stream, answer);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_socket_listens_as_soon_as_it_has_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one.sock");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let refused = scope.spawn(|| {
                let mut refused = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let error = UnixStream::connect(&path).err().map(|error| error.kind());
                    refused += u32::from(error == Some(io::ErrorKind::ConnectionRefused));
                }
                refused
            });
            // All listeners are kept: no connection is refused because its listener is gone.
            let mut listeners = Vec::new();
            for _ in 0..800 {
                listeners.push(listen(&path).unwrap());
                fs::remove_file(&path).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(refused.join().unwrap(), 0);
        });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let _there = listen(&path).unwrap();
        assert!(listen(&path).is_err());
    }
}
