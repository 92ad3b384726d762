//! The records of a super-trace, by plain reading.

use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;

use crate::events::{Record, parts};

/// A record of a super-trace.
#[derive(Clone, Debug)]
pub struct SuperRecord {
    /// Nanoseconds of the trace's clock, as in the original traces.
    pub time: i64,
    /// Index of the stream in the trace.
    pub stream: usize,
    pub cpu: Option<u32>,
    pub tid: i32,
    pub lwp: i32,
    pub ult: u64,
    /// Name and fields.
    pub record: Record,
    /// Begin of its packet, if it is the packet's first record and records before the packet were
    /// lost.
    pub lost_until: Option<i64>,
}

impl SuperRecord {
    /// The serial number that the generator gave to an original record.
    pub fn serial(&self) -> Option<u64> {
        match self.record.int("level") {
            None | Some(0) => self.record.int("serial").map(|serial| serial as u64),
            Some(_) => None,
        }
    }
}

/// All records, stream by stream.
pub fn super_records(set: &TraceSet) -> Vec<SuperRecord> {
    let mut records = Vec::new();
    for trace in &set.traces {
        for (at, stream) in trace.streams.iter().enumerate() {
            let layout = &trace.layout.streams[stream.class];
            let cpu = stream.head.value(layout, "cpu_id").map(|cpu| cpu as u32);
            for (index, packet) in stream.packets.iter().enumerate() {
                let mut lost_until = stream.lost_before(index).then(|| {
                    let clock = trace.clock(stream).expect("a clock");
                    clock.timestamp(packet.begin.expect("a begin")).0
                });
                let mut reader = StreamReader::new(trace, stream, index..index + 1, 1 << 17);
                while let Some(time) = reader.peek() {
                    let time = time.expect("a time").0;
                    let mut event = reader.event().expect("an event");
                    let (context, record) = parts(&mut event);
                    let id = |name: &str| context.int(name).expect("the contexts of a super-trace");
                    records.push(SuperRecord {
                        time,
                        stream: at,
                        cpu,
                        tid: id("tid") as i32,
                        lwp: id("lwp") as i32,
                        ult: id("ult") as u64,
                        record,
                        lost_until: lost_until.take(),
                    });
                    reader.advance();
                }
            }
        }
    }
    records
}
