//! The files of a stream, with a window over one of them.
//!
//! A trace may have thousands of streams, which are all read at once when event records are merged
//! by time, and a process may have few files open (often 1024). So if many files are open, a file
//! is closed once its part is in the window, and opened again for the next part.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::damage::Damage;
use crate::stream::{DataFile, Packet};
use crate::window::Window;

/// Number of files that stay open, if the process may open several times as many.
const MOST_OPEN: u64 = 256;
/// Files stay open up to this fraction of the process's limit: 1/`SHARE`.
const SHARE: u64 = 4;

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Reads from the files of a stream.
#[derive(Debug, Default)]
pub(crate) struct Source {
    window: Window,
    /// Index of the file that the window belongs to.
    index: Option<u32>,
    file: Option<Opened>,
    /// The file could not be opened, and this has been reported.
    is_missing: bool,
}

impl Source {
    /// The window over the current file.
    #[inline(always)]
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// Whether no data of the file is available because it cannot be opened.
    pub(crate) fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// Makes `from..from + want` of a file available, like [`Window::ensure`], in a window of
    /// `size` bytes.
    ///
    /// # Errors
    /// If the range cannot be read. A file that cannot be opened is reported once.
    pub(crate) fn fill(
        &mut self,
        files: &[DataFile],
        index: u32,
        (from, want): (u64, usize),
        size: usize,
    ) -> Result<(), Damage> {
        let Some(DataFile { path, bytes, .. }) = files.get(index as usize) else {
            return Ok(());
        };
        if self.index != Some(index) {
            self.window.clear();
            self.file = None;
            self.is_missing = false;
            self.index = Some(index);
        }
        if self.is_missing || self.window.holds(from, want, *bytes) {
            return Ok(());
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => Opened::new(path).map_err(|error| {
                self.is_missing = true;
                Damage::of(path, why_missing(&error))
            })?,
        };
        let filled = self.window.ensure(&file.0, from, want, *bytes, size);
        self.file = file.kept();
        filled.map_err(|error| Damage::at(path, from, format!("cannot be read: {error}")))
    }
}

fn why_missing(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "has been removed since the trace was opened (recordings with --keep remove their \
             oldest chunks): its remaining events are missing"
                .to_owned()
        }
        _ => format!("cannot be opened: {error}"),
    }
}

/// An open file, which counts towards the limit.
#[derive(Debug)]
struct Opened(File);

impl Opened {
    fn new(path: &Path) -> io::Result<Opened> {
        let file = File::open(path)?;
        OPEN.fetch_add(1, Ordering::Relaxed);
        Ok(Opened(file))
    }

    /// `None` if too many files are open.
    fn kept(self) -> Option<Opened> {
        (OPEN.load(Ordering::Relaxed) <= most()).then_some(self)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

fn most() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = limit.map_or(MOST_OPEN, |limit| (limit / SHARE).min(MOST_OPEN));
        usize::try_from(most).unwrap_or(usize::MAX)
    })
}

/// The part of the packet that is in the window.
pub(crate) fn slice<'w>(window: &'w Window, packet: &Packet) -> Option<(&'w [u8], u64)> {
    let bytes = window.bytes();
    let (start, base) = match packet.offset.checked_sub(window.offset()) {
        Some(start) => (start as usize, 0),
        None => (0, window.offset() - packet.offset),
    };
    let left = packet.bytes.checked_sub(base)?;
    let data = bytes.get(start..)?;
    Some((data.get(..left as usize).unwrap_or(data), base))
}
