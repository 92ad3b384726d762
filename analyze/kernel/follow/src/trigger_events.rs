//! Conditions that held while a trace was recorded (`record --when`): events `tracebraid_trigger`.
//!
//! Finding them requires scanning the trace, which is done only if `tracebraid_when` in the
//! environment announces such events.

use std::sync::Arc;

use serde::Serialize;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::scan::{Progress, ScanTable, Scanner};
use tracebraid_ctf::schema::Encoding;
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::walk::{Visitor, walk};

/// Environment key with the watched conditions.
const WATCHED: &str = "tracebraid_when";
const TRIGGER: &str = "tracebraid_trigger";

/// A condition that held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TriggerEvent {
    /// Time, in nanoseconds from the origin.
    pub time: i64,
    /// The condition as given by the user.
    pub condition: String,
    /// The value above the limit, and its source: for a system call, its name and thread.
    pub value: String,
}

impl TriggerEvent {
    /// All events of a trace, in time order.
    pub fn all(trace: &Trace) -> Vec<TriggerEvent> {
        if trace.layout.class.env(WATCHED).is_none() {
            return Vec::new();
        }
        let streams = trace.streams.iter();
        let mut all: Vec<TriggerEvent> = streams
            .filter_map(|stream| of_stream(trace, stream))
            .flatten()
            .collect();
        all.sort_by_key(|trigger| trigger.time);
        all
    }
}

fn of_stream(trace: &Trace, stream: &Stream) -> Option<Vec<TriggerEvent>> {
    let layout = trace.layout.streams.get(stream.class)?;
    let class = layout
        .events
        .iter()
        .position(|event| *event.name == *TRIGGER)?;
    let root = layout.events.get(class)?.payload.root()?;
    let clock = trace.clock(stream)?;
    let table = Arc::new(ScanTable::new(layout, |of| of == class));
    let mut scanner = Scanner::new(trace, stream, table, 0..stream.packets.len())?;
    let mut found = Vec::new();
    while scanner.next_packet().is_some() {
        loop {
            let progress = scanner.scan();
            scanner.batch().for_each(|_, time, mut cursor, slots| {
                let mut texts = Texts(Vec::new());
                if walk(root, &mut cursor, slots, &mut texts).is_ok()
                    && let [condition, value] = &*texts.0
                {
                    found.push(TriggerEvent {
                        time: clock.timestamp(time).0,
                        condition: condition.clone(),
                        value: value.clone(),
                    });
                }
            });
            if progress == Progress::PacketEnd {
                break;
            }
        }
    }
    Some(found)
}

/// Collects the strings of an event.
struct Texts(Vec<String>);

impl Visitor for Texts {
    fn string(&mut self, _: &Node, _: Encoding, bytes: &[u8]) {
        self.0.push(String::from_utf8_lossy(bytes).into_owned());
    }
}
