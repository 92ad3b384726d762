//! Traces on disk: finds, opens and joins directories with a `metadata` file.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::clock::OUT_OF_RANGE;
use crate::damage::Damage;
use crate::index::IndexCheck;
use crate::layout::TraceLayout;
use crate::packets::{self, FileScan};
use crate::special::special;
use crate::stream::{DataFile, Packet, Stream};
use crate::trace::{OpenError, Trace, TraceSet};

impl Trace {
    /// Opens the trace in this directory, without its subdirectories.
    ///
    /// # Errors
    /// If the metadata cannot be read. Damage of data streams is recorded in the trace.
    pub fn open(directory: &Path) -> Result<Trace, OpenError> {
        Self::open_checking(directory, IndexCheck::Ends)
    }

    fn open_checking(directory: &Path, check: IndexCheck) -> Result<Trace, OpenError> {
        if directory.is_file() {
            let path = directory.to_owned();
            return Err(OpenError::NotDirectory { path });
        }
        let metadata_path = directory.join("metadata");
        let io_error = |path: &Path| {
            let path = path.to_owned();
            move |error| OpenError::Io { path, error }
        };
        let text = std::fs::read(&metadata_path).map_err(io_error(&metadata_path))?;
        let class = crate::metadata::parse(&text).map_err(|error| OpenError::Metadata {
            path: metadata_path.clone(),
            error: Box::new(error),
        })?;
        Self::with_layout(
            directory,
            Arc::new(text),
            Arc::new(TraceLayout::new(Arc::new(class))),
            check,
        )
    }

    fn with_layout(
        directory: &Path,
        metadata: Arc<Vec<u8>>,
        layout: Arc<TraceLayout>,
        index_check: IndexCheck,
    ) -> Result<Trace, OpenError> {
        let mut trace = Trace {
            paths: vec![directory.to_owned()],
            origin: None,
            layout,
            metadata_bytes: metadata.len() as u64,
            metadata,
            streams: Vec::new(),
            damage: Vec::new(),
            notes: Vec::new(),
            correction: None,
            is_synchronized: false,
            mixed_cpus: OnceLock::new(),
            index_check,
        };
        let io_error = |error| OpenError::Io {
            path: directory.to_owned(),
            error,
        };
        for path in data_files(directory).map_err(io_error)? {
            trace.add_file(directory, &path);
        }
        trace.join_rotated_files();
        let strays = crate::misplaced::stray_ends(&trace);
        trace.notes.extend(strays);
        Ok(trace)
    }

    fn add_file(&mut self, directory: &Path, path: &Path) {
        let name = path.file_name().unwrap_or_default();
        let mut index = directory.join("index").join(name).into_os_string();
        index.push(".idx");
        let index = PathBuf::from(index);
        let index = index
            .is_file()
            .then_some((index.as_path(), self.index_check));
        let scanned = std::fs::metadata(path).and_then(|meta| {
            let bytes = meta.len();
            let scans = packets::find(&self.layout, path, bytes, index, &mut self.damage)?;
            Ok((bytes, scans))
        });
        match scanned {
            Ok((bytes, scans)) => {
                if bytes == 0 && !is_being_written(directory, name) {
                    self.notes.push(Damage::of(
                        path,
                        "the stream file is empty: it has no packets",
                    ));
                }
                for mut scan in scans {
                    let unclear = std::mem::take(&mut scan.unclear);
                    let firsts = std::mem::take(&mut scan.firsts);
                    let mut stream = stream_of(scan, path, bytes);
                    for index in unclear {
                        let content = crate::reader::written_content(self, &stream, index);
                        if let (Some(content), Some(packet)) =
                            (content, stream.packets.get_mut(index))
                        {
                            packet.content_bits = content;
                        }
                    }
                    stream.mend_times(path, &mut self.damage);
                    stream.learn_begins(&firsts);
                    let far = self.out_of_range(&stream, path);
                    if let Some(file) = stream.files.first_mut() {
                        file.is_out_of_range = far.is_some();
                    }
                    self.damage.extend(far);
                    self.streams.push(stream);
                }
            }
            Err(error) => self
                .damage
                .push(Damage::of(path, format!("cannot be read: {error}"))),
        }
    }

    /// Damage for the packets of a stream whose times are out of range. The stream has a single
    /// file.
    fn out_of_range(&self, stream: &Stream, path: &Path) -> Option<Damage> {
        let clock = self.clock(stream)?;
        let is_far = |packet: &&Packet| {
            let mut times = [packet.clock, packet.end].into_iter().flatten();
            times.any(|time| clock.is_out_of_range(time))
        };
        let packet = stream.packets.iter().find(is_far)?;
        let message = match stream.packets.iter().filter(is_far).count() {
            1 => format!("the packet's time {OUT_OF_RANGE}"),
            count => format!("the time of {count} packets from here on {OUT_OF_RANGE}"),
        };
        Some(Damage::at(path, packet.offset, message))
    }

    /// Joins the files of a stream (by class and stream id), in the order of time.
    fn join_rotated_files(&mut self) {
        let mut joined: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        let mut streams: Vec<Stream> = Vec::new();
        for stream in std::mem::take(&mut self.streams) {
            let key = stream.id.map(|id| (stream.class, id));
            match key.and_then(|key| joined.get(&key).copied()) {
                Some(at) => streams[at].join(stream),
                None => {
                    key.map(|key| joined.insert(key, streams.len()));
                    streams.push(stream);
                }
            }
        }
        let mut repeated = 0;
        for stream in &mut streams {
            repeated += stream.order();
            stream.learn_order();
        }
        self.streams = streams;
        if let (1.., Some(path)) = (repeated, self.paths.last()) {
            let are = match repeated {
                1 => "1 packet is in two directories".to_owned(),
                count => format!("{count} packets are in two directories"),
            };
            let message =
                format!("{are} of this trace (snapshots overlap, or one is a copy): read once");
            self.notes.push(Damage::of(path, message));
        }
    }

    /// True if both are parts of the same trace: the metadata of one begins with the metadata of
    /// the other. A tracer appends to the metadata as programs start.
    fn is_of_one(&self, other: &Trace) -> bool {
        let (a, b) = (&self.metadata, &other.metadata);
        self.uuid().is_some()
            && self.uuid() == other.uuid()
            && (a.starts_with(b.as_slice()) || b.starts_with(a.as_slice()))
    }

    /// The same directories, read with the metadata of `other`. Directories that cannot be read
    /// again are left out.
    fn with_metadata_of(self, other: &Trace) -> Trace {
        let mut parts = self.paths.iter().filter_map(|path| {
            let (metadata, layout) = (other.metadata.clone(), other.layout.clone());
            Self::with_layout(path, metadata, layout, self.index_check).ok()
        });
        let Some(mut trace) = parts.next() else {
            return self;
        };
        parts.for_each(|part| trace.absorb(part));
        trace.metadata_bytes = self.metadata_bytes;
        trace
    }

    /// Takes over the streams of another part of the same trace. Parts of a stream are joined
    /// later, when all parts have been added.
    fn absorb(&mut self, mut other: Trace) {
        if other.metadata.len() > self.metadata.len() {
            // All parts are read with the longest metadata.
            let part = std::mem::replace(self, other);
            other = part.with_metadata_of(self);
            self.paths.splice(0..0, std::mem::take(&mut other.paths));
        } else if other.metadata.len() < self.metadata.len() {
            other = other.with_metadata_of(self);
        }
        self.paths.extend(other.paths);
        self.damage.extend(other.damage);
        self.notes.extend(other.notes);
        self.metadata_bytes += other.metadata_bytes;
        self.streams.extend(other.streams);
    }
}

fn stream_of(scan: FileScan, path: &Path, bytes: u64) -> Stream {
    Stream {
        class: scan.class,
        id: scan.id,
        files: vec![DataFile {
            path: path.to_owned(),
            bytes,
            indexed: scan.indexed,
            is_foreign: scan.is_foreign,
            is_out_of_range: false,
            skipped: scan.skipped,
        }],
        packets: scan.packets,
        head: scan.head,
        is_mixed: scan.is_mixed,
        is_in_order_of_time: false,
    }
}

impl Stream {
    fn join(&mut self, other: Stream) {
        let base = self.files.len() as u32;
        self.is_mixed |= other.is_mixed || self.head.values != other.head.values;
        self.files.extend(other.files);
        self.packets
            .extend(other.packets.into_iter().map(|mut packet| {
                packet.file += base;
                packet
            }));
    }

    /// Sorts the packets of several files by time. Removes packets that are in two files, since
    /// snapshots may overlap, and returns their number.
    fn order(&mut self) -> usize {
        if self.files.len() < 2 {
            return 0;
        }
        let count = self.packets.len();
        self.packets
            .sort_by_key(|packet| (packet.begin.unwrap_or(0), packet.file, packet.offset));
        self.packets.dedup_by(|second, first| {
            second.file != first.file
                && second.sequence.is_some()
                && Packet {
                    file: 0,
                    offset: 0,
                    ..*second
                } == Packet {
                    file: 0,
                    offset: 0,
                    ..*first
                }
        });
        count - self.packets.len()
    }
}

/// Searches for traces below a path, if all traces found are removed before they are opened.
const MOST_ATTEMPTS: u32 = 8;

impl TraceSet {
    /// Opens every trace at or below the paths.
    ///
    /// # Errors
    /// If no trace can be opened, or if a path is not a directory.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<TraceSet, OpenError> {
        Self::open_checking(paths, IndexCheck::Ends)
    }

    /// Like [`TraceSet::open`], but compares the index entries that `check` selects with packet
    /// heads.
    ///
    /// # Errors
    /// As for [`TraceSet::open`].
    pub fn open_checking<P: AsRef<Path>>(
        paths: &[P],
        check: IndexCheck,
    ) -> Result<TraceSet, OpenError> {
        let mut set = TraceSet::default();
        let mut first_error = None;
        for path in paths {
            let path = path.as_ref();
            if path.is_file() {
                let path = path.to_owned();
                return Err(OpenError::NotDirectory { path });
            }
            if let Some(what) = special(path) {
                let path = path.to_owned();
                return Err(OpenError::Special { path, what });
            }
            // All traces found may have been removed before they are opened, while others were
            // added.
            for attempt in 1.. {
                let is_last = attempt == MOST_ATTEMPTS;
                if set.open_below((path, check), is_last, &mut first_error)? {
                    break;
                }
            }
        }
        let of_parts = set.traces.iter_mut().filter(|trace| trace.paths.len() > 1);
        of_parts.for_each(Trace::join_rotated_files);
        match first_error {
            Some(error) if set.traces.is_empty() => Err(error),
            _ => Ok(set),
        }
    }

    /// Opens every trace at or below a path. Traces that were removed after the search, such as the
    /// oldest chunks of a recording with --keep, are left out. False if all traces were removed,
    /// unless this is the last attempt.
    fn open_below(
        &mut self,
        (path, check): (&Path, IndexCheck),
        is_last: bool,
        first_error: &mut Option<OpenError>,
    ) -> Result<bool, OpenError> {
        let found = Found::below(path).map_err(|error| OpenError::Io {
            path: path.to_owned(),
            error,
        })?;
        let is_empty = found.directories.is_empty() && found.unread.is_empty();
        let opened = found.open(check);
        let are_gone = !is_empty && opened.is_empty() && found.unread.is_empty();
        if are_gone && !is_last {
            return Ok(false);
        }
        let none = (is_empty || are_gone).then(|| OpenError::NoTrace {
            path: path.to_owned(),
        });
        let unread = found.unread.into_iter();
        let unread = unread.map(|(path, error)| OpenError::Io { path, error });
        for error in unread.chain(none) {
            self.failed.push((path.to_owned(), error.to_string()));
            first_error.get_or_insert(error);
        }
        for (directory, opened) in opened {
            match opened {
                Ok(trace) => self.add(trace),
                Err(error) => {
                    self.failed.push((directory, error.to_string()));
                    first_error.get_or_insert(error);
                }
            }
        }
        Ok(true)
    }

    /// Adds a trace. Archives of a rotated session are parts of the same trace: they have the same
    /// UUID, and the same or longer metadata.
    fn add(&mut self, trace: Trace) {
        let same = |other: &&mut Trace| other.is_of_one(&trace);
        match self.traces.iter_mut().find(same) {
            Some(other) => other.absorb(trace),
            None => self.traces.push(trace),
        }
    }
}

/// Depth to which traces are searched for: deeper than any tracer creates them.
const DEPTH: usize = 16;

/// Result of a search at or below a path.
#[derive(Debug, Default)]
struct Found {
    /// Directories with a `metadata` file, in the order of their names.
    directories: Vec<PathBuf>,
    /// Paths that could not be searched; they may contain traces.
    unread: Vec<(PathBuf, io::Error)>,
}

impl Found {
    /// Opens the traces, except those that have been removed since the search.
    fn open(&self, check: IndexCheck) -> Vec<(PathBuf, Result<Trace, OpenError>)> {
        let directories = self.directories.iter().cloned();
        let opened = directories.map(|directory| {
            let trace = Trace::open_checking(&directory, check);
            (directory, trace)
        });
        opened.filter(|(directory, _)| directory.exists()).collect()
    }

    /// Searches for traces; fails if the path itself cannot be read.
    fn below(path: &Path) -> io::Result<Found> {
        let mut found = Found::default();
        found.look(path, DEPTH)?;
        Ok(found)
    }

    fn look(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        let listed = match depth {
            0 => None,
            _ => Some(std::fs::read_dir(path)?),
        };
        let metadata = path.join("metadata");
        match std::fs::metadata(&metadata) {
            Ok(about) if about.is_file() => self.directories.push(path.to_owned()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
            Err(error) => self.unread.push((metadata, error)),
        }
        let has_metadata = self.directories.last().is_some_and(|last| last == path);
        let mut below = Vec::new();
        for entry in listed.into_iter().flatten() {
            // Links are not followed, since they could form a cycle. Hidden directories are not
            // complete yet.
            let is_hidden = |name: OsString| name.as_encoded_bytes().starts_with(b".");
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((_, entry)) if is_hidden(entry.file_name()) => {}
                Ok((kind, entry)) if kind.is_dir() => below.push(entry.path()),
                // Links beside a metadata file are reported as stream files that cannot be read.
                Ok((kind, entry))
                    if kind.is_symlink() && !has_metadata && leads_nowhere(&entry.path()) =>
                {
                    let error = io::Error::new(NotFound, "dangling symbolic link");
                    self.unread.push((entry.path(), error));
                }
                Ok(_) => {}
                Err(error) => self.unread.push((path.to_owned(), error)),
            }
        }
        below.sort();
        for directory in below {
            match self.look(&directory, depth - 1) {
                // Removed since it was listed.
                Err(error) if error.kind() == NotFound => {}
                Err(error) => self.unread.push((directory, error)),
                Ok(()) => {}
            }
        }
        Ok(())
    }
}

/// Whether the path is a dangling symbolic link.
fn leads_nowhere(path: &Path) -> bool {
    let is_missing =
        std::fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    is_missing && path.is_symlink()
}

/// Whether [`crate::write`] has not finished the stream file, because the writer is still running
/// or was killed. The file may be empty.
fn is_being_written(directory: &Path, name: &OsStr) -> bool {
    let mut index = OsString::from(".");
    index.push(name);
    index.push(".idx.part");
    directory.join("index").join(index).exists()
}

/// The data stream files of a trace directory, sorted by name. Hidden files and files with the
/// extension `.part` are not complete yet.
fn data_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<_> = std::fs::read_dir(directory)?
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_other = name == "metadata" || name.starts_with('.');
            let is_stream = !is_other && !name.ends_with(".idx") && !name.ends_with(".part");
            // A dangling link is reported when the file is opened.
            is_stream && (entry.path().is_file() || leads_nowhere(&entry.path()))
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_is_removed_after_it_was_found_is_left_out() {
        let place = tempfile::tempdir().unwrap();
        for name in ["old", "new"] {
            let trace = place.path().join(name);
            std::fs::create_dir(&trace).unwrap();
            let metadata =
                "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; stream { };";
            std::fs::write(trace.join("metadata"), metadata).unwrap();
        }
        let found = Found::below(place.path()).unwrap();
        assert_eq!(found.directories.len(), 2);
        std::fs::rename(place.path().join("old"), place.path().join(".old")).unwrap();
        let opened = found.open(IndexCheck::Ends);
        assert_eq!(opened.len(), 1);
        assert!(opened[0].0.ends_with("new") && opened[0].1.is_ok());
    }
}
