//! Drops parts of the graph that no later query needs.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;

use crate::cause::Wake;
use crate::graph::{Actor, State};
use crate::graph_machine::GraphMachine;
use tracebraid_threads::{CallClass, CallClasses};

/// The last time up to which stretches were dropped, and the size of the graph then and since.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Dropped {
    /// Stretches that ended earlier were dropped, in nanoseconds from the origin.
    until: i64,
    /// Number of stretches kept at that time, and added since.
    kept: usize,
    added: usize,
}

/// Minimum number of new stretches for which a pass over the graph pays off.
const LEAST: usize = 1 << 16;

impl Default for Dropped {
    fn default() -> Self {
        Dropped {
            until: i64::MIN,
            kept: 0,
            added: 0,
        }
    }
}

/// Indexes of the elements to which time lines refer.
#[derive(Debug, Default)]
struct Marks {
    requests: Vec<u32>,
    packets: Vec<u32>,
    rings: Vec<u32>,
}

impl Marks {
    fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::Request(place) => self.requests.push(place),
            Wake::Packet(place) => self.packets.push(place),
            _ => {}
        }
    }

    /// Marks the io_uring request that a wait was for.
    fn object(&mut self, call: Syscall, object: u32) {
        if CallClass::of(call) == CallClass::Ring {
            self.rings.push(object);
        }
    }

    fn line(&mut self, line: &Actor, has_rings: bool) {
        for stretch in &line.line {
            if let State::Blocked {
                call, object, wake, ..
            } = stretch.state
            {
                self.wake(wake);
                if has_rings {
                    self.object(call, object);
                }
            }
        }
        line.works.iter().for_each(|work| self.wake(work.cause));
    }

    fn sort(&mut self) {
        for places in [&mut self.requests, &mut self.packets, &mut self.rings] {
            places.sort_unstable();
        }
    }
}

/// True if a sorted list contains an index.
fn has(list: &[u32], place: usize) -> bool {
    u32::try_from(place).is_ok_and(|place| list.binary_search(&place).is_ok())
}

impl GraphMachine {
    /// `added` stretches are new up to `until`. Each time the size of the graph has doubled, drops
    /// the stretches that ended before `from`: paths begin at `from` or later.
    pub(crate) fn forget(
        &mut self,
        classes: &CallClasses,
        from: i64,
        (added, until): (usize, i64),
    ) {
        self.dropped.added += added;
        let Dropped { kept, added, .. } = self.dropped;
        if self.dropped.until < from && added > LEAST + kept {
            self.catch_up(classes);
            self.forget_before(from.min(until));
        }
    }

    /// Drops stretches that ended before a time, in nanoseconds from the origin.
    pub(crate) fn forget_before(&mut self, until: i64) {
        self.dropped = Dropped {
            until,
            kept: self.drop_before(until),
            added: 0,
        };
    }

    /// Drops elements that ended before a time, unless a kept stretch refers to them. Returns the
    /// number of remaining stretches.
    pub(crate) fn drop_before(&mut self, cut: i64) -> usize {
        self.ring_waits_drop(cut);
        let mut marks = Marks::default();
        let mut kept = 0;
        for line in &mut self.lines {
            line.drop_before(cut);
            marks.line(line, self.rings.are_used);
            kept += line.line.len();
        }
        self.works.causes().for_each(|cause| marks.wake(cause));
        marks.requests.extend(self.requests.last_ones());
        marks.sort();
        for (_, line) in self.cpus.iter_mut() {
            let before = line.partition_point(|occupied| occupied.begin <= cut);
            line.drain(..before.saturating_sub(1));
        }
        let done = &mut self.requests.done;
        let over = done.recent().partition_point(|request| request.end <= cut);
        done.drop_front(over, |place| has(&marks.requests, place));
        let packets = &mut self.packets.packets;
        packets.drop_front(packets.recent().len(), |place| has(&marks.packets, place));
        let rings = &mut self.rings.done;
        rings.drop_front(rings.recent().len(), |place| has(&marks.rings, place));
        kept
    }
}
