//! Kinds of files, by their first bytes: a command replaces only files of the kind that it writes.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use tracebraid_executions::database::APPLICATION;
use tracebraid_history::is_history;

use crate::archives;
use crate::failure::Failure;

/// Number of bytes read to find the kind.
const HEAD: u64 = 512;

/// The kind of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A history, whole or damaged.
    History,
    /// A database of executions.
    Executions,
    /// Corrections of clocks, written by `sync -o`.
    Clocks,
    /// An SQLite database of another program.
    Sqlite,
    /// An archive or a compressed file.
    Packed,
    /// A perf or trace-cmd recording.
    Recording,
    /// A stream or the metadata of a CTF trace.
    Trace,
    Text,
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::History => "a history",
            FileKind::Executions => "a database of executions",
            FileKind::Clocks => "a file of clock corrections",
            FileKind::Sqlite => "an SQLite database of another program",
            FileKind::Packed => "an archive or a compressed file",
            FileKind::Recording => "a perf or trace-cmd recording",
            FileKind::Trace => "a file of a CTF trace",
            FileKind::Text => "a text file",
            FileKind::Other => "a file of another program",
        })
    }
}

impl FileKind {
    /// The kind of a file; `None` if the path is not a regular file, or the file is empty, as
    /// `mktemp` creates it.
    pub(crate) fn of(path: &Path) -> Option<FileKind> {
        let is_file = |about: &std::fs::Metadata| about.is_file() && about.len() > 0;
        path.metadata().ok().filter(is_file)?;
        let mut head = Vec::new();
        let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
        Some(match () {
            () if read.is_err() => FileKind::Other,
            () if is_history(&head) => FileKind::History,
            () if is_of_trace(&head) => FileKind::Trace,
            () if head.starts_with(b"SQLite format 3\0") => of_database(&head),
            () if tracebraid_import::is_importable(path) => FileKind::Recording,
            () if archives::is_packed(path) => FileKind::Packed,
            () => of_text(&head),
        })
    }

    /// Refuses to write an export in place of recorded or computed data.
    ///
    /// # Errors
    /// When `path` is a recording, a history or a database.
    pub(crate) fn check_export(path: &Path) -> Result<(), Failure> {
        match FileKind::of(path) {
            None | Some(FileKind::Clocks | FileKind::Packed | FileKind::Text | FileKind::Other) => {
                Ok(())
            }
            Some(kind) => Err(Failure::usage(format!(
                "{}: refusing to overwrite {kind}: choose another name, or remove the file first",
                path.display()
            ))),
        }
    }

    /// Refuses to write a file of this kind in place of one of another kind.
    ///
    /// # Errors
    /// When `path` is a file of another kind.
    pub(crate) fn check_target(self, path: &Path) -> Result<(), Failure> {
        match FileKind::of(path).filter(|&kind| kind != self) {
            None => Ok(()),
            Some(other) => Err(Failure::usage(format!(
                "{}: refusing to overwrite {other} with {self}: choose another name, or remove the file first",
                path.display()
            ))),
        }
    }
}

/// Whether a file begins as a packet or as metadata of CTF, in either byte order.
fn is_of_trace(head: &[u8]) -> bool {
    const PACKET: u32 = 0xc1fc_1fc1;
    const METADATA: u32 = 0x75d1_1d57;
    let magic = head.first_chunk::<4>();
    let is_magic = |&bytes: &[u8; 4]| {
        let both = [u32::from_le_bytes(bytes), u32::from_be_bytes(bytes)];
        both.contains(&PACKET) || both.contains(&METADATA)
    };
    magic.is_some_and(is_magic) || head.starts_with(b"/* CTF 1.8")
}

/// The kind of an SQLite database, whose header contains the id of its application.
fn of_database(head: &[u8]) -> FileKind {
    const APPLICATION_AT: usize = 68;
    match head.get(APPLICATION_AT..APPLICATION_AT + 4) == Some(&APPLICATION.to_be_bytes()) {
        true => FileKind::Executions,
        false => FileKind::Sqlite,
    }
}

fn of_text(head: &[u8]) -> FileKind {
    // The last character may be cut.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return FileKind::Other,
    };
    let is_binary = |letter: char| letter.is_control() && !letter.is_ascii_whitespace();
    match () {
        () if text.contains(is_binary) => FileKind::Other,
        () if text.trim_start().starts_with('{') && text.contains("\"tracebraid_sync\"") => {
            FileKind::Clocks
        }
        () => FileKind::Text,
    }
}
