//! The owner's handle to a running recording; `recorder_thread` does the work.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::chosen::some_of;
use crate::end_mark::{EndReason, GivenReason};
use crate::error::RecordError;
use crate::options::Options;
use crate::process_numbers::Processes;
use crate::recorder_thread::record;
use crate::triggers::Held;

/// A running recording. Dropping it stops the recording and discards errors.
#[derive(Debug)]
pub struct Recording {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<Result<Summary, RecordError>>>,
    progress: Arc<Counters>,
    processes: Processes,
}

/// Requests to the recorder thread, which ends when there is no sender any more.
pub(crate) enum Order {
    /// Writes the events in memory to a directory.
    Snapshot(SnapshotOrder),
    /// Begins a new chunk; the reply is the directory of the chunk that ended.
    Rotate(Sender<Result<PathBuf, RecordError>>),
}

/// A request to write the events in memory into a directory.
pub(crate) struct SnapshotOrder {
    pub(crate) directory: PathBuf,
    pub(crate) reply: Sender<Result<Progress, RecordError>>,
}

/// Counts of a recording so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of events written.
    pub events: u64,
    /// Number of events lost because a ring was full.
    pub lost: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Number of chunks begun; 0 if the trace is not written as chunks.
    pub chunks: u64,
}

/// The result of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Totals.
    pub total: Progress,
    /// By CPU, number of events lost because the ring was full.
    pub lost: Vec<u64>,
    /// Chosen events that the kernel left out because they interrupted others on their CPU.
    pub missed: u64,
    /// Number of calls of chosen functions whose return was not recorded because too many calls
    /// were nested.
    pub omitted_returns: u64,
    /// System calls and page faults that conditions excluded.
    pub left_out: u64,
    /// Requested tracepoints that this kernel does not have.
    pub missing: Vec<String>,
    /// Chosen events that match a pattern and were rejected by the kernel.
    pub refused: Vec<RefusedEvent>,
    /// Number of children of followed processes that could not be followed, because there were too
    /// many.
    pub unfollowed: u32,
    /// The recording ended because the disk was full; losses are counted up to its end.
    pub disk_is_full: bool,
    /// True if a system call was recorded.
    pub has_calls: bool,
    /// Processes to follow that had ended before the recording began.
    pub ended: Vec<u32>,
    /// The files of processes could not be listed, because `/proc` is not mounted.
    pub lacks_proc: bool,
    /// True if stacks of waits were recorded, or not requested.
    pub has_waits: bool,
}

impl Summary {
    /// A message about events of patterns that the kernel rejected, with some of their names;
    /// `None` without such events.
    pub fn refused_events(&self) -> Option<String> {
        let first = self.refused.first()?;
        let names: Vec<String> = self
            .refused
            .iter()
            .map(|refused| refused.event.clone())
            .collect();
        let (count, verb, them) = match names.len() {
            1 => ("1 event".to_owned(), "is", "it"),
            count => (format!("{count} events"), "are", "them"),
        };
        Some(format!(
            "{count} that patterns of --event match {verb} not recorded, since the kernel rejects {them} ({}): {}",
            first.reason,
            some_of(&names)
        ))
    }
}

/// An event of a pattern that the kernel rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEvent {
    /// Type and name of the event.
    pub event: String,
    /// The kernel's reason.
    pub reason: String,
}

/// State shared by the recorder thread and its owner.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    events: AtomicU64,
    lost: AtomicU64,
    bytes: AtomicU64,
    chunks: AtomicU64,
    pub(crate) held: Mutex<Vec<Held>>,
    pub(crate) end: GivenReason,
}

impl Recording {
    /// Starts recording into a directory, which is created. Events are being recorded when this
    /// returns.
    ///
    /// # Errors
    /// If this process lacks privileges, or a file cannot be written.
    pub fn start(options: Options, directory: &Path) -> Result<Recording, RecordError> {
        let (orders, ordered) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let progress = Arc::new(Counters::default());
        let (counters, directory) = (progress.clone(), directory.to_owned());
        let thread = std::thread::Builder::new()
            .name("tracebraid-ring".into())
            .spawn(move || record(&options, directory, &ordered, &tell, &counters));
        let thread = thread.map_err(RecordError::NoThread)?;
        match told.recv() {
            Ok(processes) => Ok(Recording {
                orders: Some(orders),
                thread: Some(thread),
                progress,
                processes,
            }),
            // The thread ended before it could confirm the start.
            Err(_) => Err(match thread.join() {
                Ok(Err(error)) => error,
                _ => RecordError::Thread,
            }),
        }
    }

    /// The processes of the machine, and those that are followed.
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Counts so far.
    pub fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// True if the recording has ended by itself; [`Recording::stop`] returns the reason.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Conditions that have become true since the last call: for each, write a snapshot.
    pub fn held(&self) -> Vec<Held> {
        self.progress
            .held
            .lock()
            .map_or_else(|_| Vec::new(), |mut held| std::mem::take(&mut held))
    }

    /// Writes the events in memory as a trace to a directory, which must not exist; recording
    /// continues.
    ///
    /// # Errors
    /// If the recording keeps no events in memory, or has ended, or the trace cannot be written.
    pub fn snapshot(&self, directory: &Path) -> Result<Progress, RecordError> {
        let (reply, replied) = mpsc::channel();
        let order = Order::Snapshot(SnapshotOrder {
            directory: directory.to_owned(),
            reply,
        });
        let orders = self.orders.as_ref().ok_or(RecordError::Thread)?;
        orders.send(order).map_err(|_| RecordError::Thread)?;
        replied.recv().map_err(|_| RecordError::Thread)?
    }

    /// Ends the current chunk and begins the next; returns the directory of the chunk that ended.
    ///
    /// # Errors
    /// If the recording is not written as chunks, or has ended.
    pub fn rotate(&self) -> Result<PathBuf, RecordError> {
        let (reply, replied) = mpsc::channel();
        let orders = self.orders.as_ref().ok_or(RecordError::Thread)?;
        orders
            .send(Order::Rotate(reply))
            .map_err(|_| RecordError::Thread)?;
        replied.recv().map_err(|_| RecordError::Thread)?
    }

    /// Ends the recording. The trace is complete when this returns.
    ///
    /// # Errors
    /// If the trace could not be written.
    pub fn stop(self) -> Result<Summary, RecordError> {
        self.end(EndReason::Asked)
    }

    /// Ends the recording like [`Recording::stop`]; the reason is written to the trace.
    ///
    /// # Errors
    /// If the trace could not be written.
    pub fn end(mut self, reason: EndReason) -> Result<Summary, RecordError> {
        self.progress.end.set(reason);
        self.join()
    }

    fn join(&mut self) -> Result<Summary, RecordError> {
        drop(self.orders.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(RecordError::Thread),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.join();
        }
    }
}

impl Counters {
    pub(crate) fn get(&self) -> Progress {
        Progress {
            events: self.events.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            chunks: self.chunks.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set(&self, progress: Progress) {
        self.events.store(progress.events, Ordering::Relaxed);
        self.lost.store(progress.lost, Ordering::Relaxed);
        self.bytes.store(progress.bytes, Ordering::Relaxed);
        self.chunks.store(progress.chunks, Ordering::Relaxed);
    }
}
