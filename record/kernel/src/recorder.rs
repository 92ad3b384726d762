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

/// A recording that runs. Dropping it stops it, without saying whether all was well.
#[derive(Debug)]
pub struct Recording {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<Result<Summary, RecordError>>>,
    progress: Arc<Counters>,
    processes: Processes,
}

/// What the thread does on request; it ends when there is no sender any more.
pub(crate) enum Order {
    /// To write what is in memory into that directory.
    Snapshot(SnapshotOrder),
    /// To begin a new chunk; the reply is the directory of the one that has ended.
    Rotate(Sender<Result<PathBuf, RecordError>>),
}

/// A request to write the events in memory into a directory.
pub(crate) struct SnapshotOrder {
    pub(crate) directory: PathBuf,
    pub(crate) reply: Sender<Result<Progress, RecordError>>,
}

/// What has been recorded up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events that were written.
    pub events: u64,
    /// Events that found no room.
    pub lost: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Chunks that have begun; 0 if the trace is not written as chunks.
    pub chunks: u64,
}

/// What has been recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// In all.
    pub total: Progress,
    /// By CPU, events that found no room.
    pub lost: Vec<u64>,
    /// Chosen events that the kernel left out, since they interrupted others on their CPU.
    pub missed: u64,
    /// Number of calls of chosen functions whose return was not recorded because too many calls
    /// were nested.
    pub omitted_returns: u64,
    /// System calls and page faults that conditions left out.
    pub left_out: u64,
    /// Tracepoints that were wanted and that this kernel does not have.
    pub missing: Vec<String>,
    /// Chosen events that a pattern matches, and that the kernel refuses to record.
    pub refused: Vec<RefusedEvent>,
    /// Processes that were made by others that are followed, and could not be followed: there were
    /// too many.
    pub unfollowed: u32,
    /// It ended because the disk was full: up to its end all that was lost is counted.
    pub disk_is_full: bool,
    /// A system call was recorded.
    pub has_calls: bool,
    /// Processes that were to be followed and had ended before the recording began.
    pub ended: Vec<u32>,
    /// No files of processes could be listed: there is no /proc.
    pub lacks_proc: bool,
    /// Stacks of waits were recorded, if they were wanted.
    pub has_waits: bool,
}

impl Summary {
    /// A sentence on the events of patterns that the kernel refuses, with the names of some of
    /// them; `None` if there are none.
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
            "{count} that patterns of --event match {verb} not recorded, since the kernel refuses {them} ({}): {}",
            first.reason,
            some_of(&names)
        ))
    }
}

/// An event of a pattern that is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEvent {
    /// Its kind and name.
    pub event: String,
    /// The kernel's reason.
    pub reason: String,
}

/// State that the recorder thread and its owner share.
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
    /// Begins to record into that directory, which is made. When this returns, events are being
    /// recorded.
    ///
    /// # Errors
    /// When the kernel does not let this process, or a file cannot be written.
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
            // It ended before it could say that all is well.
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

    /// What has been recorded up to now.
    pub fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// True if it has ended by itself: it cannot go on, and [`Recording::stop`] says why.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Conditions that have held since the last call: for each, what is in memory should be
    /// written.
    pub fn held(&self) -> Vec<Held> {
        self.progress
            .held
            .lock()
            .map_or_else(|_| Vec::new(), |mut held| std::mem::take(&mut held))
    }

    /// Writes what is in memory as a trace into that directory, which must not be there; the
    /// recording goes on.
    ///
    /// # Errors
    /// When the recording keeps nothing in memory, or has ended; when the trace cannot be written.
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

    /// Ends the chunk now, and begins the next one; gives the directory of the one that has ended.
    ///
    /// # Errors
    /// When the recording is not written as chunks, or has ended.
    pub fn rotate(&self) -> Result<PathBuf, RecordError> {
        let (reply, replied) = mpsc::channel();
        let orders = self.orders.as_ref().ok_or(RecordError::Thread)?;
        orders
            .send(Order::Rotate(reply))
            .map_err(|_| RecordError::Thread)?;
        replied.recv().map_err(|_| RecordError::Thread)?
    }

    /// Ends the recording: the trace is whole when this returns.
    ///
    /// # Errors
    /// When the trace could not be written.
    pub fn stop(self) -> Result<Summary, RecordError> {
        self.end(EndReason::Asked)
    }

    /// Ends the recording as [`Recording::stop`]; the trace contains the reason.
    ///
    /// # Errors
    /// When the trace could not be written.
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
