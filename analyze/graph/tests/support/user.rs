//! A plain reading of user-space events.

use std::collections::BTreeMap;

use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::schema::{Encoding, IntClass};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::walk::Visitor;

/// An event with its integer fields.
#[derive(Debug, Default)]
pub(crate) struct UserEvent {
    /// In nanoseconds from the origin.
    pub(crate) time: i64,
    pub(crate) name: String,
    pub(crate) integers: BTreeMap<String, u64>,
}

/// All events of a set of traces.
pub(crate) fn user_events(set: &TraceSet) -> Vec<UserEvent> {
    let mut all = Vec::new();
    for trace in &set.traces {
        for stream in &trace.streams {
            let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 17);
            while let Some(time) = reader.peek() {
                let time = time.expect("a time").0;
                let mut event = reader.event().expect("an event");
                all.push(plain(time, &mut event));
                reader.advance();
            }
        }
    }
    all.sort_by_key(|event: &UserEvent| event.time);
    all
}

fn plain(time: i64, event: &mut Event<'_>) -> UserEvent {
    let mut plain = UserEvent {
        time,
        name: event.class.name.to_string(),
        ..UserEvent::default()
    };
    event
        .walk_body(&mut plain, |_, _| {})
        .expect("a sound event");
    plain
}

impl Visitor for UserEvent {
    fn integer(&mut self, node: &Node, _: &IntClass, raw: u64) {
        self.integers.insert(node.name.to_string(), raw);
    }
    fn wide_integer(&mut self, _: &Node, _: &IntClass, _: &[u8]) {}
    fn boolean(&mut self, _: &Node, _: bool) {}
    fn bits(&mut self, _: &Node, _: &IntClass, _: u64) {}
    fn float(&mut self, _: &Node, _: u32, _: f64) {}
    fn string(&mut self, _: &Node, _: Encoding, _: &[u8]) {}
    fn blob(&mut self, _: &Node, _: &[u8]) {}
    fn begin_struct(&mut self, _: &Node, _: usize) {}
    fn end_struct(&mut self, _: &Node) {}
    fn begin_array(&mut self, _: &Node, _: u64) {}
    fn end_array(&mut self, _: &Node) {}
    fn begin_variant(&mut self, _: &Node, _: usize) {}
    fn end_variant(&mut self, _: &Node) {}
    fn optional(&mut self, _: &Node, _: bool) {}
}
