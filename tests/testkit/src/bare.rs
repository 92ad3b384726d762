//! Traces with fewer fields in their packet heads, or with wrong times in them.
//!
//! In: the streams of a trace. Out: the same bytes with metadata that gives some fields of packet
//! heads no role; and packets whose times do not match their event records, as written by faulty or
//! killed tracers.

use crate::bits;
use crate::directory;
use crate::reference::{Mark, Packet, Reader};
use crate::rng::Rng;
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::Arc;
use tracebraid_ctf::schema::{FieldClass, IntClass, Member, Name, Roles, StructClass, TraceClass};

/// A stream file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// File name.
    pub name: String,
    /// Its content.
    pub data: Vec<u8>,
}

/// A trace: its metadata and its stream files.
#[derive(Clone, Debug)]
pub struct Bare {
    /// The parsed metadata.
    pub class: TraceClass,
    /// The text of the metadata, if it was read from a file.
    metadata: Option<Vec<u8>>,
    /// Its stream files.
    pub files: Vec<File>,
}

impl Bare {
    /// Reads a trace directory.
    ///
    /// # Errors
    /// If the trace cannot be read.
    pub fn read(trace: &Path) -> Result<Bare> {
        let file = |path: std::path::PathBuf| {
            let name = path.file_name().unwrap_or_default();
            Ok(File {
                name: name.to_string_lossy().into_owned(),
                data: std::fs::read(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?,
            })
        };
        let files: Result<Vec<File>> = directory::stream_files(trace)?
            .into_iter()
            .map(file)
            .collect();
        Ok(Bare {
            class: directory::trace_class(trace)?,
            metadata: Some(std::fs::read(trace.join("metadata"))?),
            files: files?,
        })
    }

    /// Writes the trace to a new directory.
    ///
    /// # Errors
    /// If a file cannot be written, or the format cannot express the metadata.
    pub fn save(&self, trace: &Path) -> Result<()> {
        std::fs::create_dir_all(trace)?;
        let metadata = match &self.metadata {
            Some(metadata) => metadata.clone(),
            // Each writer supports forms that the other cannot express.
            None => tracebraid_ctf::write::metadata::text(&self.class)
                .or_else(|_| crate::write::metadata(&self.class))?
                .into_bytes(),
        };
        std::fs::write(trace.join("metadata"), metadata)?;
        for file in &self.files {
            std::fs::write(trace.join(&file.name), &file.data)?;
        }
        Ok(())
    }

    /// The packets of a file, read by the reference reader.
    pub fn packets(&self, file: &File) -> Vec<Packet> {
        Reader::new(&self.class).stream(&file.data).packets
    }

    /// The same trace, in which fields of packet heads with one of these roles are integers without
    /// a role, and without clocks if `has_clock` is false. Without any size each packet gets a
    /// separate file.
    ///
    /// `None` if the packets would then be unreadable.
    pub fn without(&self, roles: &[Roles], has_clock: bool) -> Option<Bare> {
        const TIMES: [Roles; 2] = [Roles::CLOCK_TIMESTAMP, Roles::PACKET_END_TIMESTAMP];
        let times = TIMES.iter().filter(|_| !has_clock);
        let roles: &[Roles] = &roles.iter().chain(times).copied().collect::<Vec<_>>();
        let mut class = self.class.clone();
        if class.streams.len() > 1 && roles.contains(&Roles::STREAM_CLASS_ID) {
            return None;
        }
        class.packet_header = class
            .packet_header
            .map(|class| bare(&class, roles, has_clock));
        for stream in &mut class.streams {
            let context = stream.packet_context.take();
            stream.packet_context = context.map(|class| bare(&class, roles, has_clock));
            if !has_clock {
                let header = stream.event_header.take();
                stream.event_header =
                    header.map(|class| bare(&class, &[Roles::CLOCK_TIMESTAMP], false));
                stream.default_clock = None;
            }
        }
        if !has_clock {
            class.clocks.clear();
        }
        let mut files = Vec::new();
        for file in &self.files {
            files.extend(self.cut(file, roles)?);
        }
        let metadata = None;
        Some(Bare {
            class,
            metadata,
            files,
        })
    }

    /// Splits a file so that it can be read without these roles in heads: packets end where the
    /// remaining sizes indicate, or else with their files.
    fn cut(&self, file: &File, roles: &[Roles]) -> Option<Vec<File>> {
        let mut files: Vec<File> = Vec::new();
        for (number, packet) in self.packets(file).iter().enumerate() {
            let has = |role: Roles| {
                let mut marks = packet.head.marks.iter();
                !roles.contains(&role) && marks.any(|mark| mark.roles.contains(role))
            };
            let has_total = has(Roles::PACKET_TOTAL_LENGTH);
            let has_content = has(Roles::PACKET_CONTENT_LENGTH);
            let (total, content) = (packet.head.total_length, packet.head.content_length);
            let needs_bytes = !(has_total && has_content);
            let would_be_content = has_total && !has_content && total != content;
            if needs_bytes && content % 8 != 0 || would_be_content {
                return None;
            }
            let from = packet.offset as usize;
            let bits = if has_total { total } else { content };
            let data = file.data.get(from..from + (bits / 8) as usize)?;
            match files.last_mut().filter(|_| has_total || has_content) {
                Some(last) => last.data.extend_from_slice(data),
                None => files.push(File {
                    name: format!("{}_{number:04}", file.name),
                    data: data.to_vec(),
                }),
            }
        }
        Some(files)
    }

    /// Changes the times in packet heads at random, as tracers with known faults do: ends of 0 (a
    /// killed tracer), ends before the last event record (LTTng), beginnings after the first event
    /// record (barectf), and equal beginnings and ends. Event records keep their times. Returns the
    /// number of changed packets.
    pub fn make_odd(&mut self, rng: &mut Rng) -> usize {
        let class = self.class.clone();
        let reader = Reader::new(&class);
        let mut changed = 0;
        for file in &mut self.files {
            for packet in reader.stream(&file.data).packets {
                if rng.chance(40) {
                    continue;
                }
                let times = odd_times(rng, &packet);
                let mark = |role: Roles| {
                    let marks = packet.head.marks.iter();
                    marks.rev().find(move |mark| mark.roles.contains(role))
                };
                let fields = [
                    (mark(Roles::PACKET_END_TIMESTAMP), times.1),
                    (
                        mark(Roles::CLOCK_TIMESTAMP).filter(|_| has_full_times(&packet)),
                        times.0,
                    ),
                ];
                for (mark, time) in fields {
                    if let (Some(mark), Some(time)) = (mark, time) {
                        changed +=
                            usize::from(set(&mut file.data, packet.offset, mark, time).is_some());
                    }
                }
            }
        }
        changed
    }
}

/// Wrong beginning and end of a packet.
fn odd_times(rng: &mut Rng, packet: &Packet) -> (Option<u64>, Option<u64>) {
    let times = || packet.events.iter().filter_map(|event| event.time);
    let (first, last) = (times().next(), times().next_back());
    let between = |rng: &mut Rng| Some(first? + rng.below(last?.saturating_sub(first?) + 1));
    match rng.below(6) {
        0 => (None, Some(0)),
        1 => (None, between(rng)),
        2 => (between(rng), None),
        3 => {
            let both = between(rng);
            (both, both)
        }
        4 => (packet.head.end, packet.head.end),
        _ => (between(rng), Some(0)),
    }
}

/// True if no event record's time depends on the packet's beginning.
fn has_full_times(packet: &Packet) -> bool {
    packet.events.iter().all(|event| {
        let marks = event.marks.iter();
        let mut times = marks.filter(|mark| mark.roles.contains(Roles::CLOCK_TIMESTAMP));
        times.any(|mark| mark.length >= 64)
    })
}

/// Sets an integer of a packet's head.
fn set(data: &mut [u8], offset: u64, mark: &Mark, value: u64) -> Option<()> {
    let class = &mark.class;
    if !mark.fixed || (class.length < 64 && value >> class.length != 0) {
        return None;
    }
    let raw = u128::from(value);
    let raw = if class.reversed_bits {
        bits::reverse(raw, class.length)
    } else {
        raw
    };
    bits::write(
        data,
        offset * 8 + mark.position,
        class.length,
        class.byte_order,
        raw,
    )
}

/// The class in which integers with these roles are renamed and have no role: in CTF 1.8 names
/// determine roles.
fn bare(class: &FieldClass, roles: &[Roles], has_clock: bool) -> FieldClass {
    let plain = |int: &Arc<IntClass>| match is_dropped(int, roles, has_clock) {
        false => int.clone(),
        true => Arc::new(IntClass {
            roles: Roles::NONE,
            clock: None,
            ..(**int).clone()
        }),
    };
    match class {
        FieldClass::Int(int) => FieldClass::Int(plain(int)),
        FieldClass::VarInt(int) => FieldClass::VarInt(plain(int)),
        FieldClass::Struct(structure) => {
            let member = |member: &Member| Member {
                name: match &member.class {
                    FieldClass::Int(int) | FieldClass::VarInt(int)
                        if is_dropped(int, roles, has_clock) =>
                    {
                        Name::from(format!("plain_{}", member.name))
                    }
                    _ => member.name.clone(),
                },
                class: bare(&member.class, roles, has_clock),
            };
            FieldClass::Struct(Arc::new(StructClass {
                min_align: structure.min_align,
                members: structure.members.iter().map(member).collect(),
            }))
        }
        FieldClass::Variant(variant) => {
            let mut variant = (**variant).clone();
            for option in &mut variant.options {
                option.class = bare(&option.class, roles, has_clock);
            }
            FieldClass::Variant(Arc::new(variant))
        }
        other => other.clone(),
    }
}

fn is_dropped(int: &IntClass, roles: &[Roles], has_clock: bool) -> bool {
    roles.iter().any(|&role| int.roles.contains(role)) || (!has_clock && int.clock.is_some())
}
