//! The global definitions of an archive.

use std::collections::{BTreeMap, HashMap};
use std::io;

use tracebraid_levels::exported::{Kind, Line, LineId};

use super::chunks::{Bytes, ChunkFile};

/// Ids of definitions (`otf2_global_definitions.h`).
const CLOCK: u8 = 5;
const STRING: u8 = 10;
const NODE: u8 = 12;
const GROUP: u8 = 13;
const LOCATION: u8 = 14;
const REGION: u8 = 15;

/// Number of regions: names of threads beyond share the region `other`.
const MOST_REGIONS: usize = 1 << 16;

const UNDEFINED: u64 = u32::MAX as u64;

/// Kind of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Region {
    State,
    Function,
    Event,
}

/// Definitions, which are written last: their numbers of events are known then.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    groups: BTreeMap<LineId, String>,
    locations: Vec<(Line, u64)>,
    regions: BTreeMap<(Region, String), u32>,
}

impl Definitions {
    pub(super) fn group(&mut self, id: LineId, name: &str) {
        self.groups.insert(id, name.to_owned());
    }

    pub(super) fn location(&mut self, line: &Line, events: u64) {
        self.locations.push((line.clone(), events));
    }

    /// Number of a region.
    pub(super) fn region(&mut self, name: &str, kind: Region) -> u32 {
        let next = self.regions.len() as u32;
        let key = (kind, name.to_owned());
        if let Some(known) = self.regions.get(&key) {
            return *known;
        }
        let key = match self.regions.len() < MOST_REGIONS {
            true => key,
            false => (kind, "other".to_owned()),
        };
        *self.regions.entry(key).or_insert(next)
    }

    /// Writes all definitions. Returns their number.
    pub(super) fn write(
        &mut self,
        file: ChunkFile,
        host: &str,
        (begin, end): (u64, u64),
    ) -> io::Result<u64> {
        let mut out = Out {
            file,
            strings: HashMap::new(),
            count: 0,
        };
        let mut clock = Bytes::default();
        // Ticks in a second, begin, length, and the time of day of the begin.
        for value in [1_000_000_000, begin, end - begin, begin] {
            clock.compressed(value, u64::MAX);
        }
        out.define(CLOCK, clock)?;
        out.string("")?;
        let (host, class) = (out.string(host)?, out.string("machine")?);
        out.numbers(NODE, &[0, host, class, UNDEFINED])?;
        let mut groups: HashMap<Option<LineId>, u64> = HashMap::new();
        let names = self
            .groups
            .iter()
            .map(|(id, name)| (Some(*id), name.as_str()));
        for (id, name) in [(None, "CPUs")].into_iter().chain(names) {
            let number = groups.len() as u64;
            groups.insert(id, number);
            out.group(number, name)?;
        }
        for (line, events) in &self.locations {
            let of = match line.kind {
                Kind::Cpu => None,
                _ => line.parent,
            };
            out.location(line, *events, groups.get(&of).copied().unwrap_or(0))?;
        }
        let mut regions: Vec<_> = self.regions.iter().collect();
        regions.sort_by_key(|(_, number)| **number);
        for ((kind, name), number) in regions {
            out.region(u64::from(*number), *kind, name)?;
        }
        out.file.finish()?;
        Ok(out.count)
    }
}

struct Out {
    file: ChunkFile,
    strings: HashMap<String, u64>,
    count: u64,
}

impl Out {
    fn define(&mut self, kind: u8, content: Bytes) -> io::Result<()> {
        self.count += 1;
        self.file.definition(kind, &Vec::from(content))
    }

    fn numbers(&mut self, kind: u8, numbers: &[u64]) -> io::Result<()> {
        let mut bytes = Bytes::default();
        numbers
            .iter()
            .for_each(|number| bytes.compressed(*number, UNDEFINED));
        self.define(kind, bytes)
    }

    /// Number of a string, which is defined at its first use.
    fn string(&mut self, text: &str) -> io::Result<u64> {
        if let Some(known) = self.strings.get(text) {
            return Ok(*known);
        }
        let number = self.strings.len() as u64;
        let mut bytes = Bytes::default();
        bytes.compressed(number, UNDEFINED);
        bytes.string(text);
        self.define(STRING, bytes)?;
        self.strings.insert(text.to_owned(), number);
        Ok(number)
    }

    fn group(&mut self, number: u64, name: &str) -> io::Result<()> {
        let name = self.string(name)?;
        let mut bytes = Bytes::default();
        bytes.compressed(number, UNDEFINED);
        bytes.compressed(name, UNDEFINED);
        // A process; its node; no creating group.
        bytes.raw(&[1]);
        bytes.compressed(0, UNDEFINED);
        bytes.compressed(UNDEFINED, UNDEFINED);
        self.define(GROUP, bytes)
    }

    fn location(&mut self, line: &Line, events: u64, group: u64) -> io::Result<()> {
        let name = self.string(&line.title())?;
        let mut bytes = Bytes::default();
        bytes.compressed(line.id.0.into(), u64::MAX);
        bytes.compressed(name, UNDEFINED);
        // A thread of a CPU.
        bytes.raw(&[1]);
        bytes.compressed(events, u64::MAX);
        bytes.compressed(group, UNDEFINED);
        self.define(LOCATION, bytes)
    }

    fn region(&mut self, number: u64, kind: Region, name: &str) -> io::Result<()> {
        let name = self.string(name)?;
        // Type of OTF2 1.0, role, and paradigm.
        let [old, role, paradigm] = match kind {
            Region::Function => [3, 1, 1],
            Region::Event => [0, 4, 1],
            Region::State => [0, 4, 22],
        };
        let mut bytes = Bytes::default();
        bytes.compressed(number, UNDEFINED);
        bytes.compressed(name, UNDEFINED);
        bytes.compressed(0, UNDEFINED);
        bytes.raw(&[old]);
        bytes.compressed(UNDEFINED, UNDEFINED);
        bytes.raw(&[0, 0]);
        bytes.compressed(name, UNDEFINED);
        bytes.raw(&[role, paradigm, 0]);
        self.define(REGION, bytes)
    }
}
