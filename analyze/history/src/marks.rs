//! Records how far the streams of a trace were read, and whether another state of the trace
//! continues from there.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::ClockConversion;
use tracebraid_ctf::stream::{Packet, Stream};
use tracebraid_ctf::trace::{Trace, TraceSet};

/// A stream, and how far it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamMark {
    /// Index of the trace.
    pub trace: u32,
    /// Index of the stream class.
    pub class: usize,
    /// Id of the stream within its class.
    pub id: Option<u64>,
    /// Name of the stream's first file.
    pub file: String,
    /// Number of packets that were read.
    pub packets: u64,
    /// CRC-32 of the headers of these packets, except the last.
    before: u32,
    /// CRC-32 of the header of the last packet, which may have been incomplete.
    last: u32,
}

/// The part of a trace that a history does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// Number of packets.
    pub(crate) packets: u64,
    /// No value changes earlier, in nanoseconds from the origin.
    pub(crate) since: i64,
}

impl StreamMark {
    /// The marks of a trace set that is read completely.
    pub(crate) fn of(set: &TraceSet) -> Vec<StreamMark> {
        let traces = (0..).zip(&set.traces);
        let marks = traces.flat_map(|(index, trace)| {
            let mark = move |stream| StreamMark::new(index, trace, stream);
            trace.streams.iter().map(mark)
        });
        marks.collect()
    }

    fn new(index: u32, trace: &Trace, stream: &Stream) -> StreamMark {
        let packets = stream.packets.len();
        let (before, last) = sums(trace, stream, packets);
        StreamMark {
            trace: index,
            class: stream.class,
            id: stream.id,
            file: name(stream),
            packets: packets as u64,
            before,
            last,
        }
    }

    fn is_of(&self, index: u32, stream: &Stream) -> bool {
        let place = (self.trace, self.class, self.id);
        place == (index, stream.class, stream.id) && self.file == name(stream)
    }

    /// Path of the first file, for messages: files of several traces may have the same name.
    fn place(&self, trace: &Trace) -> String {
        let directory = trace.paths.first().cloned().unwrap_or_default();
        directory.join(&self.file).display().to_string()
    }

    /// Index of the first packet that is new or has changed.
    fn first_new(&self, trace: &Trace, stream: &Stream) -> Result<usize, String> {
        let known = usize::try_from(self.packets).unwrap_or(usize::MAX);
        if known > stream.packets.len() {
            let left = stream.packets.len();
            let place = self.place(trace);
            return Err(format!("{place} has {left} packets, but had {known}"));
        }
        let (before, last) = sums(trace, stream, known);
        match (before == self.before, last == self.last) {
            (false, _) => Err(format!("{} contains other packets", self.place(trace))),
            (_, true) => Ok(known),
            (_, false) => Ok(known.saturating_sub(1)),
        }
    }
}

/// The growth of a trace set since the marks were made; an error if it is a different trace.
pub(crate) fn growth(marks: &[StreamMark], set: &TraceSet) -> Result<Option<Growth>, String> {
    let mut growth: Option<Growth> = None;
    let mut found = 0;
    for (index, trace) in (0..).zip(&set.traces) {
        for stream in &trace.streams {
            let mark = marks.iter().find(|mark| mark.is_of(index, stream));
            found += usize::from(mark.is_some());
            let first = mark.map_or(Ok(0), |mark| mark.first_new(trace, stream))?;
            if let Some(new) = of_stream(trace, stream, first) {
                growth = Some(growth.map_or(new, |growth| growth.join(new)));
            }
        }
    }
    match found == marks.len() {
        true => Ok(growth),
        false => Err(lost(marks, set)),
    }
}

impl Growth {
    fn join(self, other: Growth) -> Growth {
        Growth {
            packets: self.packets + other.packets,
            since: self.since.min(other.since),
        }
    }
}

/// The growth of a stream from a packet on.
fn of_stream(trace: &Trace, stream: &Stream, first: usize) -> Option<Growth> {
    let clock = trace.clock(stream);
    let new = stream.packets.get(first..)?;
    let begins = new.iter().map(|packet| time(clock, packet.begin));
    // Events of the last packet after its recorded end count from the start of the next packet.
    let before = first
        .checked_sub(1)
        .and_then(|before| stream.packets.get(before));
    let ends = before
        .filter(|packet| packet.end.is_some())
        .map(|packet| time(clock, packet.end));
    let packets = new.len() as u64;
    let begin = begins.min()?;
    let since = ends.map_or(begin, |end| end.min(begin));
    Some(Growth { packets, since })
}

/// The time of a packet boundary; the minimum if it was not recorded, since it may be any time.
pub(crate) fn time(clock: Option<ClockConversion>, cycles: Option<u64>) -> i64 {
    let time = clock
        .zip(cycles)
        .map(|(clock, cycles)| clock.timestamp(cycles).0);
    time.unwrap_or(i64::MIN)
}

/// Describes a stream that no longer exists.
fn lost(marks: &[StreamMark], set: &TraceSet) -> String {
    let is_there = |mark: &&StreamMark| {
        let trace = set.traces.get(mark.trace as usize);
        trace.is_some_and(|trace| {
            trace
                .streams
                .iter()
                .any(|stream| mark.is_of(mark.trace, stream))
        })
    };
    let lost = marks.iter().find(|mark| !is_there(mark));
    let Some(mark) = lost else {
        return "a stream is missing".to_owned();
    };
    match set.traces.get(mark.trace as usize) {
        Some(trace) => format!("{} is missing", mark.place(trace)),
        None => {
            let (file, number) = (&mark.file, u64::from(mark.trace) + 1);
            format!(
                "{file} of trace {number} is missing: only {} traces were given",
                set.traces.len()
            )
        }
    }
}

fn name(stream: &Stream) -> String {
    let file = stream.files.first().and_then(|file| file.path.file_name());
    file.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Checksums of the headers of the first packets: of all but the last, and of the last.
fn sums(trace: &Trace, stream: &Stream, packets: usize) -> (u32, u32) {
    let clock = trace.clock(stream);
    let packets = stream.packets.get(..packets).unwrap_or_default();
    let Some((last, before)) = packets.split_last() else {
        return (0, 0);
    };
    let mut hasher = crc32fast::Hasher::new();
    before
        .iter()
        .for_each(|packet| add(&mut hasher, clock, packet));
    let mut of_last = crc32fast::Hasher::new();
    add(&mut of_last, clock, last);
    (hasher.finalize(), of_last.finalize())
}

fn add(hasher: &mut crc32fast::Hasher, clock: Option<ClockConversion>, packet: &Packet) {
    let [begin, end] = [packet.begin, packet.end].map(|cycles| time(clock, cycles));
    hasher.update(&begin.to_le_bytes());
    hasher.update(&end.to_le_bytes());
    let numbers = [
        Some(packet.bytes),
        Some(packet.content_bits),
        packet.discarded,
        packet.sequence,
    ];
    for number in numbers {
        hasher.update(&[u8::from(number.is_some())]);
        hasher.update(&number.unwrap_or(0).to_le_bytes());
    }
}
