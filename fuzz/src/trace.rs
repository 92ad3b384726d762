//! Targets that open a trace and read it completely, with all readers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::Corpus;
use tracebraid_ctf::layout::TraceLayout;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::scan::{Counts, LANES, Progress, ScanTable, Scanner};
use tracebraid_ctf::schema::TraceClass;
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::walk::Silent;

/// Metadata for the streams of the target `packets`; the first byte of its input chooses one.
const METADATA: &[&[u8]] = &[
    include_bytes!("../metadata/compact.tsdl"),
    include_bytes!("../metadata/dynamic.tsdl"),
    include_bytes!("../metadata/bits.tsdl"),
    include_bytes!("../metadata/bare.tsdl"),
    include_bytes!("../metadata/dynamic.json"),
    include_bytes!("../metadata/header.json"),
    include_bytes!("../metadata/aligned.tsdl"),
    include_bytes!("../metadata/extended.tsdl"),
    include_bytes!("../metadata/contexts.tsdl"),
];

/// Compiles the layout, and the location of each event class's payload.
pub(crate) fn compile(class: TraceClass) {
    let layout = TraceLayout::new(Arc::new(class));
    for stream in &layout.streams {
        for event in 0..stream.events.len() {
            let _ = stream.field(event, tracebraid_ctf::schema::Scope::Payload, &[]);
        }
        ScanTable::new(stream, |class| class % 2 == 0);
    }
}

/// A directory of this process. The script that runs the targets removes it.
pub(crate) fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let made = tempfile::Builder::new().prefix("tracebraid-fuzz").tempdir();
        let path = made.expect("a directory").keep();
        std::fs::create_dir(path.join("index")).expect("a directory");
        path
    })
}

fn read_files(metadata: &[u8], stream: &[u8], index: Option<&[u8]>) {
    let directory = directory();
    let index_path = directory.join("index/stream.idx");
    std::fs::write(directory.join("metadata"), metadata).expect("written");
    std::fs::write(directory.join("stream"), stream).expect("written");
    match index {
        Some(index) => std::fs::write(index_path, index).expect("written"),
        None => drop(std::fs::remove_file(index_path)),
    }
    let Ok(trace) = Trace::open(directory) else {
        return;
    };
    for told in &trace.damage {
        assert!(!told.to_string().is_empty());
    }
    for stream in &trace.streams {
        let read = read(&trace, stream);
        let counted = count(&trace, stream);
        assert_eq!(read, counted, "event records by class: read and counted");
        if let Some(together) = count_together(&trace, stream) {
            let three: Vec<u64> = counted.iter().map(|count| count * LANES as u64).collect();
            assert_eq!(
                three, together,
                "event records by class: counted and counted together"
            );
        }
        assert_eq!(
            read.iter().sum::<u64>(),
            hits(&trace, stream),
            "event records: read and found"
        );
        stream.losses();
    }
}

fn read(trace: &Trace, stream: &Stream) -> Vec<u64> {
    let mut counts = vec![0; trace.layout.streams[stream.class].events.len()];
    let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 64);
    while reader.peek().is_some() {
        if let Some(mut event) = reader.event() {
            counts[event.class_index] += 1;
            event.walk_header(&mut Silent).expect("a sound header");
            event
                .walk_body(&mut Silent, |_, _| {})
                .expect("a sound body");
        }
        reader.advance();
    }
    for told in reader.take_damage() {
        let bytes = trace
            .streams
            .iter()
            .flat_map(|stream| &stream.files)
            .map(|file| file.bytes)
            .max();
        assert!(
            told.offset.is_none_or(|offset| Some(offset) <= bytes),
            "{told}"
        );
    }
    counts
}

fn count(trace: &Trace, stream: &Stream) -> Vec<u64> {
    let layout = &trace.layout.streams[stream.class];
    let table = Arc::new(ScanTable::new(layout, |_| false));
    let mut counts = Counts::new(layout);
    let Some(mut scanner) = Scanner::new(trace, stream, table, 0..stream.packets.len()) else {
        return Vec::new();
    };
    while scanner.next_packet().is_some() {
        while !scanner.count(&mut counts, 0..u64::MAX).ended {}
    }
    counts.take(layout)
}

/// Counts the same packet in all lanes at once.
fn count_together(trace: &Trace, stream: &Stream) -> Option<Vec<u64>> {
    let layout = &trace.layout.streams[stream.class];
    let table = Arc::new(ScanTable::new(layout, |_| false));
    let mut counts = Counts::new(layout);
    let scanner = || Scanner::new(trace, stream, table.clone(), 0..stream.packets.len());
    let (mut a, mut b, mut c) = (scanner()?, scanner()?, scanner()?);
    while let (Some(_), Some(_), Some(_)) = (a.next_packet(), b.next_packet(), c.next_packet()) {
        loop {
            let lanes = [&mut a, &mut b, &mut c];
            let (_, stopped) = Scanner::count_together(lanes, &mut counts, [u64::MAX; LANES]);
            let stopped = [&mut a, &mut b, &mut c].into_iter().nth(stopped)?;
            if stopped.count_next(&mut counts, 0..u64::MAX).ended {
                break;
            }
        }
        for lane in [&mut a, &mut b, &mut c] {
            while !lane.count(&mut counts, 0..u64::MAX).ended {}
        }
    }
    Some(counts.take(layout))
}

fn hits(trace: &Trace, stream: &Stream) -> u64 {
    let layout = &trace.layout.streams[stream.class];
    let table = Arc::new(ScanTable::new(layout, |_| true));
    let Some(mut scanner) = Scanner::new(trace, stream, table, 0..stream.packets.len()) else {
        return 0;
    };
    let mut found = 0;
    while scanner.next_packet().is_some() {
        loop {
            let progress = scanner.scan();
            found += scanner.hits().len() as u64;
            if progress == Progress::PacketEnd {
                break;
            }
        }
    }
    found
}

/// A byte selects the metadata; the rest is the stream.
pub(crate) fn packets(data: &[u8]) -> Corpus {
    let Some((&choice, stream)) = data.split_first() else {
        return Corpus::Reject;
    };
    let Some(metadata) = METADATA.get(usize::from(choice)) else {
        return Corpus::Reject;
    };
    read_files(metadata, stream, None);
    Corpus::Keep
}

/// Splits the data: two bytes, little endian, contain the length of the first part; the second part
/// is the rest.
fn split(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
}

/// An index, and the stream file that it describes.
pub(crate) fn index(data: &[u8]) -> Corpus {
    let Some((index, stream)) = split(data) else {
        return Corpus::Reject;
    };
    let _ = tracebraid_ctf::index::parse(index, stream.len() as u64);
    read_files(METADATA[0], stream, Some(index));
    Corpus::Keep
}

/// Metadata and a stream.
pub(crate) fn trace(data: &[u8]) -> Corpus {
    let Some((metadata, stream)) = split(data) else {
        return Corpus::Reject;
    };
    read_files(metadata, stream, None);
    Corpus::Keep
}
