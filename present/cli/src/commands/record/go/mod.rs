//! Execution traces of running Go programs, read from their pprof endpoints while the kernel is
//! recorded, and stored beside its trace.
//!
//! A thread for each endpoint requests a trace of a day. Go's HTTP server cancels a request when the
//! client closes its side of the connection: the trace then ends, and its rest is still received. A
//! command needs time until its endpoint exists, so connecting is tried again for a while.

mod endpoint;
mod fetch;
mod listener;

use std::fs::File;
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tracebraid_import::{GoProcess, import_go};

pub(super) use endpoint::Endpoint;

use crate::output::say;
use crate::units::{duration, number_of};

/// Time for which connecting to an endpoint is tried again.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval of these attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Time for the rest of a trace to arrive after its end was requested.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// Traces of Go programs that are being recorded.
#[derive(Debug)]
pub(super) struct GoTraces {
    directory: PathBuf,
    traces: Vec<GoTrace>,
}

#[derive(Debug)]
struct GoTrace {
    endpoint: Endpoint,
    file: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Fetched, String>>>,
}

/// State that the recorder and the thread of an endpoint share.
#[derive(Debug, Default)]
struct Shared {
    must_end: AtomicBool,
    connection: Mutex<Option<TcpStream>>,
}

/// A trace that was received.
#[derive(Debug)]
struct Fetched {
    /// Time between the begin of the recording and the connection.
    delay: Duration,
    /// Id of the process that listens at the endpoint, if it is known.
    pid: Option<u32>,
    /// Name of that process, read while it ran.
    name: Option<String>,
    is_local: bool,
    /// Why the trace ends before its end.
    cut: Option<String>,
}

/// The process that listens at an endpoint, if it runs on this machine and is known.
pub(super) fn process_of(endpoint: &Endpoint) -> Option<u32> {
    listener::process_at(endpoint.port)
}

impl GoTraces {
    /// Begins to record the traces of all endpoints.
    pub(super) fn start(endpoints: &[Endpoint], directory: &Path) -> GoTraces {
        let begun = Instant::now();
        let traces = (1..).zip(endpoints).map(|(number, endpoint)| {
            let file = directory.join(format!("go-{number}.trace"));
            let shared = Arc::new(Shared::default());
            let thread = {
                let (endpoint, file) = (endpoint.clone(), file.clone());
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.record(&endpoint, &file, begun))
            };
            GoTrace {
                endpoint: endpoint.clone(),
                file,
                shared,
                thread: Some(thread),
            }
        });
        GoTraces {
            directory: directory.to_owned(),
            traces: traces.collect(),
        }
    }

    /// Ends all traces, and waits for their rests.
    pub(super) fn end(&self) {
        self.traces.iter().for_each(|trace| trace.shared.end());
        let begun = Instant::now();
        for trace in &self.traces {
            let is_running = || trace.thread.as_ref().is_some_and(|of| !of.is_finished());
            while is_running() && begun.elapsed() < LAST_WAIT {
                thread::sleep(Duration::from_millis(5));
            }
            trace.shared.close();
        }
    }

    /// Converts all traces to CTF, and reports what was recorded.
    pub(super) fn store(self, clock_offset: u64) {
        for trace in self.traces {
            let endpoint = trace.endpoint.to_string();
            if let Err(why) = trace.store(&self.directory, clock_offset) {
                say!("warning: {endpoint}: {why}");
            }
        }
    }
}

impl Shared {
    fn end(&self) {
        self.must_end.store(true, Ordering::Relaxed);
        self.shut(Shutdown::Write);
    }

    fn close(&self) {
        self.shut(Shutdown::Both);
    }

    fn shut(&self, how: Shutdown) {
        if let Ok(connection) = self.connection.lock()
            && let Some(connection) = connection.as_ref()
        {
            let _ = connection.shutdown(how);
        }
    }

    fn record(&self, endpoint: &Endpoint, file: &Path, begun: Instant) -> Result<Fetched, String> {
        let connection = self.connect(endpoint)?;
        let delay = begun.elapsed();
        let is_local = connection
            .peer_addr()
            .is_ok_and(|of| endpoint::is_local(of.ip()));
        let pid = is_local
            .then(|| listener::process_at(endpoint.port))
            .flatten();
        let name = pid.and_then(listener::name_of);
        let failed = |error: std::io::Error| error.to_string();
        let clone = connection.try_clone().map_err(failed)?;
        if let Ok(mut shared) = self.connection.lock() {
            *shared = Some(clone);
        }
        let mut file = File::create(file).map_err(failed)?;
        let mut answer = fetch::request(connection, endpoint)?;
        // The recording may have ended while the request was being sent.
        if self.must_end.load(Ordering::Relaxed) {
            self.end();
        }
        let cut = answer.copy_to(&mut file).err();
        Ok(Fetched {
            delay,
            pid,
            name,
            is_local,
            cut,
        })
    }

    fn connect(&self, endpoint: &Endpoint) -> Result<TcpStream, String> {
        let begun = Instant::now();
        loop {
            let error = match endpoint.connect() {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            if self.must_end.load(Ordering::Relaxed) || begun.elapsed() >= PATIENCE {
                return Err(format!(
                    "no trace of Go was recorded: {error} for {}: import net/http/pprof in the \
                     program and serve it at this address",
                    duration(begun.elapsed().as_nanos() as u64)
                ));
            }
            thread::sleep(PAUSE);
        }
    }
}

impl GoTrace {
    fn store(mut self, directory: &Path, clock_offset: u64) -> Result<(), String> {
        let joined = self.thread.take().map(JoinHandle::join);
        let fetched = joined.and_then(Result::ok);
        let fetched = fetched.ok_or("no trace of Go was recorded")?;
        let fetched = fetched.inspect_err(|_| {
            let _ = std::fs::remove_file(&self.file);
        })?;
        if !fetched.is_local {
            say!(
                "warning: {}: the host is another one, so the trace of Go does not have the clock of \
                 the kernel's trace",
                self.endpoint
            );
        }
        let name = match fetched.pid {
            Some(pid) => format!("go-{pid}"),
            None => self
                .file
                .file_stem()
                .map_or_else(String::new, |of| of.to_string_lossy().into_owned()),
        };
        let to = unused(&directory.join("ust"), &name);
        let process = process(&fetched, clock_offset);
        let summary = import_go(&self.file, &to, &process, &AtomicBool::new(false));
        let summary = summary.map_err(|error| match &fetched.cut {
            Some(cut) => format!("{cut}: {}: {error}", self.file.display()),
            None => format!("{}: {error}", self.file.display()),
        })?;
        let _ = std::fs::remove_file(&self.file);
        say!(
            "Recorded {} of Go from {} in {}, from {} on",
            number_of(summary.events, "event", "events"),
            self.endpoint,
            to.display(),
            duration(fetched.delay.as_nanos() as u64)
        );
        if let Some(cut) = fetched.cut {
            say!("warning: {}: {cut}", self.endpoint);
        }
        for damage in summary.damage {
            say!("warning: {}: {damage}", self.endpoint);
        }
        Ok(())
    }
}

/// A path that does not exist: several endpoints may belong to one process.
fn unused(directory: &Path, name: &str) -> PathBuf {
    // Created like the directory of programs with probes.
    let _ = std::fs::create_dir_all(directory);
    let numbered = (2..).map(|number| directory.join(format!("{name}-{number}")));
    let mut paths = std::iter::once(directory.join(name)).chain(numbered);
    paths.find(|path| !path.exists()).unwrap_or_default()
}

/// Properties of the process for the trace. Local processes have the clock of the kernel's trace.
fn process(fetched: &Fetched, clock_offset: u64) -> GoProcess {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    let boot = read("random/boot_id").map(|id| id.trim().replace('-', ""));
    let boot = boot.and_then(|id| u128::from_str_radix(&id, 16).ok());
    let offset = i64::try_from(clock_offset).ok();
    let clock = boot.map(u128::to_be_bytes).zip(offset);
    let hostname = read("hostname").map(|name| name.trim().to_owned());
    GoProcess {
        pid: fetched.pid,
        name: fetched.name.clone(),
        hostname: hostname.filter(|_| fetched.is_local),
        clock: clock.filter(|_| fetched.is_local),
        ..GoProcess::default()
    }
}
