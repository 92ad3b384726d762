//! A recording as chunks: each is a complete trace, and the oldest may be removed during the
//! recording.
//!
//! When a chunk is due, all lanes are released up to one time, at which all its streams end and
//! those of the next chunk begin. It is the time of the first event that has no room, or a time up
//! to which all rings have been emptied. All chunks have the same metadata, so that readers join
//! them to one trace. Packet numbers and counts of lost events continue from chunk to chunk, as in
//! LTTng's archives: a joined trace shows no gap between two chunks.
//!
//! A chunk has its final name from the beginning. LTTng renames an archive when it is complete,
//! which breaks readers that have found its files and not opened them yet.
//!
//! The thread that dumps the state at the beginning of the recording also dumps it for each chunk;
//! no other chunk begins meanwhile. A separate thread removes old chunks, since unlinking large
//! files takes long enough for rings to overflow.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use tracebraid_ctf::write::WriteError;

use crate::recorder::Progress;

/// Limits at which a new chunk begins, and the number of chunks that are kept.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// Maximum size of the files of a chunk in bytes. A chunk that fills faster than its state dump
    /// completes becomes larger.
    pub bytes: Option<u64>,
    /// Maximum duration of a chunk.
    pub period: Option<Duration>,
    /// Number of chunks that are kept, including the current one; `None` keeps all.
    pub keep: Option<usize>,
    /// Returns date and time for the name of a chunk that begins now. The caller chooses the time
    /// zone.
    pub stamp: fn() -> String,
}

/// Prefix of the names of chunks.
pub const CHUNK: &str = "chunk-";

/// The finished chunks of a recording.
pub(crate) struct Chunks {
    directory: PathBuf,
    rotation: Rotation,
    /// Number of chunks begun.
    begun: u64,
    /// Oldest first.
    finished: VecDeque<Finished>,
    /// Totals of all finished chunks, including removed ones.
    written: Progress,
    remover: Remover,
}

struct Finished {
    path: PathBuf,
    bytes: u64,
}

impl Chunks {
    pub(crate) fn new(directory: &Path, rotation: Rotation) -> Chunks {
        Chunks {
            directory: directory.to_owned(),
            rotation,
            begun: 0,
            finished: VecDeque::new(),
            written: Progress::default(),
            remover: Remover::default(),
        }
    }

    /// The directory of the next chunk's trace, which counts from the call of [`Chunks::has_begun`]
    /// on.
    pub(crate) fn next(&self) -> PathBuf {
        let name = format!("{CHUNK}{:06}-{}", self.begun + 1, (self.rotation.stamp)());
        self.directory.join(name).join("kernel")
    }

    pub(crate) fn has_begun(&mut self) {
        self.begun += 1;
    }

    /// Counts a finished chunk with its trace directory and the size of its files. Removes the
    /// oldest chunks if there are too many, including the current one.
    pub(crate) fn has_finished(&mut self, trace: &Path, written: Progress, bytes: u64) {
        self.written = self.total(written);
        let path = trace.parent().unwrap_or(trace).to_owned();
        self.finished.push_back(Finished { path, bytes });
        let Some(keep) = self.rotation.keep else {
            return;
        };
        while self.finished.len() >= keep.max(1)
            && let Some(oldest) = self.finished.pop_front()
        {
            self.remover.remove(&oldest.path);
        }
    }

    /// Totals of all chunks, given the counts of the current chunk.
    pub(crate) fn total(&self, current: Progress) -> Progress {
        Progress {
            events: self.written.events + current.events,
            lost: self.written.lost + current.lost,
            bytes: self.written.bytes + current.bytes,
            chunks: self.begun,
        }
    }

    /// Size in bytes of the files of finished chunks that still exist.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.finished.iter().map(|chunk| chunk.bytes).sum()
    }
}

/// Removes the directory of a chunk that could not be started.
pub(crate) fn forget(trace: &Path) {
    let _ = fs::remove_dir_all(trace);
    // The directory contains nothing else.
    let _ = trace.parent().map(fs::remove_dir);
}

/// Removes chunks in a separate thread: unlinking a file of a gigabyte takes long enough for rings
/// to overflow.
///
/// A chunk is first renamed to a hidden name, at once with all of its files: readers ignore hidden
/// directories.
#[derive(Default)]
struct Remover {
    to: Option<SyncSender<PathBuf>>,
    thread: Option<JoinHandle<()>>,
}

impl Remover {
    fn remove(&mut self, chunk: &Path) {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(chunk.file_name().unwrap_or_default());
        let hidden = chunk.with_file_name(hidden);
        // The user may have moved the chunk away.
        if fs::rename(chunk, &hidden).is_err() {
            return;
        }
        if self.to.is_none() {
            self.start();
        }
        let sent = self.to.as_ref().map(|to| to.send(hidden.clone()));
        if !matches!(sent, Some(Ok(()))) {
            let _ = fs::remove_dir_all(&hidden);
        }
    }

    fn start(&mut self) {
        // No queue: if chunks are filled faster than they are removed, the recorder waits, and the
        // disk stays bounded.
        let (to, paths) = mpsc::sync_channel::<PathBuf>(0);
        let thread = std::thread::Builder::new()
            .name("tracebraid-rm".into())
            .spawn(move || {
                for path in paths {
                    let _ = fs::remove_dir_all(path);
                }
            });
        self.thread = thread.ok();
        self.to = self.thread.as_ref().map(|_| to);
    }
}

/// Waits until all hidden directories have been removed.
impl Drop for Remover {
    fn drop(&mut self) {
        drop(self.to.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The result of beginning a new chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotated {
    Done,
    /// The disk is full. The previous chunk continues if the new chunk could not be started.
    DiskFull,
}

/// Decides whether to retry after an error, because the reserved disk space was released.
pub(crate) type Gives<'g> = dyn FnMut(&WriteError) -> bool + 'g;

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(directory: &Path, keep: Option<usize>) -> Chunks {
        let rotation = Rotation {
            bytes: None,
            period: None,
            keep,
            stamp: || "20261125-141500".to_owned(),
        };
        Chunks::new(directory, rotation)
    }

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<String> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_newest_chunks_stay_and_all_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let mut chunks = chunks(directory.path(), Some(2));
        let one = Progress {
            events: 10,
            lost: 1,
            bytes: 100,
            chunks: 0,
        };
        for number in 1..=4u64 {
            let trace = chunks.next();
            assert!(trace.ends_with(format!("chunk-{number:06}-20261125-141500/kernel")));
            fs::create_dir_all(&trace).unwrap();
            fs::write(trace.join("metadata"), "text").unwrap();
            chunks.has_begun();
            chunks.has_finished(&trace, one, 100);
        }
        assert_eq!(chunks.file_bytes(), 100);
        let total = chunks.total(one);
        assert_eq!(
            (total.events, total.lost, total.bytes, total.chunks),
            (50, 5, 500, 4)
        );
        drop(chunks);
        assert_eq!(names(directory.path()), ["chunk-000004-20261125-141500"]);
    }

    #[test]
    fn without_a_number_all_chunks_stay() {
        let directory = tempfile::tempdir().unwrap();
        let mut chunks = chunks(directory.path(), None);
        for _ in 0..3 {
            let trace = chunks.next();
            fs::create_dir_all(&trace).unwrap();
            chunks.has_begun();
            chunks.has_finished(&trace, Progress::default(), 7);
        }
        let abandoned = chunks.next();
        fs::create_dir_all(&abandoned).unwrap();
        forget(&abandoned);
        assert_eq!(chunks.file_bytes(), 21);
        drop(chunks);
        assert_eq!(names(directory.path()).len(), 3);
    }
}
