//! Has what was written go to the disk while more is made, so that there is little left to wait for
//! in the end.

use std::fs::File;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Bytes from which on it is worth asking the disk.
const WORTH: u64 = 8 << 20;

/// A thread that waits for the disk.
#[derive(Debug)]
pub(crate) struct Flusher {
    ask: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Where the file ended when the disk was asked last.
    asked: u64,
}

impl Flusher {
    /// For a file that is empty, or holds so many bytes.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub(crate) fn new(file: &File, end: u64) -> io::Result<Flusher> {
        let file = file.try_clone()?;
        let (ask, asked) = sync_channel(1);
        let thread = std::thread::Builder::new().spawn(move || {
            for () in asked {
                // What cannot be written is told when all of it has to be.
                let _ = file.sync_data();
            }
        })?;
        Ok(Flusher {
            ask: Some(ask),
            thread: Some(thread),
            asked: end,
        })
    }

    /// The file ends there now.
    pub(crate) fn wrote(&mut self, end: u64) {
        if end.saturating_sub(self.asked) < WORTH {
            return;
        }
        // If the disk has not answered yet, the next time will do.
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
