//! The writer on LTTng's streams: headers, packets, times, losses, rejected input, and the files on
//! disk at each moment.

use std::path::Path;
use std::sync::Arc;

use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::schema::build::{Align, Fields, clock, event};
use tracebraid_ctf::schema::{ByteOrder, CtfVersion, EventClass, Scope, TraceClass};
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_ctf::write::lttng::{self, HeaderKind};
use tracebraid_ctf::write::stream::{PacketSize, StreamWriter};
use tracebraid_ctf::write::trace::{Options, Session};
use tracebraid_ctf::write::{EventPlan, FieldProblem, StreamPlan, WriteError};

fn payload() -> Fields {
    Fields::new(Scope::Payload, ByteOrder::Little, Align::Bytes)
}

fn two() -> EventClass {
    event(3, "two", payload().int("tid", 32).uint("value", 64))
}

fn named() -> EventClass {
    event(100, "named", payload().text("comm", 16).string("file"))
}

fn class(header: HeaderKind) -> TraceClass {
    let mut class = lttng::trace_class([9; 16], ByteOrder::Little);
    class.clocks = vec![clock("monotonic", 1_000_000_000, 17)];
    let mut stream = lttng::stream_class(0, ByteOrder::Little, 0, header, &[("cpu_id", 32)]);
    stream.events = vec![two(), named()];
    class.streams = vec![stream];
    class
}

fn plans(header: HeaderKind) -> (Arc<StreamPlan>, EventPlan, EventPlan) {
    let plan = StreamPlan::new(&class(header), 0).unwrap();
    let two = EventPlan::new(&plan, &two()).unwrap();
    let named = EventPlan::new(&plan, &named()).unwrap();
    (plan, two, named)
}

fn writer(plan: &Arc<StreamPlan>, size: PacketSize) -> StreamWriter<Vec<u8>> {
    StreamWriter::new(plan, Vec::new(), size, 5, &[("cpu_id", 2)]).unwrap()
}

/// Size of a packet's head in bytes: magic, UUID, stream and instance id; six counters, CPU.
const HEAD: usize = 32 + 6 * 8 + 4;

#[test]
fn headers_are_short_where_they_can_be() {
    let (plan, two, named) = plans(HeaderKind::Compact);
    let mut out = writer(&plan, PacketSize::UpTo(4096));
    let give = |value| {
        move |fields: &mut tracebraid_ctf::write::fields::Fields<'_>| {
            fields.int(-1).uint(value);
        }
    };
    out.record(&two, 1 << 40, give(7)).unwrap();
    // The longest time that 27 bits can represent, and one cycle more.
    out.record(&two, (1 << 40) + (1 << 27) - 1, give(8))
        .unwrap();
    out.record(&two, (1 << 40) + (2 << 27) - 1, give(9))
        .unwrap();
    // An id that does not fit into 5 bits.
    out.record(&named, (1 << 40) + (2 << 27), |fields| {
        fields.string("bash").string("/x");
    })
    .unwrap();
    let data = out.finish().unwrap();
    let events = &data[HEAD..];
    let compact = |time: u64| (3 | (time as u32) << 5).to_le_bytes();
    let body = |value: u64| [&(-1i32).to_le_bytes()[..], &value.to_le_bytes()].concat();
    let extended =
        |id: u32, time: u64| [&[31][..], &id.to_le_bytes(), &time.to_le_bytes()].concat();
    let time = 1u64 << 40;
    let expected = [
        &compact(time)[..],
        &body(7),
        &compact(time + (1 << 27) - 1),
        &body(8),
        &extended(3, time + (2 << 27) - 1),
        &body(9),
        &extended(100, time + (2 << 27)),
        b"bash\0\0\0\0\0\0\0\0\0\0\0\0/x\0",
    ]
    .concat();
    assert_eq!(events, expected);
}

#[test]
fn packets_tell_their_times_sizes_and_losses() {
    let (plan, two, _) = plans(HeaderKind::Large);
    let mut out = writer(&plan, PacketSize::Fixed(256));
    out.start(90).unwrap();
    assert!(out.start(90).is_err());
    for time in 100..110 {
        out.discard(1);
        out.record(&two, time, |fields| {
            fields.int(1).uint(time);
        })
        .unwrap();
    }
    out.flush(500).unwrap();
    out.set_context("cpu_id", 3).unwrap();
    assert!(out.set_context("nothing", 3).is_err());
    assert!(out.set_context("cpu_id", -1).is_err());
    out.discard(4);
    let data = out.finish().unwrap();
    assert_eq!(data.len(), 3 * 256);
    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    // Begin, end, content, size, number, discarded. Nine events of 18 bytes each fit.
    let context =
        |packet: usize| [0, 1, 2, 3, 4, 5].map(|field| word(packet * 256 + 32 + field * 8));
    let bits = |events: usize| ((HEAD + events * 18) * 8) as u64;
    assert_eq!(context(0), [90, 109, bits(9), 2048, 0, 10]);
    assert_eq!(context(1), [109, 500, bits(1), 2048, 1, 10]);
    assert_eq!(context(2), [500, 500, bits(0), 2048, 2, 14]);
    let cpu = |packet: usize| data[packet * 256 + 80];
    assert_eq!([cpu(0), cpu(1), cpu(2)], [2, 2, 3]);
    let padding = &data[HEAD + 9 * 18..256];
    assert!(padding.iter().all(|&byte| byte == 0));
}

#[test]
fn time_goes_forwards_only() {
    let (plan, two, _) = plans(HeaderKind::Large);
    let mut out = writer(&plan, PacketSize::UpTo(4096));
    let give = |fields: &mut tracebraid_ctf::write::fields::Fields<'_>| {
        fields.int(1).uint(2);
    };
    out.record(&two, 50, give).unwrap();
    out.record(&two, 50, give).unwrap();
    let told = |result: Result<(), WriteError>| match result {
        Err(WriteError::TimeBackwards { last, time }) => (last, time),
        other => panic!("{other:?}"),
    };
    assert_eq!(told(out.record(&two, 49, give)), (50, 49));
    out.flush(60).unwrap();
    assert_eq!(told(out.record(&two, 59, give)), (60, 59));
    assert_eq!(told(out.flush(59)), (60, 59));
    out.record(&two, 60, give).unwrap();
}

#[test]
fn nothing_comes_before_the_start() {
    let (plan, two, _) = plans(HeaderKind::Large);
    let mut out = writer(&plan, PacketSize::UpTo(4096));
    out.start(100).unwrap();
    let result = out.record(&two, 99, |fields| {
        fields.int(1).uint(2);
    });
    assert!(matches!(
        result,
        Err(WriteError::TimeBackwards {
            last: 100,
            time: 99
        })
    ));
}

#[test]
fn streams_without_events() {
    let (plan, ..) = plans(HeaderKind::Large);
    let data = |act: fn(&mut StreamWriter<Vec<u8>>)| {
        let mut out = writer(&plan, PacketSize::UpTo(4096));
        act(&mut out);
        out.finish().unwrap()
    };
    assert_eq!(data(|_| ()).len(), 0);
    assert_eq!(data(|out| out.start(5).unwrap()).len(), HEAD);
    assert_eq!(data(|out| out.discard(5)).len(), HEAD);
    let flushed = data(|out| {
        out.start(5).unwrap();
        out.flush(9).unwrap();
    });
    assert_eq!(flushed.len(), HEAD);
}

#[test]
fn refused_events_leave_nothing_behind() {
    let (plan, two, named) = plans(HeaderKind::Compact);
    let (other, _, _) = plans(HeaderKind::Compact);
    let foreign = EventPlan::new(&other, &self::two()).unwrap();
    let mut out = writer(&plan, PacketSize::UpTo(300));
    let problem = |result: Result<(), WriteError>| match result {
        Err(WriteError::Field { field, problem, .. }) => (field.to_string(), problem),
        other => panic!("{other:?}"),
    };
    let field = |name: &str, problem| (name.to_owned(), problem);
    for time in [5, 6] {
        let result = out.record(&two, time, |fields| {
            fields.int(1);
        });
        assert_eq!(problem(result), field("value", FieldProblem::Missing));
        let result = out.record(&two, time, |fields| {
            fields.int(1 << 31).uint(1);
        });
        assert_eq!(problem(result), field("tid", FieldProblem::Range));
        let result = out.record(&two, time, |fields| {
            fields.int(1).int(-1);
        });
        assert_eq!(problem(result), field("value", FieldProblem::Range));
        let result = out.record(&two, time, |fields| {
            fields.string("1").uint(1);
        });
        assert_eq!(problem(result), field("tid", FieldProblem::Kind));
        let result = out.record(&two, time, |fields| {
            fields.int(1).uint(1).uint(1);
        });
        assert_eq!(problem(result), field("", FieldProblem::TooMany));
        let result = out.record(&named, time, |fields| {
            fields.string("x").bytes(b"a\0b");
        });
        assert_eq!(problem(result), field("file", FieldProblem::Null));
        let result = out.record(&named, time, |fields| {
            fields.string("seventeen letters").string("");
        });
        assert_eq!(problem(result), field("comm", FieldProblem::Range));
        let result = out.record_encoded(&two, time, &[1; 13]);
        assert_eq!(problem(result), field("", FieldProblem::Encoded));
        let result = out.record_encoded(&named, time, b"sixteen letters!no end");
        assert_eq!(problem(result), field("", FieldProblem::Encoded));
        assert!(matches!(
            out.record_encoded(&foreign, time, &[1; 12]),
            Err(WriteError::Misuse(_))
        ));
        let long = "x".repeat(300);
        let result = out.record(&named, time, |fields| {
            fields.string("").string(&long);
        });
        assert!(
            matches!(result, Err(WriteError::EventTooLarge { room, .. }) if room == 300 - HEAD as u64)
        );
        out.record_encoded(&two, time, &[1; 12]).unwrap();
    }
    let data = out.finish().unwrap();
    let mut plain = writer(&plan, PacketSize::UpTo(300));
    plain
        .record(&two, 5, |fields| {
            fields.uint(0x0101_0101).uint(0x0101_0101_0101_0101);
        })
        .unwrap();
    // The event that was too large had ended the packet.
    plain.flush(6).unwrap();
    plain.record_encoded(&two, 6, &[1; 12]).unwrap();
    assert_eq!(data, plain.finish().unwrap());
}

#[test]
fn streams_that_cannot_be_written_are_refused() {
    let (plan, ..) = plans(HeaderKind::Large);
    let new = |size, context: &[(&str, i64)]| {
        StreamWriter::new(&plan, Vec::new(), size, 0, context).map(drop)
    };
    assert!(new(PacketSize::Fixed(HEAD as u32 + 1), &[("cpu_id", 0)]).is_ok());
    assert!(new(PacketSize::Fixed(HEAD as u32), &[("cpu_id", 0)]).is_err());
    assert!(new(PacketSize::Fixed(u32::MAX), &[("cpu_id", 0)]).is_err());
    assert!(new(PacketSize::Fixed(4096), &[]).is_err());
    assert!(new(PacketSize::Fixed(4096), &[("cpu_id", 1 << 32)]).is_err());
    assert!(new(PacketSize::Fixed(4096), &[("cpu_id", 0), ("tid", 0)]).is_err());
    assert!(StreamPlan::new(&class(HeaderKind::Large), 1).is_err());
    let mut bare = class(HeaderKind::Large);
    bare.streams[0].packet_context = None;
    let told = StreamPlan::new(&bare, 0).unwrap_err().to_string();
    assert!(told.contains("size"), "{told}");
}

fn event_count(trace: &Trace) -> usize {
    let mut count = 0;
    for stream in &trace.streams {
        let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 16);
        while reader.peek().is_some() {
            count += 1;
            reader.advance();
        }
        assert!(reader.take_damage().is_empty());
    }
    count
}

#[test]
fn a_session_gets_its_name_when_it_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/session");
    let session = Session::create(&path).unwrap();
    assert!(Session::create(&path).is_err(), "it is being written");
    let mut kernel = session
        .trace(
            "kernel".as_ref(),
            &class(HeaderKind::Large),
            Options::default(),
        )
        .unwrap();
    let ust = session.trace(
        "ust/uid/1000/64-bit".as_ref(),
        &class(HeaderKind::Compact),
        Options::default(),
    );
    drop(ust.unwrap());
    for place in ["kernel", "../elsewhere", "/tmp/x"] {
        assert!(
            session
                .trace(
                    place.as_ref(),
                    &class(HeaderKind::Large),
                    Options::default()
                )
                .is_err(),
            "{place}"
        );
    }
    let mut stream = kernel.stream(0, "channel0_0", 0, &[("cpu_id", 0)]).unwrap();
    for name in [
        "channel0_0",
        "metadata",
        "index",
        "a/b",
        "..",
        "",
        ".hidden",
        "x.idx",
    ] {
        assert!(
            kernel.stream(0, name, 1, &[("cpu_id", 1)]).is_err(),
            "{name}"
        );
    }
    let two = kernel.events(0)[0].clone();
    let writer = std::thread::spawn(move || {
        for time in 0..1000 {
            stream
                .record(&two, time, |fields| {
                    fields.int(1).uint(time);
                })
                .unwrap();
        }
        stream.finish().unwrap();
    });
    writer.join().unwrap();
    assert!(!path.exists());
    drop(kernel);
    assert_eq!(session.finish().unwrap(), path);
    assert!(Session::create(&path).is_err(), "it is there");
    let set = TraceSet::open(&[&path]).unwrap();
    assert_eq!(
        (set.traces.len(), set.failed.len(), set.damage().count()),
        (2, 0, 0)
    );
    assert_eq!(event_count(&set.traces[0]), 1000);
    assert!(set.traces[0].streams[0].files[0].indexed);
    let names = |path: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&path.join("kernel")),
        ["channel0_0", "index", "metadata"]
    );
    assert_eq!(names(&path.join("kernel/index")), ["channel0_0.idx"]);
    assert_eq!(names(&directory.path().join("deep")), ["session"]);
}

#[test]
fn a_session_with_writers_is_not_complete() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session");
    let session = Session::create(&path).unwrap();
    let mut kernel = session
        .trace(
            "kernel".as_ref(),
            &class(HeaderKind::Large),
            Options::default(),
        )
        .unwrap();
    let stream = kernel.stream(0, "channel0_0", 0, &[("cpu_id", 0)]).unwrap();
    drop(kernel);
    assert!(matches!(session.finish(), Err(WriteError::Misuse(_))));
    assert!(!path.exists());
    drop(stream);
}

#[test]
fn a_live_trace_can_be_read_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
        let path = directory.path().join(format!("{version:?}"));
        let session = Session::create_live(&path).unwrap();
        let mut now = class(HeaderKind::Compact);
        now.streams[0].events.clear();
        let options = Options {
            version,
            ..Options::default()
        };
        let mut trace = session.trace("".as_ref(), &now, options).unwrap();
        let mut stream = trace.stream(0, "channel0_0", 0, &[("cpu_id", 0)]).unwrap();
        let read = || {
            let trace = Trace::open(&path).unwrap();
            assert!(trace.damage.is_empty(), "{:?}", trace.damage);
            (trace.layout.streams[0].events.len(), event_count(&trace))
        };
        assert_eq!(read(), (0, 0));
        for number in 0..20u64 {
            let class = event(
                number * 7,
                &format!("event{number}"),
                payload().uint("x", 24),
            );
            let plan = trace.add_event(0, &class).unwrap();
            assert!(trace.add_event(0, &class).is_err());
            assert_eq!(read(), (number as usize + 1, number as usize));
            stream
                .record(&plan, number, |fields| {
                    fields.uint(number);
                })
                .unwrap();
            stream.flush(number).unwrap();
            assert_eq!(read(), (number as usize + 1, number as usize + 1));
        }
        stream.finish().unwrap();
        drop(trace);
        assert_eq!(session.finish().unwrap(), path);
        assert_eq!(read(), (20, 20));
    }
}

#[test]
fn traces_alike_have_the_same_metadata_and_are_read_as_one() {
    let directory = tempfile::tempdir().unwrap();
    for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
        let path = directory.path().join(format!("{version:?}"));
        let options = Options {
            version,
            ..Options::default()
        };
        let mut class = class(HeaderKind::Compact);
        class.uuid = Some([7; 16]);
        let sessions = ["1", "2"].map(|name| Session::create_live(&path.join(name)).unwrap());
        let first = sessions[0].trace("".as_ref(), &class, options).unwrap();
        let second = sessions[1].trace_like("".as_ref(), &first).unwrap();
        assert!(sessions[1].trace_like("../3".as_ref(), &first).is_err());
        let mut sequence = 0;
        for (mut trace, time) in [(first, 10), (second, 20)] {
            let mut stream = trace.stream(0, "channel0_0", 0, &[("cpu_id", 0)]).unwrap();
            stream.set_sequence(sequence);
            stream.start(time).unwrap();
            stream.flush(time + 5).unwrap();
            assert_eq!(stream.sequence(), sequence + 1);
            sequence = stream.sequence();
            stream.finish().unwrap();
            // With another class, the metadata differs from that at the beginning.
            let class = tracebraid_ctf::schema::EventClass {
                id: 1000,
                ..class.streams[0].events[0].clone()
            };
            trace.add_event(0, &class).unwrap();
            assert!(sessions[1].trace_like("other".as_ref(), &trace).is_err());
        }
        let metadata =
            ["1", "2"].map(|name| std::fs::read(path.join(name).join("metadata")).unwrap());
        assert_eq!(metadata[0].len(), metadata[1].len());
        let set = tracebraid_ctf::trace::TraceSet::open(&[&path]).unwrap();
        assert_eq!(set.traces.len(), 1);
        assert_eq!(set.traces[0].streams[0].packets.len(), 2);
        assert!(set.traces[0].streams[0].losses().is_empty());
    }
}
