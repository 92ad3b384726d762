//! A window over a file: a piece of it that is mapped, where that is allowed ([`crate::mapping`]),
//! or a reused buffer that is filled by `pread`.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::mapping::{PIECE, Piece};

/// Bytes of a window that nothing forces to be larger; the fastest size on common machines.
pub const WINDOW: usize = 128 * 1024;

thread_local! {
    /// Buffers of windows that are no more, for the next ones of this thread: giving memory back
    /// to the system and touching it anew costs a tenth of reading.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Spare buffers that a thread keeps at most.
const MOST_SPARE: usize = 4;

/// The bytes of a file from `offset` on that are at hand.
#[derive(Debug, Default)]
pub struct Window {
    buffer: Vec<u8>,
    /// All bytes at hand, if they are mapped.
    piece: Option<Piece>,
    offset: u64,
    filled: usize,
}

impl Drop for Window {
    fn drop(&mut self) {
        // Grown ones were for a single long record.
        if self.buffer.len() == WINDOW {
            let buffer = std::mem::take(&mut self.buffer);
            // A thread that ends has no spare place any more.
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

/// A spare buffer, or a new one, of at least that many bytes.
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
    /// File offset of the first byte at hand.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes at hand.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        match &self.piece {
            Some(piece) => piece.bytes(),
            None => self.buffer.get(..self.filled).unwrap_or_default(),
        }
    }

    /// File offset behind the last byte at hand.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.filled as u64)
    }

    /// Forgets all bytes: the next fill is for another file.
    pub fn clear(&mut self) {
        self.piece = None;
        self.filled = 0;
        self.offset = 0;
    }

    /// Maps from `from` on at least what is wanted. Whether that could be.
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

    /// Whether `from..from + want` is at hand as far as it lies before `limit`.
    pub(crate) fn holds(&self, from: u64, want: usize, limit: u64) -> bool {
        let want = u64::try_from(want).unwrap_or(u64::MAX);
        let want = want.min(limit.saturating_sub(from));
        let have = self.end().saturating_sub(from);
        from >= self.offset && have >= want && have > 0
    }

    /// Makes `from..from + want` of the file available as far as it lies before `limit`, reading
    /// ahead as far as the buffer goes; the buffer has at least `size` bytes. What is before
    /// `from` is forgotten.
    ///
    /// # Errors
    /// Those of reading. A file that ended early leaves fewer bytes at hand, which is no error here.
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
        // Less is wanted at a time where many files are read at once.
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
