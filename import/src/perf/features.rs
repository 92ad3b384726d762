//! The feature sections of perf.data, which describe the machine and the recording.

use super::attr::Attr;
use super::header::Header;
use crate::bytes::{Bytes, Short, text};
use crate::error::ImportError;

const TRACING_DATA: u32 = 1;
const BUILD_ID: u32 = 2;
const HOSTNAME: u32 = 3;
const RELEASE: u32 = 4;
const VERSION: u32 = 5;
const MACHINE: u32 = 6;
const COMMAND: u32 = 11;
const EVENT_DESC: u32 = 12;
const DIRECTORY: u32 = 24;
const CLOCK_DATA: u32 = 29;

/// True if the section is imported.
pub(crate) fn is_read(feature: u32) -> bool {
    matches!(
        feature,
        TRACING_DATA..=MACHINE | COMMAND | EVENT_DESC | DIRECTORY | CLOCK_DATA
    )
}

/// The clock of the events and the time of day, read at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockReference {
    wall: u64,
    clock: u64,
}

impl ClockReference {
    /// Nanoseconds from the Epoch to the zero of the clock.
    pub(crate) fn offset(self) -> i64 {
        self.wall.wrapping_sub(self.clock) as i64
    }
}

/// The build id of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuildId {
    pub(crate) pid: i32,
    /// In hexadecimal digits.
    pub(crate) id: String,
    pub(crate) filename: Vec<u8>,
}

/// Size of a build id with its padding, and the default size without padding, in bytes.
const BUILD_ID_ROOM: u64 = 24;
const BUILD_ID_BYTES: usize = 20;

/// Flag: the record contains the size of the build id.
const MISC_BUILD_ID_SIZE: u16 = 1 << 15;

impl BuildId {
    /// Parses the body of a record: process, id, name of the file.
    pub(crate) fn parse(misc: u16, at: &mut Bytes<'_>) -> Result<BuildId, Short> {
        let pid = at.i32()?;
        let room = at.take(BUILD_ID_ROOM)?;
        let told = room
            .get(BUILD_ID_BYTES)
            .map_or(0, |&size| usize::from(size));
        let size = match misc & MISC_BUILD_ID_SIZE {
            0 => BUILD_ID_BYTES,
            _ => told.min(BUILD_ID_BYTES),
        };
        let id = hex(room.get(..size).unwrap_or_default());
        let filename = crate::bytes::before_null(at.rest()).to_vec();
        Ok(BuildId { pid, id, filename })
    }
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Header {
    /// Reads a feature section.
    pub(crate) fn read_feature(
        &mut self,
        feature: u32,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), ImportError> {
        let mut at = Bytes::new(bytes, offset, self.big);
        match feature {
            TRACING_DATA => self.read_tracing_data(bytes, offset)?,
            BUILD_ID => self.build_ids.extend(build_ids(&mut at)?),
            HOSTNAME => self.hostname = Some(string(&mut at)?),
            RELEASE => self.release = Some(string(&mut at)?),
            VERSION => self.version = Some(string(&mut at)?),
            MACHINE => self.machine = Some(string(&mut at)?),
            COMMAND => self.command = Some(strings(&mut at)?.join(" ")),
            EVENT_DESC => self.read_event_desc(&mut at)?,
            DIRECTORY => self.is_directory = true,
            CLOCK_DATA => {
                at.take(8)?;
                let (wall, clock) = (at.u64()?, at.u64()?);
                self.clock = Some(ClockReference { wall, clock });
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads names of events. Each event is found by its ids, or by its index.
    fn read_event_desc(&mut self, at: &mut Bytes<'_>) -> Result<(), ImportError> {
        let (count, size) = (at.u32()?, u64::from(at.u32()?));
        for index in 0..count {
            let offset = at.offset();
            let attr = at.take(size)?;
            let ids = at.u32()?;
            let name = string(at)?;
            let ids = at.take(u64::from(ids) * 8)?;
            let mut attr = Attr::parse(attr, offset, at.is_big())?;
            attr.ids = ids
                .chunks_exact(8)
                .map(|id| crate::bytes::number(id, at.is_big()))
                .collect();
            attr.name = Some(name);
            self.take_description(index as usize, attr);
        }
        Ok(())
    }

    fn take_description(&mut self, index: usize, described: Attr) {
        let is_same =
            |attr: &Attr| !attr.ids.is_empty() && attr.ids.first() == described.ids.first();
        let index = self.attrs.iter().position(is_same).unwrap_or(index);
        if let Some(found) = self.attrs.get_mut(index) {
            found.name = described.name;
            if found.ids.is_empty() {
                found.ids = described.ids;
            }
        }
    }
}

/// A string after its size.
fn string(at: &mut Bytes<'_>) -> Result<String, Short> {
    let size = at.u32()?;
    Ok(text(at.take(size.into())?))
}

/// Strings after their number.
fn strings(at: &mut Bytes<'_>) -> Result<Vec<String>, Short> {
    (0..at.u32()?).map(|_| string(at)).collect()
}

/// Records with build ids, up to the end.
fn build_ids(at: &mut Bytes<'_>) -> Result<Vec<BuildId>, Short> {
    let mut all = Vec::new();
    while !at.rest().is_empty() {
        at.u32()?;
        let misc = at.u16()?;
        let short = Short {
            offset: at.offset(),
        };
        let size = u64::from(at.u16()?).checked_sub(8).ok_or(short)?;
        let offset = at.offset();
        let mut body = Bytes::new(at.take(size)?, offset, at.is_big());
        all.push(BuildId::parse(misc, &mut body)?);
    }
    Ok(all)
}
