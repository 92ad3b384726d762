//! Writes the repetitions of a surveyed trace.

use super::Plan;
use super::survey::{Counter, FileSurvey, PacketSurvey, Patch, StreamSurvey, TraceSurvey};
use crate::bits;
use crate::directory;
use crate::index::{self, IndexEntry};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Number of bytes that are buffered before writing.
const BUFFER_BYTES: usize = 4 << 20;

/// Counts of one written trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) events: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// Amounts that repetition *i* adds to the counters of a stream.
#[derive(Clone, Copy, Debug)]
struct Added {
    clock: u64,
    sequence: u64,
    discarded: u64,
}

/// Writes the trace surveyed in `source` to the directory `destination`.
pub(super) fn write(
    source: &Path,
    destination: &Path,
    survey: &TraceSurvey,
    plan: &Plan,
) -> Result<Written> {
    fs::create_dir_all(destination)?;
    fs::copy(source.join("metadata"), destination.join("metadata"))
        .context("cannot copy the metadata")?;
    let mut written = Written::default();
    for stream in &survey.streams {
        write_stream(destination, survey, stream, plan, &mut written)?;
    }
    Ok(written)
}

/// Keeps a rotated stream's files in the first repetition, and appends all others to the last file.
fn write_stream(
    destination: &Path,
    survey: &TraceSurvey,
    stream: &StreamSurvey,
    plan: &Plan,
    written: &mut Written,
) -> Result<()> {
    let sources: Vec<Vec<u8>> = stream
        .files
        .iter()
        .map(|file| fs::read(&file.path))
        .collect::<Result<_, _>>()?;
    let (sequence_step, discarded_step) = (stream.sequence_step(), stream.discarded_step());
    for (number, file) in stream.files.iter().enumerate() {
        let name = file.path.file_name().unwrap_or_default();
        let mut output = Output::create(survey, &destination.join(name))?;
        let is_last = number + 1 == stream.files.len();
        for repetition in 0..if is_last { plan.times } else { 1 } {
            let added = Added {
                clock: repetition * plan.shift,
                sequence: repetition.wrapping_mul(sequence_step),
                discarded: repetition.wrapping_mul(discarded_step),
            };
            let until = if repetition + 1 == plan.times {
                plan.last_until
            } else {
                u64::MAX
            };
            let all = stream.files.iter().zip(&sources);
            let first = if repetition == 0 {
                number..number + 1
            } else {
                0..sources.len()
            };
            for (file, data) in all.skip(first.start).take(first.len()) {
                output.packets(file, data, added, until)?;
            }
        }
        output.finish(file.has_index, written)?;
    }
    Ok(())
}

/// A stream file that is being written.
struct Output<'a> {
    survey: &'a TraceSurvey,
    events: u64,
    path: std::path::PathBuf,
    file: File,
    buffer: Vec<u8>,
    offset: u64,
    entries: Vec<IndexEntry>,
}

impl<'a> Output<'a> {
    fn create(survey: &'a TraceSurvey, path: &Path) -> Result<Self> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Ok(Output {
            survey,
            events: 0,
            path: path.to_path_buf(),
            file,
            buffer,
            offset: 0,
            entries: Vec::new(),
        })
    }

    /// Writes the packets that begin at most `until` cycles after the trace does.
    fn packets(&mut self, file: &FileSurvey, data: &[u8], added: Added, until: u64) -> Result<()> {
        for packet in &file.packets {
            if self.survey.begin_of(packet) <= until {
                self.packet(packet, data, added)?;
            }
        }
        Ok(())
    }

    fn packet(&mut self, packet: &PacketSurvey, data: &[u8], added: Added) -> Result<()> {
        let start = packet.offset as usize;
        let bytes = data
            .get(start..start + packet.length as usize)
            .context("the source has changed")?;
        let at = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        if added.clock != 0 {
            for patch in &packet.patches {
                apply(patch, &mut self.buffer[at..], added).context("the source has changed")?;
            }
        }
        self.entries.push(self.entry(packet, added));
        self.offset += packet.length;
        self.events += packet.events;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn entry(&self, packet: &PacketSurvey, added: Added) -> IndexEntry {
        let head = &packet.head;
        IndexEntry {
            offset: self.offset,
            total_length: head.total_length,
            content_length: head.content_length,
            begin: head
                .begin
                .map_or(0, |begin| begin.wrapping_add(added.clock)),
            end: head.end.map_or(0, |end| end.wrapping_add(added.clock)),
            discarded_events: head
                .discarded_events
                .unwrap_or(0)
                .wrapping_add(added.discarded),
            stream_class_id: self.survey.class.streams[head.stream_class].id,
            stream_id: head.stream_id.unwrap_or(0),
            sequence_number: head
                .sequence_number
                .unwrap_or(0)
                .wrapping_add(added.sequence),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .write_all(&self.buffer)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self, has_index: bool, written: &mut Written) -> Result<()> {
        self.flush()?;
        if has_index {
            let path = directory::index_path(&self.path);
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            fs::write(&path, index::encode(&self.entries))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        written.events += self.events;
        written.packets += self.entries.len() as u64;
        written.bytes += self.offset;
        Ok(())
    }
}

/// Adds to one field; `None` if it is not in the packet.
fn apply(patch: &Patch, packet: &mut [u8], added: Added) -> Option<()> {
    let Patch {
        position,
        length,
        byte_order,
        reversed_bits,
        counter,
    } = *patch;
    let raw = bits::read(packet, position, length, byte_order)?;
    let old = if reversed_bits {
        bits::reverse(raw, length)
    } else {
        raw
    };
    let by = match counter {
        Counter::Clock => added.clock,
        Counter::Sequence => added.sequence,
        Counter::Discarded => added.discarded,
    };
    let new = old.wrapping_add(u128::from(by)) & bits::mask(length);
    let raw = if reversed_bits {
        bits::reverse(new, length)
    } else {
        new
    };
    bits::write(packet, position, length, byte_order, raw)
}
