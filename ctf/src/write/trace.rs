//! Traces on disk in LTTng's layout: a directory for each trace with the file `metadata`, the files
//! of its streams, and `index/NAME.idx` for each stream file.
//!
//! A [`Session`] contains the directories of several traces (LTTng: `kernel`,
//! `ust/uid/1000/64-bit`). It has a temporary name until it is complete. For recordings that are
//! read while they grow, it has its own name from the start; readers then find whole metadata and
//! whole packets at any moment.
//!
//! No file is synced to disk: the file system determines which data survives a crash of the
//! machine.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::convert;
use super::error::WriteError;
use super::metadata::{self, Metadata};
use super::placed::PlacedFiles;
use super::plan::{EventPlan, EventPlans, StreamPlan};
use super::stream::{PacketSink, PacketSize, StreamWriter};
use crate::index::IndexEntry;
use crate::schema::{CtfVersion, EventClass, TraceClass};

/// Format options of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Version of the format; a schema of CTF 1.8 can be written as CTF 2.
    pub version: CtfVersion,
    /// Write metadata of CTF 1.8 in packets, like LTTng, instead of as plain text.
    pub metadata_packets: bool,
    /// Size of the packets of data streams.
    pub packet_size: PacketSize,
    /// Write index files.
    pub index: bool,
}

impl Default for Options {
    /// CTF 1.8 like LTTng, in packets as large as their content, of at most 256 KiB.
    fn default() -> Self {
        Options {
            version: CtfVersion::V1_8,
            metadata_packets: true,
            packet_size: PacketSize::UpTo(1 << 18),
            index: true,
        }
    }
}

/// A directory with traces, while they are written.
///
/// A session that is not finished keeps its temporary name, with all packets that were written.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    /// Final name, if it differs from `path`.
    rename: Option<PathBuf>,
    /// Cloned by all writers of the session, to count them.
    users: Arc<()>,
}

/// Writes a trace of a session.
#[derive(Debug)]
pub struct TraceWriter {
    directory: PathBuf,
    options: Options,
    /// Version of the schemas that the caller passes.
    version: CtfVersion,
    metadata: Metadata,
    file: MetadataFile,
    /// Contents of the metadata file, until an event class is added.
    contents: Option<Arc<[u8]>>,
    /// By stream class.
    plans: Vec<Arc<StreamPlan>>,
    events: Vec<EventPlans>,
    names: HashSet<String>,
    users: Arc<()>,
}

/// A file to which only whole pieces are appended.
#[derive(Debug)]
struct Growing {
    path: PathBuf,
    file: File,
    bytes: u64,
}

#[derive(Debug)]
struct MetadataFile {
    out: Growing,
    in_packets: bool,
}

/// The files of a data stream.
#[derive(Debug)]
pub struct StreamFiles {
    data: Growing,
    /// With its final name.
    index: Option<(Growing, PathBuf)>,
    _user: Arc<()>,
}

impl Session {
    /// Creates the directory `NAME.part`, where `path` ends with NAME; [`Session::finish`] renames
    /// it to NAME.
    ///
    /// # Errors
    /// If one of the two exists already, or the directory cannot be created.
    pub fn create(path: &Path) -> Result<Session, WriteError> {
        let Some(name) = path.file_name() else {
            return Err(WriteError::Misuse(format!(
                "{}: this is not the name of a directory",
                path.display()
            )));
        };
        let mut part = name.to_owned();
        part.push(".part");
        not_there(path)?;
        let part = path.with_file_name(part);
        make(&part)?;
        Ok(Session {
            path: part,
            rename: Some(path.to_owned()),
            users: Arc::new(()),
        })
    }

    /// Creates the directory under its final name, so that it can be read while it grows.
    ///
    /// # Errors
    /// If it exists already or cannot be created.
    pub fn create_live(path: &Path) -> Result<Session, WriteError> {
        make(path)?;
        Ok(Session {
            path: path.to_owned(),
            rename: None,
            users: Arc::new(()),
        })
    }

    /// The current path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a trace in the directory `below` that of the session (such as `kernel`; may be
    /// empty), with all event classes that are known so far.
    ///
    /// # Errors
    /// If the format cannot express the class, its streams cannot be written, `below` leads out of
    /// the session, the directory contains a trace already, or a file operation fails.
    pub fn trace(
        &self,
        below: &Path,
        class: &TraceClass,
        options: Options,
    ) -> Result<TraceWriter, WriteError> {
        check_below(below)?;
        let written = convert::to_version(class, options.version)?;
        let (metadata, text) = Metadata::new(&written)?;
        let (mut plans, mut events) = (Vec::new(), Vec::new());
        for (index, stream) in written.streams.iter().enumerate() {
            let plan = StreamPlan::new(&written, index)?;
            events.push(EventPlans::new(&plan, &stream.events)?);
            plans.push(plan);
        }
        let contents: Arc<[u8]> = MetadataFile::contents(&written, options, &text)?.into();
        Ok(TraceWriter {
            file: self.metadata_file(below, options, &contents)?,
            directory: self.path.join(below),
            options,
            version: class.version,
            metadata,
            contents: Some(contents),
            plans,
            events,
            names: HashSet::new(),
            users: self.users.clone(),
        })
    }

    /// Begins a trace with the classes of another trace, in the same directory `below` that of this
    /// session. Both have the same metadata, byte for byte. This takes a small part of the time of
    /// [`Session::trace`], since nothing is compiled again.
    ///
    /// # Errors
    /// If an event class was added to the other trace, `below` leads out of the session, the
    /// directory contains a trace already, or a file operation fails.
    pub fn trace_like(&self, below: &Path, other: &TraceWriter) -> Result<TraceWriter, WriteError> {
        check_below(below)?;
        let Some(contents) = other.contents.clone() else {
            let message = "event classes were added to the trace whose classes are copied";
            return Err(WriteError::Misuse(message.into()));
        };
        // Both share what is compiled.
        for events in &other.events {
            events.all();
        }
        Ok(TraceWriter {
            file: self.metadata_file(below, other.options, &contents)?,
            directory: self.path.join(below),
            options: other.options,
            version: other.version,
            metadata: other.metadata.clone(),
            contents: Some(contents),
            plans: other.plans.clone(),
            events: other.events.clone(),
            names: HashSet::new(),
            users: self.users.clone(),
        })
    }

    /// Creates the directories of a trace and its metadata file.
    fn metadata_file(
        &self,
        below: &Path,
        options: Options,
        contents: &[u8],
    ) -> Result<MetadataFile, WriteError> {
        let directory = self.path.join(below);
        fs::create_dir_all(&directory).map_err(WriteError::io(&directory))?;
        let file = MetadataFile::create(&directory, options, contents)?;
        if options.index {
            let index = directory.join("index");
            fs::create_dir_all(&index).map_err(WriteError::io(&index))?;
        }
        Ok(file)
    }

    /// Renames the session to its final name. All writers of its traces and streams must have been
    /// finished.
    ///
    /// # Errors
    /// If writers are left, or if the final name has been taken meanwhile.
    pub fn finish(self) -> Result<PathBuf, WriteError> {
        let users = Arc::strong_count(&self.users) - 1;
        if users > 0 {
            let message =
                format!("{users} traces and streams of the session are still being written");
            return Err(WriteError::Misuse(message));
        }
        let Some(name) = self.rename else {
            return Ok(self.path);
        };
        not_there(&name)?;
        fs::rename(&self.path, &name).map_err(WriteError::io(&name))?;
        Ok(name)
    }
}

fn check_below(below: &Path) -> Result<(), WriteError> {
    let is_normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    if below.components().all(is_normal) {
        return Ok(());
    }
    let message = format!(
        "{}: this path is not below the directory of the session",
        below.display()
    );
    Err(WriteError::Misuse(message))
}

fn not_there(path: &Path) -> Result<(), WriteError> {
    if path.symlink_metadata().is_ok() {
        let error = std::io::Error::new(
            std::io::ErrorKind::AlreadyExists,
            "it exists already: choose another name, or remove it first",
        );
        return Err(WriteError::io(path)(error));
    }
    Ok(())
}

/// Creates a directory that must not exist yet.
fn make(path: &Path) -> Result<(), WriteError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(WriteError::io(parent))?;
    }
    fs::create_dir(path).map_err(WriteError::io(path))
}

impl TraceWriter {
    /// The event classes of the stream class with this index, in the order of addition.
    pub fn events(&self, stream: usize) -> &[Arc<EventPlan>] {
        self.events.get(stream).map_or(&[], EventPlans::all)
    }

    /// Adds an event class to the stream class with this index. Readers see it from now on.
    ///
    /// # Errors
    /// If there is no such stream class, it has an event class with this id already, the format
    /// cannot express the class, or a file operation fails.
    pub fn add_event(
        &mut self,
        stream: usize,
        class: &EventClass,
    ) -> Result<Arc<EventPlan>, WriteError> {
        let Some(plan) = self.plans.get(stream) else {
            return Err(WriteError::Misuse(format!(
                "there is no stream class at index {stream}"
            )));
        };
        let class = convert::event_to_version(class, self.version, self.options.version)?;
        let event = Arc::new(EventPlan::new(plan, &class)?);
        let text = self.metadata.event(stream, &class)?;
        self.file.append(self.metadata.base(), &text)?;
        self.metadata.note(stream, &class);
        self.contents = None;
        if let Some(events) = self.events.get_mut(stream) {
            events.push(event.clone());
        }
        Ok(event)
    }

    /// Begins a stream of the stream class with this index, in a file with this name; see
    /// [`StreamWriter::new`] for the other arguments. Other threads may write it.
    ///
    /// # Errors
    /// As for [`StreamWriter::new`]; also if the name is taken or is not a valid name of a stream
    /// file, or a file operation fails.
    pub fn stream(
        &mut self,
        stream: usize,
        name: &str,
        id: u64,
        context: &[(&str, i64)],
    ) -> Result<StreamWriter<StreamFiles>, WriteError> {
        let Some(plan) = self.plans.get(stream) else {
            return Err(WriteError::Misuse(format!(
                "there is no stream class at index {stream}"
            )));
        };
        let plan = plan.clone();
        let files = self.files(name)?;
        StreamWriter::new(&plan, files, self.options.packet_size, id, context)
    }

    /// Creates the files of a stream, with this name, for packets that were created elsewhere, such
    /// as by a [`StreamWriter`] for the same schema that kept them in memory.
    ///
    /// # Errors
    /// If the name is taken or is not a valid name of a stream file, or a file operation fails.
    pub fn files(&mut self, name: &str) -> Result<StreamFiles, WriteError> {
        self.take_name(name)?;
        let index = self.options.index;
        StreamFiles::create(&self.directory, name, index, self.users.clone())
    }

    /// Like [`TraceWriter::files`], for packets that several threads write at their positions; with
    /// an index.
    ///
    /// # Errors
    /// As for [`TraceWriter::files`].
    pub fn placed_files(&mut self, name: &str) -> Result<PlacedFiles, WriteError> {
        self.take_name(name)?;
        PlacedFiles::create(&self.directory, name, self.users.clone())
    }

    fn take_name(&mut self, name: &str) -> Result<(), WriteError> {
        let is_name = Path::new(name).file_name().is_some_and(|last| last == name)
            && !name.starts_with('.')
            && !name.ends_with(".idx")
            && !matches!(name, "metadata" | "index");
        if !is_name || self.names.contains(name) {
            return Err(WriteError::Misuse(format!(
                "`{name}` cannot be the name of another stream file"
            )));
        }
        self.names.insert(name.to_owned());
        Ok(())
    }
}

impl MetadataFile {
    /// Creates the file with its first contents.
    fn create(
        directory: &Path,
        options: Options,
        contents: &[u8],
    ) -> Result<MetadataFile, WriteError> {
        let path = directory.join("metadata");
        not_there(&path)?;
        let part = directory.join(".metadata.part");
        let mut file = MetadataFile {
            out: Growing::create(part.clone())?,
            in_packets: in_packets(options),
        };
        file.out.append(contents)?;
        fs::rename(&part, &path).map_err(WriteError::io(&path))?;
        file.out.path = path;
        Ok(file)
    }

    /// The first contents: the text, in a packet if requested.
    fn contents(class: &TraceClass, options: Options, text: &str) -> Result<Vec<u8>, WriteError> {
        match in_packets(options) {
            true => packet(class, text),
            false => Ok(text.as_bytes().to_vec()),
        }
    }

    fn append(&mut self, class: &TraceClass, text: &str) -> Result<(), WriteError> {
        match self.in_packets {
            true => self.out.append(&packet(class, text)?),
            false => self.out.append(text.as_bytes()),
        }
    }
}

fn in_packets(options: Options) -> bool {
    options.metadata_packets && options.version == CtfVersion::V1_8
}

fn packet(class: &TraceClass, text: &str) -> Result<Vec<u8>, WriteError> {
    let packet = metadata::packet(text, class.uuid, class.byte_order);
    packet.ok_or_else(|| WriteError::Misuse("the metadata is too large for a packet".into()))
}

impl Growing {
    /// Creates a file that must not exist yet.
    fn create(path: PathBuf) -> Result<Growing, WriteError> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        Ok(Growing {
            file: file.map_err(WriteError::io(&path))?,
            path,
            bytes: 0,
        })
    }

    /// Appends all bytes or, as far as the system allows, none.
    fn append(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if let Err(error) = self.file.write_all(bytes) {
            use std::io::{Seek, SeekFrom};
            let _ = self.file.set_len(self.bytes);
            let _ = self.file.seek(SeekFrom::Start(self.bytes));
            return Err(WriteError::io(&self.path)(error));
        }
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

impl StreamFiles {
    fn create(
        directory: &Path,
        name: &str,
        index: bool,
        user: Arc<()>,
    ) -> Result<StreamFiles, WriteError> {
        let data = Growing::create(directory.join(name))?;
        let mut files = StreamFiles {
            data,
            index: None,
            _user: user,
        };
        if index {
            let directory = directory.join("index");
            // An incomplete index is worse than none, so the index gets its name at the end.
            let mut index = Growing::create(directory.join(format!(".{name}.idx.part")))?;
            index.append(&super::index::header())?;
            files.index = Some((index, directory.join(format!("{name}.idx"))));
        }
        Ok(files)
    }
}

impl PacketSink for StreamFiles {
    type Output = ();

    fn packet(&mut self, bytes: &[u8], entry: &IndexEntry) -> Result<(), WriteError> {
        let offset = self.data.bytes;
        self.data.append(bytes)?;
        // If the first packets of a stream were not kept, the offsets of the others differ from
        // those of the writer.
        let entry = IndexEntry { offset, ..*entry };
        match &mut self.index {
            Some((index, _)) => index.append(&super::index::entry(&entry)),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<(), WriteError> {
        match self.index.take() {
            Some((index, name)) => fs::rename(&index.path, &name).map_err(WriteError::io(&name)),
            None => Ok(()),
        }
    }
}

/// The index of a stream that was not finished is useless.
impl Drop for StreamFiles {
    fn drop(&mut self) {
        if let Some((index, _)) = &self.index {
            let _ = fs::remove_file(&index.path);
        }
    }
}
