//! Consecutive bytes that wait to be written to a file.
//!
//! Only the offsets of blocks in a file are assigned in sequence. Any thread writes the blocks,
//! several at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Size from which on a batch is written, in bytes.
const WORTH: u64 = 1 << 20;

/// Consecutive bytes of a file.
#[derive(Debug)]
pub(crate) struct Batch {
    file: Arc<File>,
    begin: u64,
    end: u64,
    parts: Vec<Vec<u8>>,
}

impl Batch {
    /// An empty batch at offset `begin` of a file.
    pub(crate) fn new(file: Arc<File>, begin: u64) -> Batch {
        Batch {
            file,
            begin,
            end: begin,
            parts: Vec::new(),
        }
    }

    /// Offset of the next bytes in the file.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Adds bytes. Returns their offset in the file.
    pub(crate) fn add(&mut self, bytes: Vec<u8>) -> u64 {
        let offset = self.end;
        self.end += bytes.len() as u64;
        self.parts.push(bytes);
        offset
    }

    /// Takes out the bytes if there are at least [`WORTH`].
    pub(crate) fn take_full(&mut self) -> Option<Batch> {
        (self.end - self.begin >= WORTH).then(|| self.take())
    }

    /// Takes out the bytes. Bytes that are added later follow them in the file.
    pub(crate) fn take(&mut self) -> Batch {
        let rest = Batch::new(self.file.clone(), self.end);
        std::mem::replace(self, rest)
    }

    /// Writes the batch. Returns its number of bytes.
    ///
    /// # Errors
    /// When the operating system refuses to write.
    pub(crate) fn write(self) -> io::Result<u64> {
        let mut offset = self.begin;
        for part in self.parts {
            self.file.write_all_at(&part, offset)?;
            offset += part.len() as u64;
        }
        Ok(offset - self.begin)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn batches_are_written_in_any_order() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all_at(b"head", 0).expect("written");
        let mut batch = Batch::new(Arc::new(file.try_clone().expect("a file")), 4);
        let mut expected = b"head".to_vec();
        let mut full = Vec::new();
        for number in 0..40_u8 {
            let bytes = vec![number; 100_000 + usize::from(number)];
            assert_eq!(batch.add(bytes.clone()), expected.len() as u64);
            expected.extend(bytes);
            full.extend(batch.take_full());
        }
        assert!(full.len() > 2, "{}", full.len());
        full.push(batch.take());
        let written = full
            .into_iter()
            .rev()
            .map(|batch| batch.write().expect("written"));
        assert_eq!(written.sum::<u64>(), expected.len() as u64 - 4);
        assert_eq!(batch.end(), expected.len() as u64);
        let mut found = Vec::new();
        file.read_to_end(&mut found).expect("read");
        assert!(found == expected);
    }
}
