//! A window over a file: a mapped piece of it, where mapping is allowed ([`crate::mapping`]), or a
//! reused buffer that is filled by `pread`.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::mapping::{PIECE, Piece};

/// Default size of a window in bytes; the fastest size on common machines.
pub const WINDOW: usize = 128 * 1024;

thread_local! {
    /// Buffers of dropped windows, reused by later windows of this thread: returning memory to the
    /// system and touching new memory costs a tenth of reading.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Largest number of spare buffers of a thread.
const MOST_SPARE: usize = 4;

/// The bytes of a file in the window, starting at `offset`.
#[derive(Debug, Default)]
pub struct Window {
    buffer: Vec<u8>,
    /// All bytes of the window, if they are mapped.
    piece: Option<Piece>,
    offset: u64,
    filled: usize,
}

impl Drop for Window {
    fn drop(&mut self) {
        // Larger buffers were needed for a single long record.
        if self.buffer.len() == WINDOW {
            let buffer = std::mem::take(&mut self.buffer);
            // A thread that ends has no spare list any more.
            let _ = SPARE.try_with(|spare| {
                if let Ok(mut spare) = spare.try_borrow_mut()
                    && spare.len() < MOST_SPARE
                {
                    spare.push(buffer);
                }
            });
        }
    }
}

/// A spare buffer, or a new buffer, of at least this number of bytes.
fn buffer(size: usize) -> Vec<u8> {
    let spare = || {
        SPARE
            .try_with(|spare| spare.try_borrow_mut().ok()?.pop())
            .ok()
            .flatten()
    };
    let spare = if size <= WINDOW { spare() } else { None };
    spare.unwrap_or_else(|| vec![0; size])
}

impl Window {
    /// File offset of the first byte in the window.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes in the window.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        match &self.piece {
            Some(piece) => piece.bytes(),
            None => self.buffer.get(..self.filled).unwrap_or_default(),
        }
    }

    /// File offset after the last byte in the window.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.filled as u64)
    }

    /// Discards all bytes, so that the window can be filled from another file.
    pub fn clear(&mut self) {
        self.piece = None;
        self.filled = 0;
        self.offset = 0;
    }

    /// Maps at least the wanted bytes starting at `from`. False if that is not possible.
    fn map(&mut self, file: &File, from: u64, want: usize, limit: u64) -> bool {
        if self.piece.take().is_some() {
            self.filled = 0;
        }
        let end = from.saturating_add(PIECE.max(want as u64)).min(limit);
        self.piece = Piece::map(file, from, end);
        let Some(piece) = &self.piece else {
            return false;
        };
        self.filled = piece.bytes().len();
        self.offset = from;
        true
    }

    /// Whether the part of `from..from + want` before `limit` is in the window.
    pub(crate) fn holds(&self, from: u64, want: usize, limit: u64) -> bool {
        let want = u64::try_from(want).unwrap_or(u64::MAX);
        let want = want.min(limit.saturating_sub(from));
        let have = self.end().saturating_sub(from);
        from >= self.offset && have >= want && have > 0
    }

    /// Makes the part of `from..from + want` before `limit` available, and reads ahead as far as
    /// the buffer allows; the buffer has at least `size` bytes. Bytes before `from` are discarded.
    ///
    /// # Errors
    /// If reading fails. A file that ends early leaves fewer bytes in the window, which is not an
    /// error here.
    pub fn ensure(
        &mut self,
        file: &File,
        from: u64,
        want: usize,
        limit: u64,
        size: usize,
    ) -> io::Result<()> {
        if self.holds(from, want, limit) {
            return Ok(());
        }
        let want = u64::try_from(want)
            .unwrap_or(u64::MAX)
            .min(limit.saturating_sub(from)) as usize;
        let have = (self.offset + self.filled as u64).saturating_sub(from);
        // Smaller windows are used if many files are read at once.
        if size >= WINDOW && self.map(file, from, want, limit) {
            return Ok(());
        }
        let have = have.min(self.filled as u64);
        if from >= self.offset && have > 0 {
            let start = (from - self.offset) as usize;
            self.buffer.copy_within(start..self.filled, 0);
            self.filled -= start;
        } else {
            self.filled = 0;
        }
        self.offset = from;
        let size = size.max(want);
        if self.buffer.is_empty() {
            self.buffer = buffer(size);
        } else if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        let room = (limit.saturating_sub(from + self.filled as u64))
            .min((self.buffer.len() - self.filled) as u64);
        let mut target = self
            .buffer
            .get_mut(self.filled..self.filled + room as usize)
            .unwrap_or_default();
        while !target.is_empty() {
            match file.read_at(target, self.offset + self.filled as u64) {
                Ok(0) => break,
                Ok(count) => {
                    self.filled += count;
                    target = target.get_mut(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
