//! Samples a trace's thread states to find their encoding.

use std::sync::Arc;

use tracebraid_ctf::scan::{Progress, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::Trace;

use crate::field::{Body, IntField};
use crate::finder::Finder;
use crate::meaning::Meaning;
use crate::names::meanings;
use crate::state_numbers::{Evidence, StateNumbers};

/// Maximum number of switches, and of packets, read from each stream.
const SWITCHES: usize = 1 << 14;
const PACKETS: usize = 8;
/// Maximum number of streams read.
const STREAMS: usize = 32;
/// Switches read at a time: few, since the evidence may soon be enough.
const BATCH: usize = 256;

/// Fields of a switch with the thread that leaves and its state.
struct SwitchFields {
    prev_tid: IntField,
    state: IntField,
    /// The thread is in the kernel's field `prev_pid`, not in LTTng's `prev_tid`.
    has_kernels_names: bool,
}

/// Encoding of the thread states of a trace. For uncertain traces, the first packets of streams are
/// read until the evidence is enough.
pub fn state_numbers(trace: &Trace) -> StateNumbers {
    let layouts = trace.layout.streams.iter();
    let switches: Vec<Vec<Option<SwitchFields>>> = layouts
        .map(|layout| {
            let names = layout.events.iter().map(|event| &*event.name);
            let classes = meanings(names).into_iter().enumerate();
            let fields = classes.map(|(event, meaning)| {
                let finder = Finder { layout, event };
                let is_switch = meaning == Some(Meaning::Switch);
                is_switch.then(|| fields_of(&finder)).flatten()
            });
            fields.collect()
        })
        .collect();
    let mut all = switches.iter().flatten().flatten();
    let has_kernels_names = all.any(|fields| fields.has_kernels_names);
    StateNumbers::of(&trace.layout.class, has_kernels_names, || {
        sample(trace, &switches)
    })
}

fn fields_of(finder: &Finder<'_>) -> Option<SwitchFields> {
    Some(SwitchFields {
        prev_tid: finder.int(&["prev_tid", "prev_pid"])?,
        state: finder.int(&["prev_state"])?,
        has_kernels_names: finder.int(&["prev_tid"]).is_none(),
    })
}

fn sample(trace: &Trace, switches: &[Vec<Option<SwitchFields>>]) -> Evidence {
    let mut evidence = Evidence::default();
    let layouts = trace.layout.streams.iter().zip(switches);
    let tables = layouts.map(|(layout, fields)| {
        let is_switch = |class: usize| fields.get(class).is_some_and(Option::is_some);
        Arc::new(ScanTable::new(layout, is_switch))
    });
    let tables: Vec<_> = tables.collect();
    let has_switches = |stream: &&Stream| {
        let fields = switches.get(stream.class);
        fields.is_some_and(|fields| fields.iter().any(Option::is_some))
    };
    for stream in trace.streams.iter().filter(has_switches).take(STREAMS) {
        let (Some(table), Some(fields)) = (tables.get(stream.class), switches.get(stream.class))
        else {
            continue;
        };
        see_stream(&mut evidence, (trace, stream), table, fields);
        if evidence.is_enough() {
            break;
        }
    }
    evidence
}

fn see_stream(
    evidence: &mut Evidence,
    (trace, stream): (&Trace, &Stream),
    table: &Arc<ScanTable>,
    fields: &[Option<SwitchFields>],
) {
    let packets = 0..stream.packets.len().min(PACKETS);
    let Some(mut scanner) = Scanner::new(trace, stream, table.clone(), packets) else {
        return;
    };
    let mut seen = 0;
    while scanner.next_packet().is_some() {
        loop {
            let progress = scanner.scan_up_to(BATCH);
            scanner.batch().for_each(|class, _, cursor, slots| {
                seen += 1;
                let Some(fields) = fields.get(class).and_then(Option::as_ref) else {
                    return;
                };
                let body = &mut Body::new(cursor, slots);
                if let (Some(tid), Some(state)) =
                    (fields.prev_tid.get(body), fields.state.get(body))
                {
                    evidence.see(tid == 0, state);
                }
            });
            if evidence.is_enough() || seen >= SWITCHES {
                return;
            }
            if progress == Progress::PacketEnd {
                break;
            }
        }
    }
}
