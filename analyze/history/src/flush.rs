//! Flushes written data to the disk while more is produced, so that little remains to be flushed at
//! the end.

use std::fs::File;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Minimum number of new bytes for which the disk is asked to flush.
const WORTH: u64 = 8 << 20;

/// A thread that waits for the disk.
#[derive(Debug)]
pub(crate) struct Flusher {
    ask: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// End of the file at the last flush request.
    asked: u64,
}

impl Flusher {
    /// For a file of `end` bytes.
    ///
    /// # Errors
    /// If the operating system refuses a duplicate of the handle or a thread.
    pub(crate) fn new(file: &File, end: u64) -> io::Result<Flusher> {
        let file = file.try_clone()?;
        let (ask, asked) = sync_channel(1);
        let thread = std::thread::Builder::new().spawn(move || {
            for () in asked {
                // Errors are reported by the final flush.
                let _ = file.sync_data();
            }
        })?;
        Ok(Flusher {
            ask: Some(ask),
            thread: Some(thread),
            asked: end,
        })
    }

    /// The file now ends at that offset.
    pub(crate) fn wrote(&mut self, end: u64) {
        if end.saturating_sub(self.asked) < WORTH {
            return;
        }
        // If the previous flush is still in progress, a later call requests the next.
        if let Some(ask) = &self.ask
            && ask.try_send(()).is_ok()
        {
            self.asked = end;
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
