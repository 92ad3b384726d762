//! Records that are not samples: threads, mappings and context switches.

use tracebraid_ctf::schema::build::Fields;
use tracebraid_ctf::write::fields::Fields as Values;

use super::features::{BuildId, hex};
use super::order::Record;
use crate::bytes::{Bytes, Short, before_null};

/// `type` of records.
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
    /// The kernel's own records have smaller numbers.
    pub(crate) const FIRST_OF_PERF: u32 = 64;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const BUILD_ID: u32 = 67;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
}

/// Bits of `misc`.
const MMAP_BUILD_ID: u16 = 1 << 14;
const COMM_EXEC: u16 = 1 << 13;
const SWITCH_OUT: u16 = 1 << 13;
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// A record that is not a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Comm {
        pid: i32,
        tid: i32,
        /// True if the name is that of a newly executed program.
        exec: bool,
        comm: Vec<u8>,
    },
    Fork {
        ids: [i32; 4],
        time: u64,
    },
    Exit {
        ids: [i32; 4],
        time: u64,
    },
    Mmap {
        ids: [i32; 2],
        place: [u64; 3],
        filename: Vec<u8>,
    },
    Mmap2(Box<Mmap2>),
    Switch {
        /// The process and thread that is switched out or in, from the sample fields after the
        /// record.
        ids: [i32; 2],
        out: bool,
        preempted: bool,
        other: [i32; 2],
    },
    BuildId(BuildId),
}

/// A mapping, with the identity of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mmap2 {
    ids: [i32; 2],
    /// Address, size and offset in the file, in bytes.
    place: [u64; 3],
    device: [u32; 2],
    inode: [u64; 2],
    build_id: String,
    protection: u32,
    flags: u32,
    filename: Vec<u8>,
}

/// Number of kinds of [`Side`], each of which is an event class.
pub(crate) const KINDS: usize = 7;

impl Side {
    /// Parses a record with a trailer of `trailer` bytes; `None` if it is of another kind.
    pub(crate) fn parse(record: &Record, trailer: u64, big: bool) -> Result<Option<Side>, Short> {
        let mut at = Bytes::new(&record.body, record.offset + 8, big);
        let size = (record.body.len() as u64).saturating_sub(trailer);
        let mut at = Bytes::new(at.take(size)?, record.offset + 8, big);
        let at = &mut at;
        Ok(Some(match record.kind {
            kind::COMM => Side::Comm {
                pid: at.i32()?,
                tid: at.i32()?,
                exec: record.misc & COMM_EXEC != 0,
                comm: before_null(at.rest()).to_vec(),
            },
            kind::FORK => Side::Fork {
                ids: four(at)?,
                time: at.u64()?,
            },
            kind::EXIT => Side::Exit {
                ids: four(at)?,
                time: at.u64()?,
            },
            kind::MMAP => Side::Mmap {
                ids: [at.i32()?, at.i32()?],
                place: [at.u64()?, at.u64()?, at.u64()?],
                filename: before_null(at.rest()).to_vec(),
            },
            kind::MMAP2 => Side::Mmap2(Box::new(Mmap2::parse(record.misc, at)?)),
            kind::SWITCH | kind::SWITCH_CPU_WIDE => Side::Switch {
                ids: [-1, -1],
                out: record.misc & SWITCH_OUT != 0,
                preempted: record.misc & SWITCH_OUT_PREEMPT != 0,
                other: match record.kind {
                    kind::SWITCH => [-1, -1],
                    _ => [at.i32()?, at.i32()?],
                },
            },
            kind::BUILD_ID => Side::BuildId(BuildId::parse(record.misc, at)?),
            _ => return Ok(None),
        }))
    }

    /// Index of the kind, below [`KINDS`].
    pub(crate) fn index(&self) -> usize {
        match self {
            Side::Comm { .. } => 0,
            Side::Fork { .. } => 1,
            Side::Exit { .. } => 2,
            Side::Mmap { .. } => 3,
            Side::Mmap2(_) => 4,
            Side::Switch { .. } => 5,
            Side::BuildId(_) => 6,
        }
    }

    /// Name of the event class. Most names are those of perf's own conversion to CTF.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Side::Comm { .. } => "perf_comm",
            Side::Fork { .. } => "perf_fork",
            Side::Exit { .. } => "perf_exit",
            Side::Mmap { .. } => "perf_mmap",
            Side::Mmap2(_) => "perf_mmap2",
            Side::Switch { .. } => "perf_switch",
            Side::BuildId(_) => "perf_build_id",
        }
    }

    /// Adds the fields of the event class.
    pub(crate) fn add_to(&self, fields: Fields) -> Fields {
        let ids = |fields: Fields| fields.int("pid", 32).int("tid", 32);
        let place = |fields: Fields| ids(fields).hex("start", 64).hex("len", 64).hex("pgoff", 64);
        match self {
            Side::Comm { .. } => ids(fields).string("comm").uint("exec", 8),
            Side::Fork { .. } | Side::Exit { .. } => fields
                .int("pid", 32)
                .int("ppid", 32)
                .int("tid", 32)
                .int("ptid", 32)
                .uint("time", 64),
            Side::Mmap { .. } => place(fields).string("filename"),
            Side::Mmap2(_) => place(fields)
                .uint("maj", 32)
                .uint("min", 32)
                .uint("ino", 64)
                .uint("ino_generation", 64)
                .string("build_id")
                .hex("prot", 32)
                .hex("flags", 32)
                .string("filename"),
            Side::Switch { .. } => ids(fields)
                .uint("out", 8)
                .uint("preempted", 8)
                .int("next_prev_pid", 32)
                .int("next_prev_tid", 32),
            Side::BuildId(_) => fields.int("pid", 32).string("build_id").string("filename"),
        }
    }

    /// Passes the values of the fields.
    pub(crate) fn give(&self, to: &mut Values<'_>) {
        match self {
            Side::Comm {
                pid,
                tid,
                exec,
                comm,
            } => {
                to.int((*pid).into()).int((*tid).into()).bytes(comm);
                to.uint((*exec).into());
            }
            Side::Fork { ids, time } | Side::Exit { ids, time } => {
                ids.iter().for_each(|&id| {
                    to.int(id.into());
                });
                to.uint(*time);
            }
            Side::Mmap {
                ids,
                place,
                filename,
            } => {
                ids.iter().for_each(|&id| {
                    to.int(id.into());
                });
                place.iter().for_each(|&number| {
                    to.uint(number);
                });
                to.bytes(filename);
            }
            Side::Mmap2(mapping) => mapping.give(to),
            Side::Switch {
                ids,
                out,
                preempted,
                other,
            } => {
                ids.iter().for_each(|&id| {
                    to.int(id.into());
                });
                to.uint((*out).into()).uint((*preempted).into());
                other.iter().for_each(|&id| {
                    to.int(id.into());
                });
            }
            Side::BuildId(of) => {
                to.int(of.pid.into()).string(&of.id).bytes(&of.filename);
            }
        }
    }
}

fn four(at: &mut Bytes<'_>) -> Result<[i32; 4], Short> {
    Ok([at.i32()?, at.i32()?, at.i32()?, at.i32()?])
}

impl Mmap2 {
    fn parse(misc: u16, at: &mut Bytes<'_>) -> Result<Mmap2, Short> {
        let mut mapping = Mmap2 {
            ids: [at.i32()?, at.i32()?],
            place: [at.u64()?, at.u64()?, at.u64()?],
            ..Mmap2::default()
        };
        if misc & MMAP_BUILD_ID != 0 {
            let size = usize::from(at.u8()?);
            at.take(3)?;
            let room = at.take(20)?;
            mapping.build_id = hex(room.get(..size).unwrap_or(room));
        } else {
            mapping.device = [at.u32()?, at.u32()?];
            mapping.inode = [at.u64()?, at.u64()?];
        }
        (mapping.protection, mapping.flags) = (at.u32()?, at.u32()?);
        mapping.filename = before_null(at.rest()).to_vec();
        Ok(mapping)
    }

    fn give(&self, to: &mut Values<'_>) {
        self.ids.iter().for_each(|&id| {
            to.int(id.into());
        });
        self.place.iter().for_each(|&number| {
            to.uint(number);
        });
        self.device.iter().for_each(|&number| {
            to.uint(number.into());
        });
        self.inode.iter().for_each(|&number| {
            to.uint(number);
        });
        to.string(&self.build_id)
            .uint(self.protection.into())
            .uint(self.flags.into())
            .bytes(&self.filename);
    }
}
