//! OTF2: an archive of version 3.0, as Score-P's tools read it.
//!
//! Locations are CPUs, LWPs and user-level threads; regions are states and functions. A user-level
//! thread is in the region `running` from its first run to its end, in functions within it, and, while
//! it does not run, in the region of its state on top: so the exclusive time of `running` and of the
//! functions is time on a CPU, and inclusive times of functions contain their waits. An event of a
//! program is a region of no length. OTF2 has no links between threads but messages, so links are
//! left out.
//!
//! Source: the writers of OTF2 3.0.2 (`OTF2_Buffer.h`, `OTF2_AnchorFile.c`, `OTF2_GlobalDefWriter_inc.c`,
//! `OTF2_EvtWriter_inc.c`).

mod chunks;
mod definitions;

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tracebraid_levels::exported::{Item, Kind, Line, LineId, Sink, State};

use chunks::{Bytes, ChunkFile};
use definitions::{Definitions, Region};

/// Size of a chunk of events, and of definitions.
const EVENT_CHUNK: u64 = 1 << 20;
const DEFINITION_CHUNK: u64 = 4 << 20;

/// Bytes of all locations that wait to be written.
const MOST_PENDING: usize = 32 << 20;

/// Ids of event records (`otf2_events_int.h`).
const ENTER: u8 = 12;
const LEAVE: u8 = 13;

/// Writes an archive into a directory.
pub struct Otf2Writer {
    directory: PathBuf,
    host: String,
    locations: HashMap<LineId, Location>,
    /// Names of processes.
    definitions: Definitions,
    begin: Option<i64>,
    pending: usize,
}

struct Location {
    line: Line,
    file: ChunkFile,
    /// Region of the running thread, entered at its first run.
    base: Option<u32>,
    /// Functions that it is in.
    functions: Vec<u32>,
    /// Region of the state on top.
    top: Option<u32>,
}

impl Otf2Writer {
    /// A writer into an existing, empty directory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(directory: &Path) -> io::Result<Otf2Writer> {
        fs::create_dir(directory.join("traces"))?;
        Ok(Otf2Writer {
            directory: directory.to_owned(),
            host: String::new(),
            locations: HashMap::new(),
            definitions: Definitions::default(),
            begin: None,
            pending: 0,
        })
    }

    fn line(&mut self, line: &Line) {
        match line.kind {
            Kind::Machine => self.host = line.title(),
            Kind::Process => self.definitions.group(line.id, &line.title()),
            Kind::Cpu | Kind::Lwp | Kind::Thread => {
                let path = self.directory.join(format!("traces/{}.evt", line.id.0));
                let location = Location {
                    line: line.clone(),
                    file: ChunkFile::new(path, EVENT_CHUNK),
                    base: None,
                    functions: Vec::new(),
                    top: None,
                };
                self.locations.insert(line.id, location);
            }
        }
    }

    fn time(&mut self, time: i64) -> u64 {
        self.begin.get_or_insert(time);
        time.max(0) as u64
    }

    fn state(&mut self, time: i64, id: LineId, state: &State) -> io::Result<()> {
        let time = self.time(time);
        let Some(location) = self.locations.get_mut(&id) else {
            return Ok(());
        };
        let kind = location.line.kind;
        let name = match (state, kind) {
            (State::Running(_), Kind::Thread) => state.word().to_owned(),
            (State::Running(name), _) => name.to_string(),
            (State::Blocked(reason), _) if !reason.is_empty() => format!("blocked: {reason}"),
            _ => state.word().to_owned(),
        };
        let before = self.pending_of(id);
        let region = self.definitions.region(&name, Region::State);
        let Some(location) = self.locations.get_mut(&id) else {
            return Ok(());
        };
        location.leave_top(time)?;
        match state {
            State::Ended => location.leave_all(time)?,
            State::Running(_) if kind == Kind::Thread => {
                if location.base.is_none() {
                    location.base = Some(region);
                    location.write(ENTER, time, region)?;
                }
            }
            _ => {
                location.top = Some(region);
                location.write(ENTER, time, region)?;
            }
        }
        self.count(id, before)
    }

    fn function(&mut self, time: i64, id: LineId, name: Option<&str>) -> io::Result<()> {
        let time = self.time(time);
        let before = self.pending_of(id);
        let region = name.map(|name| self.definitions.region(name, Region::Function));
        let Some(location) = self.locations.get_mut(&id) else {
            return Ok(());
        };
        // Functions can only nest within the running region, below no state.
        if location.top.is_some() || location.base.is_none() {
            return Ok(());
        }
        match region {
            Some(region) => {
                location.functions.push(region);
                location.write(ENTER, time, region)?;
            }
            None => {
                if let Some(region) = location.functions.pop() {
                    location.write(LEAVE, time, region)?;
                }
            }
        }
        self.count(id, before)
    }

    fn event(&mut self, time: i64, id: LineId, name: &str) -> io::Result<()> {
        let time = self.time(time);
        let before = self.pending_of(id);
        let region = self.definitions.region(name, Region::Event);
        if let Some(location) = self.locations.get_mut(&id) {
            location.write(ENTER, time, region)?;
            location.write(LEAVE, time, region)?;
        }
        self.count(id, before)
    }

    fn pending_of(&self, id: LineId) -> usize {
        self.locations.get(&id).map_or(0, |of| of.file.pending())
    }

    /// Writes all locations' bytes once they are many.
    fn count(&mut self, id: LineId, before: usize) -> io::Result<()> {
        self.pending = (self.pending + self.pending_of(id)).saturating_sub(before);
        if self.pending < MOST_PENDING {
            return Ok(());
        }
        self.pending = 0;
        self.locations
            .values_mut()
            .try_for_each(|location| location.file.flush())
    }

    fn anchor(&self, locations: u64, definitions: u64) -> Vec<u8> {
        let mut bytes = Bytes::default();
        bytes.raw(&chunks::HEAD);
        bytes.string("OTF2");
        // Formats of this file and of the traces, version of OTF2.
        bytes.raw(&[3, 2, 3, 0, 2]);
        bytes.u64(EVENT_CHUNK);
        bytes.u64(DEFINITION_CHUNK);
        // POSIX files, no compression.
        bytes.raw(&[1, 1]);
        bytes.u64(locations);
        bytes.u64(definitions);
        bytes.string(&self.host);
        bytes.string("tracebraid");
        bytes.string("user-level threads, LWPs and CPUs");
        bytes.u32(0);
        // An id of the archive, which readers only compare.
        bytes.u64(self.begin.unwrap_or(0) as u64 ^ definitions << 48);
        bytes.u32(0);
        bytes.u32(0);
        bytes.raw(&[chunks::END_OF_FILE, chunks::END_OF_BUFFER, 0]);
        bytes.into()
    }
}

impl Location {
    fn write(&mut self, kind: u8, time: u64, region: u32) -> io::Result<()> {
        let mut bytes = Bytes::default();
        bytes.raw(&[kind]);
        bytes.compressed(region.into(), u64::from(u32::MAX));
        self.file.event(time, &Vec::from(bytes))
    }

    fn leave_top(&mut self, time: u64) -> io::Result<()> {
        match self.top.take() {
            Some(region) => self.write(LEAVE, time, region),
            None => Ok(()),
        }
    }

    fn leave_all(&mut self, time: u64) -> io::Result<()> {
        self.leave_top(time)?;
        while let Some(region) = self.functions.pop() {
            self.write(LEAVE, time, region)?;
        }
        match self.base.take() {
            Some(region) => self.write(LEAVE, time, region),
            None => Ok(()),
        }
    }
}

impl Sink for Otf2Writer {
    fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        match item {
            Item::Line(line) => {
                self.line(line);
                Ok(())
            }
            Item::State {
                time, line, state, ..
            } => self.state(*time, *line, state),
            Item::Link { .. } => Ok(()),
            Item::Function { time, line, name } => self.function(*time, *line, *name),
            Item::Event { time, line, name } => self.event(*time, *line, name),
        }
    }

    fn finish(&mut self, end: i64) -> io::Result<()> {
        let begin = self.begin.unwrap_or(end).max(0) as u64;
        let end = (end.max(0) as u64).max(begin);
        let mut locations: Vec<Location> = self.locations.drain().map(|(_, of)| of).collect();
        locations.sort_by_key(|location| location.line.id);
        let count = locations.len() as u64;
        for mut location in locations {
            location.leave_all(end)?;
            let events = location.file.finish()?;
            let path = self
                .directory
                .join(format!("traces/{}.def", location.line.id.0));
            // A location has no definitions of its own.
            ChunkFile::new(path, DEFINITION_CHUNK).finish()?;
            self.definitions.location(&location.line, events);
        }
        let path = self.directory.join("traces.def");
        let file = ChunkFile::new(path, DEFINITION_CHUNK);
        let definitions = self.definitions.write(file, &self.host, (begin, end))?;
        let anchor = self.anchor(count, definitions);
        let mut file = fs::File::create(self.directory.join("traces.otf2"))?;
        file.write_all(&anchor)
    }
}
