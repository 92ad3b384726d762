//! The streams of a kernel trace and of user traces, read as lists for the model.

use std::collections::BTreeMap;

use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};

use super::kernel_names::of_lttng;
use crate::events::{Record, parts};

/// An item of a stream.
#[derive(Clone, Debug)]
pub(super) enum LevelItem {
    Record {
        time: i64,
        record: Record,
    },
    /// Records are lost between the last item and this time.
    Lost {
        until: i64,
    },
}

/// The streams of a recording.
#[derive(Default)]
pub(super) struct LevelStreams {
    /// By CPU: the time of the stream's begin, and its items.
    pub(super) cpus: BTreeMap<u32, (i64, Vec<LevelItem>)>,
    /// By thread: its process, and its items.
    pub(super) threads: BTreeMap<i32, (i32, Vec<LevelItem>)>,
}

impl LevelStreams {
    pub(super) fn read(set: &TraceSet) -> LevelStreams {
        let mut streams = LevelStreams::default();
        for trace in &set.traces {
            let is_kernel = trace.layout.class.env_str("domain") == Some("kernel");
            for stream in &trace.streams {
                let layout = &trace.layout.streams[stream.class];
                let number = |name: &str| stream.head.value(layout, name).expect("a number");
                let items = items(trace, stream);
                if is_kernel {
                    let clock = trace.clock(stream).expect("a clock");
                    let begin = stream.packets[0].begin.expect("a begin");
                    let begin = clock.timestamp(begin).0;
                    streams.cpus.insert(number("cpu_id") as u32, (begin, items));
                } else {
                    let vpid = trace.layout.class.env("vpid");
                    let pid = match vpid {
                        Some(tracebraid_ctf::schema::EnvValue::Int(pid)) => *pid as i32,
                        _ => panic!("a user trace records its process"),
                    };
                    streams.threads.insert(number("tid") as i32, (pid, items));
                }
            }
        }
        streams
    }
}

fn items(trace: &Trace, stream: &Stream) -> Vec<LevelItem> {
    let clock = trace.clock(stream).expect("a clock");
    let mut items = Vec::new();
    for (index, packet) in stream.packets.iter().enumerate() {
        if stream.lost_before(index) {
            let until = clock.timestamp(packet.begin.expect("a begin")).0;
            items.push(LevelItem::Lost { until });
        }
        let mut reader = StreamReader::new(trace, stream, index..index + 1, 1 << 17);
        while let Some(time) = reader.peek() {
            let time = time.expect("a time").0;
            let (_, record) = parts(&mut reader.event().expect("an event"));
            let record = of_lttng(record);
            items.push(LevelItem::Record { time, record });
            reader.advance();
        }
    }
    items
}
