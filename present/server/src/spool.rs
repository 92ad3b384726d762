//! The executions of one kind as columns in a temporary file, from which packs of any size are
//! written in little memory.
//!
//! A database is read by rows and a pack is written by columns. One pass over the rows, in parts of
//! some thousand, appends each column's piece of a part to one file; a pack then reads the pieces
//! column by column. Memory contains the small tables of a database, the offsets of pieces, and a
//! hash of each distinct text.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use tracebraid_executions::database::{Column, Database, DatabaseError, ExecutionKind, Table};

use crate::Refusal;
use crate::export::Watch;

/// Number of executions in memory at a time.
pub(crate) const PART: usize = 4096;
/// Code of a missing text.
pub(crate) const NONE: u32 = u32::MAX;

/// A range of bytes of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    at: u64,
    bytes: u64,
}

/// A column: its piece of each part; `None` where the part has no values of the column.
pub(crate) type Pieces = Vec<Option<Piece>>;

/// Numbers, stored as doubles.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) pieces: Pieces,
    /// True if all numbers are known integers below 2^32.
    pub(crate) are_words: bool,
}

/// Texts of a column as codes, and the distinct texts in the order of codes, as JSON strings
/// separated by commas.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    pub(crate) pieces: Pieces,
    pub(crate) texts: Vec<Piece>,
    known: HashMap<[u64; 2], u32>,
}

/// Index of the file.
#[derive(Debug, Default)]
pub(crate) struct Spooled {
    /// Number of executions of each part.
    pub(crate) parts: Vec<usize>,
    pub(crate) executions: usize,
    pub(crate) entries: u64,
    /// Begin of the first execution, in nanoseconds from the origin of the database.
    pub(crate) origin: i64,
    pub(crate) ids: Pieces,
    pub(crate) begins: Pieces,
    pub(crate) sources: Pieces,
    pub(crate) threads: Pieces,
    /// Ends of the executions' entries.
    pub(crate) ends: Pieces,
    pub(crate) contexts: Pieces,
    pub(crate) times: Pieces,
    pub(crate) times_are_words: bool,
    pub(crate) figures: Vec<(Column, Numbers)>,
    pub(crate) texts: Vec<(Column, Codes)>,
}

/// A complete file with its index.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    pub(crate) of: Spooled,
}

/// A file that is being written.
struct Spooling<'d> {
    file: BufWriter<File>,
    at: u64,
    of: Spooled,
    /// By index of a thread: code of its name.
    thread_codes: &'d [Option<u32>],
    has_short_contexts: bool,
    columns: &'d [Column],
    figures: Vec<Option<Numbers>>,
    texts: Vec<Option<Codes>>,
    hashers: [RandomState; 2],
}

/// Reason for which a spool cannot be made.
enum Failed {
    Database(DatabaseError),
    File(io::Error),
}

impl From<DatabaseError> for Failed {
    fn from(error: DatabaseError) -> Failed {
        Failed::Database(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::File(error)
    }
}

impl Spool {
    /// Reads all executions of a kind into an unnamed file in `directory`, `part` executions at a
    /// time; `watch` receives the progress.
    pub(crate) fn new(
        database: &Database,
        kind: &ExecutionKind,
        thread_codes: &[Option<u32>],
        directory: &Path,
        (part, watch): (usize, &Watch),
    ) -> Result<Spool, Refusal> {
        let made = Spool::made(database, kind, thread_codes, directory, (part, watch));
        made.map_err(|failed| match failed {
            Failed::Database(error) => error.to_string(),
            Failed::File(error) => {
                // An export writes it to the directory of the page.
                let remedy = match directory == std::env::temp_dir() {
                    true => "; set TMPDIR to use another directory",
                    false => "",
                };
                let directory = directory.display();
                format!("{directory}: cannot write the temporary file: {error}{remedy}")
            }
        })
    }

    fn made(
        database: &Database,
        kind: &ExecutionKind,
        thread_codes: &[Option<u32>],
        directory: &Path,
        (part, watch): (usize, &Watch),
    ) -> Result<Spool, Failed> {
        let mut spooling = Spooling {
            file: BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(directory)?),
            at: 0,
            of: Spooled {
                origin: i64::MAX,
                times_are_words: true,
                ..Spooled::default()
            },
            thread_codes,
            has_short_contexts: has_short_contexts(database),
            columns: &database.columns,
            figures: database.columns.iter().map(|_| None).collect(),
            texts: database.columns.iter().map(|_| None).collect(),
            hashers: [RandomState::new(), RandomState::new()],
        };
        let mut done = 0;
        database.parts(kind, part, |table| -> Result<(), Failed> {
            spooling.take(&table)?;
            done += table.len() as u64;
            watch(done, kind.executions);
            Ok(())
        })?;
        Ok(spooling.finish()?)
    }

    /// Copies a piece.
    pub(crate) fn copy(&self, piece: Piece, to: &mut impl Write) -> io::Result<()> {
        let mut room = vec![0; 1 << 16];
        let (mut at, end) = (piece.at, piece.at + piece.bytes);
        while at < end {
            let count = room.len().min((end - at) as usize);
            let bytes = room.get_mut(..count).unwrap_or_default();
            self.file.read_exact_at(bytes, at)?;
            to.write_all(bytes)?;
            at += count as u64;
        }
        Ok(())
    }

    /// A piece of 8-byte numbers.
    pub(crate) fn words(&self, piece: Piece) -> io::Result<Vec<[u8; 8]>> {
        let mut bytes = vec![0; piece.bytes as usize];
        self.file.read_exact_at(&mut bytes, piece.at)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.to_vec())
    }

    /// A piece of 4-byte numbers.
    pub(crate) fn short_words(&self, piece: Piece) -> io::Result<Vec<u32>> {
        let mut bytes = vec![0; piece.bytes as usize];
        self.file.read_exact_at(&mut bytes, piece.at)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|&word| u32::from_le_bytes(word)).collect())
    }
}

impl Piece {
    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }
}

/// True if the indices of contexts fit into two bytes.
pub(crate) fn has_short_contexts(database: &Database) -> bool {
    database.union.contexts.count() <= 1 << 16
}

/// True if a number is an integer below 2^32.
fn is_word(number: f64) -> bool {
    number.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&number)
}

impl Spooling<'_> {
    /// Appends numbers.
    fn put<const N: usize>(
        &mut self,
        numbers: impl Iterator<Item = [u8; N]>,
    ) -> io::Result<Option<Piece>> {
        let at = self.at;
        for number in numbers {
            self.file.write_all(&number)?;
            self.at += N as u64;
        }
        Ok(Some(Piece {
            at,
            bytes: self.at - at,
        }))
    }

    /// Appends the next executions.
    fn take(&mut self, table: &Table) -> io::Result<()> {
        let part = self.of.parts.len();
        self.fixed(table)?;
        for figures in &table.figures {
            let Some(place) = self
                .columns
                .iter()
                .position(|column| *column == figures.column)
            else {
                continue;
            };
            let piece = self.put(figures.values.iter().map(|value| value.to_le_bytes()))?;
            let Some(slot) = self.figures.get_mut(place) else {
                continue;
            };
            let numbers = slot.get_or_insert_with(|| Numbers {
                pieces: Pieces::new(),
                are_words: true,
            });
            numbers.are_words &= figures.values.iter().all(|&value| is_word(value));
            numbers.pieces.resize(part, None);
            numbers.pieces.push(piece);
        }
        for texts in &table.texts {
            let Some(place) = self
                .columns
                .iter()
                .position(|column| *column == texts.column)
            else {
                continue;
            };
            let mut codes = self
                .texts
                .get_mut(place)
                .and_then(Option::take)
                .unwrap_or_default();
            let by_part = self.codes_of(&mut codes, &texts.texts)?;
            let code = |code: &Option<u32>| {
                let code = code.and_then(|code| by_part.get(code as usize).copied());
                code.unwrap_or(NONE).to_le_bytes()
            };
            let piece = self.put(texts.codes.iter().map(code))?;
            codes.pieces.resize(part, None);
            codes.pieces.push(piece);
            if let Some(slot) = self.texts.get_mut(place) {
                *slot = Some(codes);
            }
        }
        self.of.parts.push(table.len());
        self.of.executions += table.len();
        Ok(())
    }

    /// Codes of texts; new texts are appended as JSON.
    fn codes_of(&mut self, codes: &mut Codes, texts: &[String]) -> io::Result<Vec<u32>> {
        let at = self.at;
        let mut found = Vec::with_capacity(texts.len());
        for text in texts {
            // 128 bits with two secret keys: collisions are practically impossible.
            let hash = [
                self.hashers[0].hash_one(text),
                self.hashers[1].hash_one(text),
            ];
            let next = codes.known.len() as u32;
            let code = *codes.known.entry(hash).or_insert(next);
            if code == next {
                let json = serde_json::to_string(text).map_err(io::Error::from)?;
                let comma = if next == 0 { "" } else { "," };
                self.file.write_all(comma.as_bytes())?;
                self.file.write_all(json.as_bytes())?;
                self.at += (comma.len() + json.len()) as u64;
            }
            found.push(code);
        }
        codes.texts.push(Piece {
            at,
            bytes: self.at - at,
        });
        Ok(found)
    }

    /// Appends the fixed columns of executions.
    fn fixed(&mut self, table: &Table) -> io::Result<()> {
        let piece = self.put(table.ids.iter().map(|id| id.to_le_bytes()))?;
        self.of.ids.push(piece);
        let first = table.begins.iter().copied().min();
        self.of.origin = self.of.origin.min(first.unwrap_or(i64::MAX));
        let piece = self.put(table.begins.iter().map(|begin| begin.to_le_bytes()))?;
        self.of.begins.push(piece);
        let source = |&source: &u32| u16::try_from(source).unwrap_or(u16::MAX).to_le_bytes();
        let piece = self.put(table.sources.iter().map(source))?;
        self.of.sources.push(piece);
        let known = self.thread_codes;
        let thread = |thread: &Option<u32>| {
            let code = thread.and_then(|id| known.get(id as usize).copied().flatten());
            code.unwrap_or(NONE).to_le_bytes()
        };
        let piece = self.put(table.threads.iter().map(thread))?;
        self.of.threads.push(piece);
        let before = self.of.entries;
        let end = |&end: &usize| {
            u32::try_from(before + end as u64)
                .unwrap_or(u32::MAX)
                .to_le_bytes()
        };
        let piece = self.put(table.rows.ends.iter().map(end))?;
        self.of.ends.push(piece);
        let entries = &table.rows.entries;
        let piece = match self.has_short_contexts {
            true => self.put(
                entries
                    .iter()
                    .map(|(context, _)| (context.0 as u16).to_le_bytes()),
            )?,
            false => self.put(entries.iter().map(|(context, _)| context.0.to_le_bytes()))?,
        };
        self.of.contexts.push(piece);
        let piece = self.put(entries.iter().map(|(_, time)| (*time as f64).to_le_bytes()))?;
        self.of.times.push(piece);
        self.of.times_are_words &= entries.iter().all(|(_, time)| u32::try_from(*time).is_ok());
        self.of.entries += entries.len() as u64;
        Ok(())
    }

    fn finish(self) -> io::Result<Spool> {
        let mut file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let mut of = self.of;
        if of.executions == 0 {
            of.origin = 0;
        }
        let parts = of.parts.len();
        for (place, numbers) in self.figures.into_iter().enumerate() {
            if let (Some(mut numbers), Some(column)) = (numbers, self.columns.get(place)) {
                // A missing value is unknown, not an integer.
                numbers.are_words &=
                    numbers.pieces.len() == parts && numbers.pieces.iter().all(Option::is_some);
                numbers.pieces.resize(parts, None);
                of.figures.push((column.clone(), numbers));
            }
        }
        for (place, codes) in self.texts.into_iter().enumerate() {
            if let (Some(mut codes), Some(column)) = (codes, self.columns.get(place)) {
                codes.pieces.resize(parts, None);
                codes.known = HashMap::new();
                of.texts.push((column.clone(), codes));
            }
        }
        Ok(Spool { file, of })
    }
}
