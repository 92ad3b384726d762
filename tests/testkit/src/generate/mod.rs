//! The generator of random traces in either format, with their content.
//!
//! In: a seed. Out: the files of a trace, and a model of it: the schema, and for every packet and
//! event record the position, the time and all values, as they were before encoding. Equal options
//! give equal traces on every machine.

mod classes;
mod fields;
mod headers;
mod names;
mod needs;
mod packets;
mod values;

use crate::index::{self, IndexEntry};
use crate::metadata;
use crate::rng::Rng;
use crate::value::Value;
use crate::write::{self, EventValues};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use tracebraid_ctf::schema::{CtfVersion, TraceClass};

/// Parameters of a generated trace.
#[derive(Clone, Debug)]
pub struct Options {
    /// Each seed gives a different trace.
    pub seed: u64,
    /// Format version.
    pub version: CtfVersion,
    /// Approximate number of event records in all streams together.
    pub events: u64,
    /// Number of stream classes; `None`: random.
    pub stream_classes: Option<u64>,
    /// Number of data streams of each class; `None`: random.
    pub streams: Option<u64>,
    /// Generates only traces that babeltrace2 2.0.4 reads and prints correctly (CTF 1.8).
    pub babeltrace: bool,
}

impl Default for Options {
    fn default() -> Self {
        let version = CtfVersion::V1_8;
        Options {
            seed: 0,
            version,
            events: 60,
            stream_classes: None,
            streams: None,
            babeltrace: false,
        }
    }
}

/// A generated trace.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The schema of the metadata.
    pub class: TraceClass,
    /// The metadata's text.
    pub metadata_text: String,
    /// Content of the file `metadata`.
    pub metadata: Vec<u8>,
    /// Its data streams.
    pub streams: Vec<GeneratedStream>,
}

/// A generated data stream.
#[derive(Clone, Debug)]
pub struct GeneratedStream {
    /// Name of its file.
    pub file_name: String,
    /// Index of its class in the trace class.
    pub class: usize,
    /// Its id in its class, if its packets have one.
    pub id: Option<u64>,
    /// Its packets.
    pub packets: Vec<GeneratedPacket>,
    /// Content of its file.
    pub data: Vec<u8>,
    /// Content of its LTTng index file, if it has one.
    pub index: Option<Vec<u8>>,
}

/// A generated packet.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedPacket {
    /// Offset in its file, in bytes.
    pub offset: u64,
    /// Total length in bits.
    pub total_length: u64,
    /// Length of the content in bits.
    pub content_length: u64,
    /// Header.
    pub header: Option<Value>,
    /// Context.
    pub context: Option<Value>,
    /// Time of its beginning in cycles, if it has one.
    pub begin: Option<u64>,
    /// Time of its end in cycles, if it has one.
    pub end: Option<u64>,
    /// Sequence number, if it has one.
    pub sequence_number: Option<u64>,
    /// Running count of discarded event records, if it has one.
    pub discarded_events: Option<u64>,
    /// Its event records.
    pub events: Vec<GeneratedEvent>,
}

/// A generated event record.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedEvent {
    /// Index of its class in the stream class.
    pub class: usize,
    /// Position before any alignment, in bits from the packet's start.
    pub start: u64,
    /// Position of the end, in bits from the packet's start.
    pub end: u64,
    /// Value of the stream's clock, in cycles; `None` without a clock.
    pub time: Option<u64>,
    /// The same in nanoseconds from the clock's origin, rounded down.
    pub nanoseconds: Option<i64>,
    /// Its values.
    pub values: EventValues,
}

impl Generated {
    /// Number of event records.
    pub fn event_count(&self) -> usize {
        let packets = self.streams.iter().flat_map(|stream| &stream.packets);
        packets.map(|packet| packet.events.len()).sum()
    }

    /// Writes the trace's files to a directory, which is created.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let make = |path: &Path| {
            fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
        };
        make(directory)?;
        fs::write(directory.join("metadata"), &self.metadata)?;
        for stream in &self.streams {
            let path = directory.join(&stream.file_name);
            fs::write(&path, &stream.data)
                .with_context(|| format!("cannot write {}", path.display()))?;
            if let Some(index) = &stream.index {
                make(&directory.join("index"))?;
                fs::write(crate::directory::index_path(&path), index)?;
            }
        }
        Ok(())
    }
}

/// Generates a trace.
///
/// # Errors
/// If a value does not fit its generated field, which is a bug of the generator.
pub fn generate(options: &Options) -> Result<Generated> {
    // The seed is scrambled, so that formats and modes differ in all choices.
    let mode = u64::from(options.babeltrace) << 1 | u64::from(options.version == CtfVersion::V2_0);
    let mut rng = Rng::new(options.seed.wrapping_mul(4).wrapping_add(mode));
    let classes = classes::make(&mut rng, options);
    let mut streams = Vec::new();
    let counts: Vec<u64> = classes
        .class
        .streams
        .iter()
        .map(|_| options.streams.unwrap_or_else(|| rng.pick(&[1, 1, 2, 3])))
        .collect();
    let events_each = options.events / counts.iter().sum::<u64>().max(1);
    for (class, &count) in counts.iter().enumerate() {
        let base = packets::base_time(&mut rng, &classes, class);
        for number in 0..count {
            let mut stream = packets::make(
                &mut rng,
                options,
                &classes,
                class,
                number,
                base,
                events_each,
            )?;
            stream.index = index_of(&mut rng, &classes.class, &stream);
            streams.push(stream);
        }
    }
    let metadata_text = write::metadata(&classes.class)?;
    let metadata = container(&mut rng, &classes.class, &metadata_text);
    Ok(Generated {
        class: classes.class,
        metadata_text,
        metadata,
        streams,
    })
}

/// The metadata file: plain text, or (CTF 1.8) packets.
fn container(rng: &mut Rng, class: &TraceClass, text: &str) -> Vec<u8> {
    if class.version == CtfVersion::V2_0 || rng.chance(40) {
        return text.as_bytes().to_vec();
    }
    let size = rng.pick(&[64, 256, 4096, 65_536]);
    metadata::packetize(text.as_bytes(), class.uuid, class.byte_order, size)
}

/// An index like LTTng's, for streams that contain all data for its entries.
fn index_of(rng: &mut Rng, class: &TraceClass, stream: &GeneratedStream) -> Option<Vec<u8>> {
    let is_complete = stream
        .packets
        .iter()
        .all(|packet| packet.begin.is_some() && packet.end.is_some());
    if !is_complete || !rng.chance(50) {
        return None;
    }
    let entry = |packet: &GeneratedPacket| IndexEntry {
        offset: packet.offset,
        total_length: packet.total_length,
        content_length: packet.content_length,
        begin: packet.begin.unwrap_or(0),
        end: packet.end.unwrap_or(0),
        discarded_events: packet.discarded_events.unwrap_or(0),
        stream_class_id: class.streams[stream.class].id,
        stream_id: stream.id.unwrap_or(0),
        sequence_number: packet.sequence_number.unwrap_or(0),
    };
    Some(index::encode(
        &stream.packets.iter().map(entry).collect::<Vec<_>>(),
    ))
}
