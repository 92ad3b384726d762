//! Writing events: the cost of an event to the recording program, in CPU time.

use std::sync::Arc;

use tracebraid_ctf::index::IndexEntry;
use tracebraid_ctf::schema::build::{Align, Fields, clock, event};
use tracebraid_ctf::schema::{ByteOrder, Scope};
use tracebraid_ctf::write::lttng::{HeaderKind, stream_class, trace_class};
use tracebraid_ctf::write::stream::{PacketSink, PacketSize, StreamWriter};
use tracebraid_ctf::write::{EventPlan, StreamPlan, WriteError};

const EVENTS: u64 = 200_000;

/// Counts the bytes of packets.
struct Count(u64);

impl PacketSink for Count {
    type Output = u64;

    fn packet(&mut self, bytes: &[u8], _: &IndexEntry) -> Result<(), WriteError> {
        self.0 += std::hint::black_box(bytes).len() as u64;
        Ok(())
    }

    fn finish(self) -> Result<u64, WriteError> {
        Ok(self.0)
    }
}

fn payload() -> Fields {
    Fields::new(Scope::Payload, ByteOrder::Little, Align::Bytes)
}

fn plan(fields: Fields) -> Result<(Arc<StreamPlan>, EventPlan), WriteError> {
    let order = ByteOrder::Little;
    let mut class = trace_class([1; 16], order);
    class.clocks = vec![clock("monotonic", 1_000_000_000, 0)];
    class.streams = vec![stream_class(
        0,
        order,
        0,
        HeaderKind::Large,
        &[("cpu_id", 32)],
    )];
    let stream = StreamPlan::new(&class, 0)?;
    let event = EventPlan::new(&stream, &event(7, "event", fields))?;
    Ok((stream, event))
}

type Stream = StreamWriter<Count>;

fn run(
    fields: Fields,
    mut record: impl FnMut(&mut Stream, &EventPlan, u64) -> Result<(), WriteError>,
) -> Result<(u64, u64), WriteError> {
    let (stream, event) = plan(fields)?;
    let size = PacketSize::Fixed(1 << 18);
    let mut out = StreamWriter::new(&stream, Count(0), size, 0, &[("cpu_id", 0)])?;
    for time in 0..EVENTS {
        record(&mut out, &event, time * 100)?;
    }
    Ok((out.finish()?, EVENTS))
}

/// Measures all methods.
pub(crate) fn all(report: impl Fn(&str, &mut dyn FnMut() -> (u64, u64))) {
    let measure = |name: &str, mut work: Box<dyn FnMut() -> Result<(u64, u64), WriteError>>| {
        report(name, &mut || work().unwrap_or((0, 0)));
    };
    measure(
        "write: two integers",
        Box::new(|| {
            run(
                payload().int("tid", 32).uint("value", 64),
                |out, event, time| {
                    out.record(event, time, |fields| {
                        fields.int(1234).uint(time);
                    })
                },
            )
        }),
    );
    measure(
        "write: two integers, encoded already",
        Box::new(|| {
            run(
                payload().int("tid", 32).uint("value", 64),
                |out, event, time| {
                    let mut body = [0; 12];
                    body[..4].copy_from_slice(&1234u32.to_le_bytes());
                    body[4..].copy_from_slice(&time.to_le_bytes());
                    out.record_encoded(event, time, &body)
                },
            )
        }),
    );
    measure(
        "write: sched_switch",
        Box::new(|| {
            let fields = payload()
                .text("prev_comm", 16)
                .int("prev_tid", 32)
                .int("prev_prio", 32)
                .int("prev_state", 64)
                .text("next_comm", 16)
                .int("next_tid", 32)
                .int("next_prio", 32);
            run(fields, |out, event, time| {
                out.record(event, time, |fields| {
                    fields.string("swapper/0").int(0).int(20).int(0);
                    fields.string("kworker/0:1").int(31).int(20);
                })
            })
        }),
    );
}
