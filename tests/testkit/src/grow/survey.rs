//! Reads a trace once to find its packets and the fields that a shift changes.

use crate::directory;
use crate::reference::{self, Mark, PacketHead, Reader};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tracebraid_ctf::schema::{ByteOrder, ClockClass, Roles, TraceClass};

/// Timestamps of at most this many bits are not changed by a shift.
const UNCHANGED_BITS: u32 = 32;

/// The quantity that a changed field counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counter {
    /// Clock cycles.
    Clock,
    /// Packets of the stream.
    Sequence,
    /// Discarded event records of the stream.
    Discarded,
}

/// A field to which each repetition adds an amount.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    /// Bits from the packet's start.
    pub(super) position: u64,
    pub(super) length: u32,
    pub(super) byte_order: ByteOrder,
    pub(super) reversed_bits: bool,
    pub(super) counter: Counter,
}

/// A packet of the source.
#[derive(Clone, Debug)]
pub(super) struct PacketSurvey {
    /// Offset in its file, in bytes.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) length: u64,
    pub(super) head: PacketHead,
    pub(super) events: u64,
    pub(super) patches: Vec<Patch>,
}

/// A stream file of the source.
#[derive(Clone, Debug)]
pub(super) struct FileSurvey {
    pub(super) path: PathBuf,
    pub(super) has_index: bool,
    pub(super) packets: Vec<PacketSurvey>,
}

/// A stream: one file, or several in the order of time if the tracer rotated them.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamSurvey {
    pub(super) files: Vec<FileSurvey>,
}

impl StreamSurvey {
    pub(super) fn packets(&self) -> impl Iterator<Item = &PacketSurvey> {
        self.files.iter().flat_map(|file| &file.packets)
    }

    /// Number of packets from one repetition to the next.
    pub(super) fn sequence_step(&self) -> u64 {
        let numbers = || {
            self.packets()
                .filter_map(|packet| packet.head.sequence_number)
        };
        match (numbers().min(), numbers().max()) {
            (Some(first), Some(last)) => (last - first).saturating_add(1),
            _ => 0,
        }
    }

    /// Number of discarded event records from one repetition to the next.
    pub(super) fn discarded_step(&self) -> u64 {
        self.packets()
            .filter_map(|packet| packet.head.discarded_events)
            .last()
            .unwrap_or(0)
    }
}

/// The properties of a trace that growing it needs.
#[derive(Clone, Debug)]
pub(super) struct TraceSurvey {
    pub(super) class: TraceClass,
    pub(super) streams: Vec<StreamSurvey>,
    pub(super) events: u64,
    /// Frequencies of the streams' clocks.
    pub(super) frequencies: Vec<u64>,
    /// Smallest and largest time, in cycles; without any time the smallest exceeds the largest.
    pub(super) first: u64,
    pub(super) last: u64,
}

impl TraceSurvey {
    /// Cycles from the first time to the last.
    pub(super) fn span(&self) -> u64 {
        self.last.saturating_sub(self.first)
    }

    /// `cycles` as nanoseconds from the origin, if they fit for every clock.
    pub(super) fn latest_time(&self, cycles: u64) -> Option<i64> {
        let time = |clock: &ClockClass| reference::nanoseconds_from_origin(clock, cycles);
        i64::try_from(self.class.clocks.iter().map(time).max().unwrap_or(0)).ok()
    }

    /// Cycles from the trace's first time to the packet's beginning.
    pub(super) fn begin_of(&self, packet: &PacketSurvey) -> u64 {
        packet.head.begin.unwrap_or(0).saturating_sub(self.first)
    }

    fn note_time(&mut self, cycles: u64) {
        self.first = self.first.min(cycles);
        self.last = self.last.max(cycles);
    }
}

/// Surveys the trace in `directory`.
pub(super) fn survey(directory: &Path) -> Result<TraceSurvey> {
    let class = directory::trace_class(directory)?;
    let clocks = class
        .streams
        .iter()
        .filter_map(|stream| class.clocks.get(stream.default_clock?));
    let mut survey = TraceSurvey {
        frequencies: clocks.map(|clock| clock.frequency).collect(),
        class: class.clone(),
        streams: Vec::new(),
        events: 0,
        first: u64::MAX,
        last: 0,
    };
    let reader = Reader::new(&class);
    let mut rotated: BTreeMap<(usize, u64), StreamSurvey> = BTreeMap::new();
    for path in directory::stream_files(directory)? {
        let file = survey_file(&reader, &path, &mut survey)
            .with_context(|| format!("in {}", path.display()))?;
        let identity = file.packets.first().map(|packet| &packet.head);
        match identity.and_then(|head| Some((head.stream_class, head.stream_id?))) {
            Some(identity) => rotated.entry(identity).or_default().files.push(file),
            None => survey.streams.push(StreamSurvey { files: vec![file] }),
        }
    }
    for mut stream in rotated.into_values() {
        stream
            .files
            .sort_by_key(|file| file.packets.first().and_then(|packet| packet.head.begin));
        survey.streams.push(stream);
    }
    Ok(survey)
}

fn survey_file(reader: &Reader<'_>, path: &Path, survey: &mut TraceSurvey) -> Result<FileSurvey> {
    let data = fs::read(path)?;
    let mut file = FileSurvey {
        path: path.to_path_buf(),
        has_index: directory::index_path(path).is_file(),
        packets: Vec::new(),
    };
    let mut offset = 0usize;
    while offset < data.len() {
        let place = || format!("packet at byte {offset}");
        let mut packet = reader.packet(&data[offset..]).with_context(place)?;
        let mut patches = patches_of(&packet.head().marks)?;
        let has_full_begin = packet.head().marks.iter().any(is_full_clock);
        for time in [packet.head().begin, packet.head().end]
            .into_iter()
            .flatten()
        {
            survey.note_time(time);
        }
        let mut events = 0;
        while let Some(event) = packet.next_event() {
            let event = event.with_context(place)?;
            events += 1;
            if let Some(time) = event.time {
                survey.note_time(time);
                if !has_full_begin && !event.marks.iter().any(is_full_clock) {
                    bail!(
                        "packet at byte {offset}: its beginning is not recorded by a timestamp of 64 bits"
                    );
                }
            }
            patches.extend(patches_of(&event.marks)?);
        }
        survey.events += events;
        let head = packet.into_head();
        let length = head.total_length / 8;
        let has_length = |mark: &Mark| {
            mark.roles.contains(Roles::PACKET_TOTAL_LENGTH)
                || mark.roles.contains(Roles::PACKET_CONTENT_LENGTH)
        };
        if !head.marks.iter().any(has_length) {
            bail!("packets without a recorded length cannot be repeated");
        }
        file.packets.push(PacketSurvey {
            offset: offset as u64,
            length,
            head,
            events,
            patches,
        });
        offset += length as usize;
    }
    Ok(file)
}

fn is_full_clock(mark: &Mark) -> bool {
    mark.roles.contains(Roles::CLOCK_TIMESTAMP) && mark.length == 64
}

/// The fields among `marks` that a repetition changes.
fn patches_of(marks: &[Mark]) -> Result<Vec<Patch>> {
    let mut patches = Vec::new();
    for mark in marks {
        let is_clock = mark.roles.contains(Roles::CLOCK_TIMESTAMP)
            || mark.roles.contains(Roles::PACKET_END_TIMESTAMP);
        let counter = if is_clock && mark.length > UNCHANGED_BITS {
            Counter::Clock
        } else if mark.roles.contains(Roles::PACKET_SEQUENCE_NUMBER) {
            Counter::Sequence
        } else if mark.roles.contains(Roles::DISCARDED_EVENTS) {
            Counter::Discarded
        } else if is_clock && !mark.fixed {
            bail!("timestamps that are variable-length integers cannot be shifted in place");
        } else {
            continue;
        };
        if !mark.fixed {
            bail!("a variable-length {counter:?} field cannot be changed in place");
        }
        patches.push(Patch {
            position: mark.position,
            length: mark.length,
            byte_order: mark.class.byte_order,
            reversed_bits: mark.class.reversed_bits,
            counter,
        });
    }
    Ok(patches)
}
