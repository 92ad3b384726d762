//! Meanings of the event classes of recorded traces.

use std::collections::BTreeMap;

use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::schema::IntClass;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::walk::Visitor;
use tracebraid_testkit::recorded::unpacked;

use crate::meaning::Meaning;
use crate::names::meanings;
use crate::{Body, KernelEvent, KernelModel, StreamModel, Syscall, TaskState, Transport};

/// The kernel trace in `tests/data` with this name.
fn recorded(name: &str) -> TraceSet {
    TraceSet::open(&[unpacked(name).join(name).join("kernel")]).expect("the trace can be opened")
}

/// Names of event classes, their meanings, and whether the fields were found.
fn classes(set: &TraceSet) -> Vec<(String, Option<Meaning>, bool)> {
    let model = KernelModel::new(set);
    let mut all = Vec::new();
    for (trace, known) in set.traces.iter().zip(&model.traces) {
        for (layout, stream) in trace.layout.streams.iter().zip(&known.streams) {
            let names = layout.events.iter().map(|event| &*event.name);
            for (class, meaning) in meanings(names.clone()).into_iter().enumerate() {
                let name = layout.events[class].name.to_string();
                all.push((name, meaning, stream.event(class).is_some()));
            }
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// The call that an event class's name ends in.
fn call_of(name: &str) -> Option<(bool, &str)> {
    let name = name.strip_prefix("compat_").unwrap_or(name);
    let entry = name.strip_prefix("syscall_entry_").map(|call| (true, call));
    entry.or_else(|| name.strip_prefix("syscall_exit_").map(|call| (false, call)))
}

#[test]
fn every_event_class_of_a_recorded_trace_is_what_it_says() {
    let set = recorded("kernel-mix-small");
    let mut lines = String::new();
    let mut calls = 0;
    for (name, meaning, found) in classes(&set) {
        if let Some((is_entry, call)) = call_of(&name).filter(|(_, call)| *call != "unknown") {
            let call = Syscall::by_name(call).unwrap_or_else(|| panic!("no call {call}"));
            let expected = if is_entry {
                Meaning::Entry(call)
            } else {
                Meaning::Exit(call)
            };
            assert_eq!(meaning, Some(expected), "{name}");
            assert!(found, "{name} lacks fields");
            calls += 1;
            continue;
        }
        let meaning = meaning.map_or("-".to_owned(), |meaning| format!("{meaning:?}"));
        let lacks = if found || meaning == "-" {
            ""
        } else {
            " lacks fields"
        };
        lines += &format!("{name}: {meaning}{lacks}\n");
    }
    assert!(calls > 1000, "{calls}");
    insta::assert_snapshot!(lines);
}

#[test]
fn every_event_of_perf_is_known() {
    let set = recorded("perf-mix");
    // Without the event that perf creates only to learn of processes.
    let classes: Vec<_> = classes(&set)
        .into_iter()
        .filter(|(name, ..)| !name.starts_with("dummy:"))
        .collect();
    assert!(classes.len() >= 10);
    for (name, meaning, found) in classes {
        assert!(meaning.is_some() && found, "{name}: {meaning:?}");
    }
}

/// All integers of an event record by name, the last of each name; array elements joined.
#[derive(Default)]
struct Plain {
    ints: BTreeMap<String, i64>,
    bytes: BTreeMap<String, Vec<u8>>,
    array: Option<String>,
}

impl Visitor for Plain {
    fn integer(&mut self, node: &Node, _: &IntClass, raw: u64) {
        match &self.array {
            Some(array) => self.bytes.entry(array.clone()).or_default().push(raw as u8),
            None => {
                self.ints.insert(node.name.to_string(), raw as i64);
            }
        }
    }
    fn begin_array(&mut self, node: &Node, _: u64) {
        self.array = Some(node.name.to_string());
    }
    fn end_array(&mut self, _: &Node) {
        self.array = None;
    }
}

/// Calls `see` for all modelled event records, with their fields as found by a plain walk.
fn every_event(
    set: &TraceSet,
    mut see: impl FnMut(&StreamModel, usize, &Plain, &mut Body<'_, '_>),
) {
    let model = KernelModel::new(set);
    for (trace, known) in set.traces.iter().zip(&model.traces) {
        for stream in &trace.streams {
            let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 17);
            while reader.peek().is_some() {
                let mut event = reader.event().expect("an event record");
                let mut plain = Plain::default();
                event
                    .walk_body(&mut plain, |_, _| {})
                    .expect("a sound record");
                let class = event.class_index;
                let body = &mut Body::new(event.body, event.slots);
                see(&known.streams[stream.class], class, &plain, body);
                reader.advance();
            }
        }
    }
}

#[test]
fn headers_of_packets_are_those_that_a_plain_walk_finds() {
    let set = recorded("kernel-mix-small");
    let mut segments = 0;
    every_event(&set, |model, class, plain, body| {
        let Some(KernelEvent::Packet(packet)) = model.event(class).map(|model| &model.event) else {
            return;
        };
        assert_eq!(packet.buffer.get(body), plain.ints.get("skbaddr").copied());
        let Some(fields) = &packet.headers else {
            return;
        };
        let headers = fields
            .get(body)
            .expect("all packets of this trace are IPv4");
        let octets = |address: std::net::IpAddr| match address {
            std::net::IpAddr::V4(address) => address.octets().to_vec(),
            std::net::IpAddr::V6(address) => address.octets().to_vec(),
        };
        assert_eq!(octets(headers.source), plain.bytes["saddr"]);
        assert_eq!(octets(headers.destination), plain.bytes["daddr"]);
        assert_eq!(i64::from(headers.length), plain.ints["tot_len"]);
        assert_eq!(i64::from(headers.protocol), plain.ints["protocol"]);
        if let Transport::Tcp(tcp) = headers.transport {
            let found = [
                i64::from(tcp.source),
                i64::from(tcp.destination),
                i64::from(tcp.sequence),
                i64::from(tcp.acknowledged),
                i64::from(tcp.flags),
                i64::from(tcp.window),
            ];
            let names = [
                "source_port",
                "dest_port",
                "seq",
                "ack_seq",
                "flags",
                "window_size",
            ];
            assert_eq!(found, names.map(|name| plain.ints[name]));
            segments += 1;
        }
    });
    assert!(segments > 1000, "{segments}");
}

#[test]
fn threads_leave_their_cpus_for_known_reasons() {
    let set = recorded("kernel-mix-small");
    let mut states: BTreeMap<TaskState, u32> = BTreeMap::new();
    let mut wakeups = 0;
    every_event(&set, |model, class, plain, body| {
        match model.event(class).map(|model| &model.event) {
            Some(KernelEvent::Switch(switch)) => {
                *states
                    .entry(switch.prev_state(body).expect("a state"))
                    .or_default() += 1;
                let priority = switch.next_priority(body).expect("a priority");
                assert_eq!(i64::from(priority.in_lttng()), plain.ints["next_prio"]);
                assert!((0..140).contains(&priority.0), "{priority:?}");
            }
            Some(KernelEvent::Wakeup(wakeup)) => {
                let cpu = wakeup.cpu.as_ref().and_then(|cpu| cpu.get(body));
                assert_eq!(cpu, plain.ints.get("target_cpu").copied());
                wakeups += 1;
            }
            _ => {}
        }
    });
    assert!(!states.contains_key(&TaskState::Other), "{states:?}");
    for state in [
        TaskState::Preempted,
        TaskState::Sleeping,
        TaskState::DiskSleep,
        TaskState::Dead,
    ] {
        assert!(
            states.get(&state).is_some_and(|times| *times > 5),
            "{state:?} in {states:?}"
        );
    }
    assert!(wakeups > 1000, "{wakeups}");
}

#[test]
fn arguments_are_found_by_name() {
    let set = recorded("kernel-mix-small");
    let layout = &set.traces[0].layout.streams[0];
    let futex = Syscall::by_name("futex").expect("a call");
    let mut seen = 0;
    every_event(&set, |model, class, plain, body| {
        let argument = |name| model.argument(layout, class, futex, name);
        // Classes for calls without a name may contain any call, so they have the argument too.
        let Some(address) = argument("uaddr").filter(|_| !plain.ints.contains_key("id")) else {
            return;
        };
        assert_eq!(address.get(body), Some(plain.ints["uaddr"]));
        assert_eq!(
            argument("op").and_then(|op| op.get(body)),
            Some(plain.ints["op"])
        );
        assert!(argument("nothing").is_none());
        seen += 1;
    });
    assert!(seen > 100, "{seen}");
}

#[test]
fn arguments_are_found_by_place_where_a_tracer_gives_registers() {
    let set = recorded("perf-mix");
    let layout = &set.traces[0].layout.streams[0];
    let write = Syscall::by_name("write").expect("a call");
    let mut seen = 0;
    every_event(&set, |model, class, plain, body| {
        let Some(KernelEvent::Entry(entry)) = model.event(class).map(|model| &model.event) else {
            return;
        };
        if entry.call(body) != write {
            return;
        }
        assert_eq!(plain.ints["id"], 1);
        let mut value = |name| {
            let argument = model
                .argument(layout, class, write, name)
                .expect("an argument");
            argument.get(body).expect("a value")
        };
        assert!((0..100).contains(&value("fd")));
        assert!((1..1 << 20).contains(&value("count")), "{}", value("count"));
        assert!(value("buf") > 4096);
        seen += 1;
    });
    assert!(seen > 3, "{seen}");
}
