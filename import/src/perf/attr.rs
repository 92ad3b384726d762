//! Event attributes that perf passed to the kernel: `struct perf_event_attr`, with names and ids of
//! events.

use crate::bytes::{Bytes, Short};

/// Bits of `sample_type`: the fields of samples.
pub(crate) mod sample_type {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `sample_type` for fields after those that are imported.
const BEHIND: [(u64, &str); 9] = [
    (1 << 11, "branch stacks"),
    (1 << 12, "user-space registers"),
    (1 << 13, "copies of user-space stacks"),
    (1 << 14, "weights"),
    (1 << 15, "data sources"),
    (1 << 18, "interrupted registers"),
    (1 << 19, "physical addresses"),
    (1 << 20, "AUX samples"),
    (1 << 21, "control groups"),
];

/// Bits of `read_format`.
pub(crate) mod read_format {
    pub(crate) const TIMES: [u64; 2] = [1 << 0, 1 << 1];
    pub(crate) const ID: u64 = 1 << 2;
    pub(crate) const GROUP: u64 = 1 << 3;
    pub(crate) const LOST: u64 = 1 << 4;
}

/// `type` of tracepoints.
const TRACEPOINT: u32 = 2;

/// Bit positions of flags in the bit field.
const FREQUENCY: u32 = 10;
const SAMPLE_ID_ALL: u32 = 18;
const USE_CLOCKID: u32 = 25;

/// Sampling rate of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// A sample after this number of events; for clocks, of nanoseconds.
    Period(u64),
    /// About this number of samples per second.
    Hertz(u64),
}

/// A recorded event, with all its counters.
#[derive(Clone, Debug)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    /// The `common_type` of a tracepoint.
    pub(crate) config: u64,
    pub(crate) rate: Rate,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    /// Other records have a trailer with their thread, time and CPU, too.
    pub(crate) sample_id_all: bool,
    /// Number of the POSIX clock, if one was requested.
    pub(crate) clock: Option<i32>,
    /// Ids of its counters.
    pub(crate) ids: Vec<u64>,
    pub(crate) name: Option<String>,
}

impl Attr {
    /// Parses a structure of this size, which may be shorter or longer than the version known here.
    pub(crate) fn parse(bytes: &[u8], offset: u64, big: bool) -> Result<Attr, Short> {
        let mut at = Bytes::new(bytes, offset, big);
        let kind = at.u32()?;
        at.take(4)?;
        let config = at.u64()?;
        let rate = at.u64()?;
        let (sample_type, read_format, flags) = (at.u64()?, at.u64()?, at.u64()?);
        // Bit fields begin at the other end on machines of the other byte order.
        let flags = if big { flags.reverse_bits() } else { flags };
        let clock = at.take(44).and_then(|_| at.i32()).ok();
        Ok(Attr {
            kind,
            config,
            rate: match flags >> FREQUENCY & 1 {
                0 => Rate::Period(rate),
                _ => Rate::Hertz(rate),
            },
            sample_type,
            read_format,
            sample_id_all: flags >> SAMPLE_ID_ALL & 1 == 1,
            clock: clock.filter(|_| flags >> USE_CLOCKID & 1 == 1),
            ids: Vec::new(),
            name: None,
        })
    }

    pub(crate) fn is_tracepoint(&self) -> bool {
        self.kind == TRACEPOINT
    }

    /// True if samples contain this field.
    pub(crate) fn has(&self, bits: u64) -> bool {
        self.sample_type & bits != 0
    }

    /// Fields of samples that are not imported.
    pub(crate) fn lacks(&self) -> impl Iterator<Item = &'static str> {
        let sample_type = self.sample_type;
        BEHIND
            .into_iter()
            .filter(move |(bit, _)| sample_type & bit != 0)
            .map(|(_, what)| what)
    }

    /// Byte offset of the id in a sample.
    pub(crate) fn id_in_sample(&self) -> Option<u64> {
        use sample_type::{ADDR, ID, IDENTIFIER, IP, TID, TIME};
        match () {
            () if self.has(IDENTIFIER) => Some(0),
            () if self.has(ID) => Some(self.words(IP | TID | TIME | ADDR)),
            () => None,
        }
    }

    /// Size in bytes of the trailer of each record that is not a sample.
    pub(crate) fn trailer(&self) -> u64 {
        use sample_type::{CPU, ID, IDENTIFIER, STREAM_ID, TID, TIME};
        match self.sample_id_all {
            true => self.words(TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER),
            false => 0,
        }
    }

    fn words(&self, bits: u64) -> u64 {
        u64::from((self.sample_type & bits).count_ones()) * 8
    }
}
