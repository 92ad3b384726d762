//! Traces for Perfetto: tracks with slices, and arrows between them.
//!
//! The numbers of fields are those of `protos/perfetto/trace` in Perfetto's repository.

use crate::protobuf::Message;

/// A trace under construction.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    bytes: Vec<u8>,
    tracks: u64,
}

/// Id of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

/// A slice of a track.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// Begin, in nanoseconds.
    pub begin: i64,
    /// End, in nanoseconds.
    pub end: i64,
    /// Label of the slice.
    pub name: &'a str,
    /// Category of the slice.
    pub category: &'a str,
    /// Names and values of further properties.
    pub notes: &'a [(&'a str, &'a str)],
    /// Numbers of arrows that begin or end at the slice; each number must occur in two slices.
    pub arrows: &'a [u64],
}

/// `Trace`, `TracePacket`.
const PACKET: u32 = 1;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const EVENT: u32 = 11;
const SEQUENCE_FLAGS: u32 = 13;
const DESCRIPTOR: u32 = 60;
/// `TrackDescriptor`.
const UUID: u32 = 1;
const NAME: u32 = 2;
const PARENT: u32 = 5;
/// `TrackEvent`.
const NOTE: u32 = 4;
const KIND: u32 = 9;
const TRACK: u32 = 11;
const CATEGORY: u32 = 22;
const EVENT_NAME: u32 = 23;
const ARROW: u32 = 47;
const BEGIN: u64 = 1;
const END: u64 = 2;
/// `DebugAnnotation`.
const NOTE_TEXT: u32 = 6;
const NOTE_NAME: u32 = 10;

impl Trace {
    /// Adds a track, below `parent` if it is given.
    pub fn track(&mut self, name: &str, parent: Option<Track>) -> Track {
        self.tracks += 1;
        let mut descriptor = Message::default()
            .number(UUID, self.tracks)
            .text(NAME, name);
        if let Some(Track(parent)) = parent {
            descriptor = descriptor.number(PARENT, parent);
        }
        let mut packet = Message::default().message(DESCRIPTOR, descriptor);
        if self.tracks == 1 {
            // The first packet of a sequence must clear the incremental state.
            packet = packet.number(SEQUENCE_FLAGS, 1);
        }
        self.packet(packet);
        Track(self.tracks)
    }

    /// Adds a slice to a track. The slices of a track must be in the order of time and must not
    /// overlap.
    pub fn slice(&mut self, Track(track): Track, slice: &Slice<'_>) {
        let mut begin = Message::default()
            .number(KIND, BEGIN)
            .number(TRACK, track)
            .text(CATEGORY, slice.category)
            .text(EVENT_NAME, slice.name);
        for (name, value) in slice.notes {
            let note = Message::default()
                .text(NOTE_NAME, name)
                .text(NOTE_TEXT, value);
            begin = begin.message(NOTE, note);
        }
        for &arrow in slice.arrows {
            begin = begin.fixed(ARROW, arrow);
        }
        let end = Message::default().number(KIND, END).number(TRACK, track);
        for (time, event) in [(slice.begin, begin), (slice.end, end)] {
            let packet = Message::default().number(TIMESTAMP, time.max(0) as u64);
            self.packet(packet.message(EVENT, event));
        }
    }

    fn packet(&mut self, packet: Message) {
        let packet = packet.number(SEQUENCE, 1);
        let bytes = Message::default().message(PACKET, packet).into_bytes();
        self.bytes.extend(bytes);
    }

    /// The bytes of a trace file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
