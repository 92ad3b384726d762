//! Converts schemas to metadata and back: the front ends must read the schema that was written, or
//! the writer must report the part that the format cannot express.

use tracebraid_ctf::metadata::parse;
use tracebraid_ctf::schema::build::{Align, Fields, clock, event};
use tracebraid_ctf::schema::{
    ByteOrder, ClockOrigin, CtfVersion, EnvValue, FieldClass, Scope, StreamClass, TraceClass,
};
use tracebraid_ctf::write::lttng::{self, HeaderKind};
use tracebraid_ctf::write::metadata::{Metadata, packet, text};
use tracebraid_ctf::write::{WriteError, to_version};
use tracebraid_testkit::generate::{Options, generate};

const SEEDS: u64 = 300;

fn random(seed: u64, version: CtfVersion) -> TraceClass {
    let options = Options {
        seed,
        version,
        events: 1,
        ..Options::default()
    };
    generate(&options).unwrap().class
}

#[test]
fn random_schemas_are_read_as_they_were_written() {
    for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
        for seed in 0..SEEDS {
            let class = random(seed, version);
            let text =
                text(&class).unwrap_or_else(|error| panic!("seed {seed}, {version:?}: {error}"));
            assert_eq!(parse(text.as_bytes()).unwrap(), class, "seed {seed}");
        }
    }
}

#[test]
fn metadata_that_grows_is_valid_at_any_moment() {
    for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
        for seed in 0..60 {
            let class = random(seed, version);
            let mut now = class.clone();
            now.streams
                .iter_mut()
                .for_each(|stream| stream.events.clear());
            let (mut metadata, mut text) = Metadata::new(&now).unwrap();
            let mut file = packet(&text, class.uuid, class.byte_order).unwrap();
            for (index, stream) in class.streams.iter().enumerate() {
                for event in &stream.events {
                    let more = metadata.add_event(index, event).unwrap();
                    assert!(metadata.add_event(index, event).is_err(), "the id is taken");
                    text.push_str(&more);
                    file.extend(packet(&more, class.uuid, class.byte_order).unwrap());
                    now.streams[index].events.push(event.clone());
                    assert_eq!(parse(text.as_bytes()).unwrap(), now, "seed {seed}");
                    if version == CtfVersion::V1_8 {
                        assert_eq!(parse(&file).unwrap(), now, "seed {seed}, in packets");
                    }
                }
            }
            assert_eq!(now, class);
            assert!(metadata.add_event(99, &class.streams[0].events[0]).is_err());
        }
    }
}

/// Schemas marked as the other version must result in an error or in correct text.
#[test]
fn what_a_version_cannot_express_is_an_error() {
    let (mut refused, mut written) = (0, 0);
    for seed in 0..SEEDS {
        for (from, to) in [
            (CtfVersion::V2_0, CtfVersion::V1_8),
            (CtfVersion::V1_8, CtfVersion::V2_0),
        ] {
            let class = TraceClass {
                version: to,
                ..random(seed, from)
            };
            match text(&class) {
                Ok(text) => {
                    written += 1;
                    assert_eq!(parse(text.as_bytes()).unwrap(), class, "seed {seed}");
                }
                Err(WriteError::Inexpressible { what, .. }) => {
                    refused += 1;
                    assert!(!what.is_empty(), "seed {seed}");
                }
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
    }
    assert!(refused > SEEDS, "{refused} refused, {written} written");
}

/// CTF 1.8 as CTF 2: the schema is preserved except for features that only CTF 1.8 has.
#[test]
fn schemas_are_converted_to_ctf_2() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..SEEDS {
        let options = Options {
            seed,
            events: 1,
            // Without integers of more than 64 bits, which CTF 2 does not support.
            babeltrace: true,
            ..Options::default()
        };
        let class = generate(&options).unwrap().class;
        let converted =
            to_version(&class, CtfVersion::V2_0).and_then(|class| Ok((text(&class)?, class)));
        match converted {
            Ok((text, converted)) => {
                done += 1;
                assert_eq!(parse(text.as_bytes()).unwrap(), converted, "seed {seed}");
                assert_eq!(converted.clocks.len(), class.clocks.len());
            }
            Err(error) => {
                refused += 1;
                let told = error.to_string();
                let is_known = [
                    "bits",
                    "no selector value selects",
                    "of a variant",
                    "range",
                    "empty",
                ];
                assert!(
                    is_known.iter().any(|known| told.contains(known)),
                    "seed {seed}: {told}"
                );
            }
        }
    }
    assert!(done > 5 * refused, "{done} done, {refused} refused");
}

/// A schema like that of the kernel recorder.
fn recorder() -> TraceClass {
    let order = ByteOrder::Little;
    let payload = || Fields::new(Scope::Payload, order, Align::Bytes);
    let mut class = lttng::trace_class([0xab; 16], order);
    class.environment = vec![
        ("hostname".into(), EnvValue::Str("a \"host\"".into())),
        ("tracer_name".into(), EnvValue::Str("lttng-modules".into())),
        ("tracer_major".into(), EnvValue::Int(2)),
    ];
    class.clocks = vec![clock("monotonic", 1_000_000_000, 1_795_225_380_915_133_022)];
    let mut stream = lttng::stream_class(0, order, 0, HeaderKind::Compact, &[("cpu_id", 32)]);
    stream.events = vec![
        event(
            3,
            "sched_switch",
            payload()
                .text("prev_comm", 16)
                .int("prev_tid", 32)
                .hex("prev_state", 64),
        ),
        event(
            40,
            "sched_process_fork",
            payload()
                .sequence("vtids", 8, |element| element.int("", 32))
                .structure("inner", |fields| {
                    fields.text_sequence("name", 16).array("pairs", 3, |pair| {
                        pair.uint("a", 5).enumeration(
                            "b",
                            3,
                            true,
                            &[("neg", -4, -1), ("two words", 0, 3)],
                        )
                    })
                })
                .float("load", 64)
                .string("event"),
        ),
    ];
    class.streams = vec![stream];
    class
}

#[test]
fn what_a_recorder_says_in_few_lines() {
    let class = recorder();
    let text = text(&class).unwrap();
    assert_eq!(parse(text.as_bytes()).unwrap(), class);
    for line in [
        "\tname = \"monotonic\";",
        "\thostname = \"a \\\"host\\\"\";",
        "\t\tinteger { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _prev_comm[16];",
        "\t\tinteger { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vtids[ __vtids_length ];",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    let converted = to_version(&class, CtfVersion::V2_0).unwrap();
    let text = tracebraid_ctf::write::metadata::text(&converted).unwrap();
    assert_eq!(parse(text.as_bytes()).unwrap(), converted);
    assert_eq!(converted.clocks[0].offset_seconds, 1_795_225_380);
    assert!(to_version(&converted, CtfVersion::V1_8).is_err());
}

fn refusal(change: impl FnOnce(&mut TraceClass)) -> String {
    let mut class = recorder();
    change(&mut class);
    match text(&class) {
        Err(error @ WriteError::Inexpressible { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_name_what_cannot_be_expressed() {
    let payload = |fields: Fields| Some(fields.build());
    let order = ByteOrder::Little;
    let fields = || Fields::new(Scope::Payload, order, Align::Bytes);
    let with = |class: FieldClass| {
        refusal(|trace| {
            trace.streams[0].events[0].payload =
                payload(fields().uint("a", 8).member("here", class))
        })
    };
    names(
        &with(FieldClass::StaticStr {
            length: 3,
            encoding: Default::default(),
        }),
        &["CTF 1.8", "`sched_switch`", "`here`"],
    );
    names(
        &with(FieldClass::Float {
            length: 24,
            align: 8,
            byte_order: order,
            reversed_bits: false,
        }),
        &["`here`", "16, 32, 64 or 128"],
    );
    let twice = refusal(|trace| {
        trace.streams[0].events[1].payload = payload(fields().uint("a", 8).uint("a", 8))
    });
    names(&twice, &["`_a`", "already"]);
    let zero = refusal(|trace| trace.streams[0].events[1].payload = payload(fields().uint("a", 0)));
    names(&zero, &["size"]);
    let name =
        refusal(|trace| trace.streams[0].events[1].payload = payload(fields().uint("a b", 8)));
    names(&name, &["`a b`", "identifier"]);
    let origin = ClockOrigin::Custom {
        namespace: None,
        name: "boot".into(),
        uid: "1".into(),
    };
    names(
        &refusal(|trace| trace.clocks[0].origin = origin),
        &["clock class `monotonic`"],
    );
    names(&refusal(|trace| trace.name = Some("x".into())), &["name"]);
    let null = EnvValue::Str("a\0b".into());
    names(
        &refusal(|trace| trace.environment[0].1 = null),
        &["environment", "`hostname`"],
    );
    // A member that readers would interpret as the packet's size.
    let role = refusal(|trace| {
        let context =
            Fields::new(Scope::PacketContext, order, Align::Bytes).uint("packet_size", 64);
        trace.streams[0].packet_context = Some(context.build());
    });
    names(&role, &["packet context", "`packet_size`"]);
    names(
        &refusal(|trace| trace.streams[0].default_clock = Some(7)),
        &["stream class 0", "clock"],
    );
    let same = refusal(|trace| trace.streams[0].events[1].id = 3);
    names(&same, &["3"]);
}

fn names(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "{part} is not in: {told}");
    }
}

/// Deeper than any stack: no code may recurse over nested classes.
#[test]
fn deep_nesting() {
    let mut class = FieldClass::Str {
        encoding: Default::default(),
    };
    for _ in 0..20_000 {
        let fields = Fields::new(Scope::Payload, ByteOrder::Little, Align::Bytes);
        class = fields.member("m", class).build();
    }
    let mut trace = recorder();
    trace.streams[0].events[0].payload = Some(class);
    trace.streams[0].events.truncate(1);
    for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
        let class = to_version(&trace, version).unwrap();
        let text = text(&class).unwrap();
        assert_eq!(parse(text.as_bytes()).unwrap(), class);
    }
}

#[test]
fn streams_without_anything() {
    let stream = StreamClass {
        packet_context: None,
        event_header: None,
        default_clock: None,
        events: Vec::new(),
        ..recorder().streams.remove(0)
    };
    let mut class = recorder();
    class.packet_header = None;
    class.streams = vec![stream];
    let text = text(&class).unwrap();
    assert_eq!(parse(text.as_bytes()).unwrap(), class);
}
