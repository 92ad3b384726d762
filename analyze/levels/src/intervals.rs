//! Where LWPs ran: the intervals in which a thread executes its own code on a CPU, and the moment
//! within them that is nearest to a time.
//!
//! A thread records its events only while it runs, outside of interrupts and of its own system
//! calls. So the events of user traces lie in the run intervals of the kernel's switches, less the
//! interrupts and calls in them. At a time that two intervals share, each begins or ends at a record
//! of the kernel: positions in the list of these records order events within the same nanosecond.
//! The nearest moment of a closed set is a monotone function of time, so that the events of an LWP
//! keep their order.

use std::collections::BTreeMap;

use tracebraid_follow::{Interrupt, InterruptStep, Interrupts};

use crate::survey::Map;
use crate::window::{CpuRecords, KernelRecord, Note};

/// An interval in which a thread executes its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) cpu: u32,
    /// Number of records of the CPU before the interval.
    pub(crate) after: u32,
}

/// An interval in which a thread holds a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    from: i64,
    to: i64,
    cpu: u32,
}

/// Intervals of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intervals {
    own: Vec<Interval>,
    held: Vec<Held>,
    /// The ends of `own` are in order.
    is_sorted: bool,
}

/// The location of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// In an interval that lasts until `until`, perhaps at another time.
    At {
        time: i64,
        cpu: u32,
        after: u32,
        until: i64,
    },
    /// The thread holds this CPU, but is in an interrupt or a system call.
    Suspended { cpu: u32 },
    /// The thread holds no CPU.
    Nowhere,
}

impl Intervals {
    /// Of an LWP without a kernel trace, which is its own CPU.
    pub(crate) fn always(cpu: u32) -> Intervals {
        let (from, to) = (i64::MIN, i64::MAX);
        Intervals {
            own: vec![Interval {
                from,
                to,
                cpu,
                after: 0,
            }],
            held: vec![Held { from, to, cpu }],
            is_sorted: true,
        }
    }

    /// The location of an event at `time`, moved by at most `bound`.
    #[cfg(test)]
    pub(crate) fn locate(&self, time: i64, bound: i64) -> Located {
        self.locate_from(&mut 0, time, bound)
    }

    /// The location of an event at `time`, moved by at most `bound`. `from` is the number of
    /// intervals that end before an earlier event: events are asked for in the order of time.
    pub(crate) fn locate_from(&self, from: &mut usize, time: i64, bound: i64) -> Located {
        let ends_before = |interval: &Interval| interval.to < time;
        let next = match self.is_sorted {
            true => {
                let rest = self.own.get(*from..).unwrap_or_default().iter();
                *from += rest.take_while(|interval| ends_before(interval)).count();
                *from
            }
            false => self.own.partition_point(ends_before),
        };
        let later = self.own.get(next);
        if let Some(at) = later.filter(|interval| interval.from <= time) {
            return Located::At {
                time,
                cpu: at.cpu,
                after: at.after,
                until: at.to,
            };
        }
        let earlier = next.checked_sub(1).and_then(|before| self.own.get(before));
        let back =
            earlier.map(|interval| (time.saturating_sub(interval.to), interval.to, interval));
        let ahead =
            later.map(|interval| (interval.from.saturating_sub(time), interval.from, interval));
        let nearest = match (back, ahead) {
            (Some(back), Some(ahead)) if ahead.0 < back.0 => Some(ahead),
            (back, ahead) => back.or(ahead),
        };
        if let Some((distance, time, interval)) = nearest
            && distance <= bound
        {
            let Interval {
                cpu,
                after,
                to: until,
                ..
            } = *interval;
            return Located::At {
                time,
                cpu,
                after,
                until,
            };
        }
        let next = self.held.partition_point(|held| held.to < time);
        match self.held.get(next).filter(|held| held.from <= time) {
            Some(held) => Located::Suspended { cpu: held.cpu },
            None => Located::Nowhere,
        }
    }
}

/// Part of a stretch, before it is known whether the thread was in a system call.
#[derive(Clone, Copy, Debug)]
struct Piece {
    interval: Interval,
    /// `None` until a record of a call shows it.
    in_call: Option<bool>,
}

/// The time from a switch to a thread until the next switch on a CPU.
#[derive(Clone, Debug)]
struct Stretch {
    held: Held,
    pieces: Vec<Piece>,
    /// In a system call at the end.
    ends_in_call: Option<bool>,
}

/// Finds the stretches of wanted threads on one CPU.
struct Finder<'a> {
    cpu: u32,
    wants: &'a dyn Fn(i32) -> bool,
    stretches: &'a mut Map<i32, Vec<Stretch>>,
    open: Option<(i32, Stretch)>,
    /// Beginning of the current piece.
    piece: Option<(i64, u32)>,
    interrupts: Interrupts,
    in_call: Option<bool>,
}

impl Finder<'_> {
    fn begin(&mut self, tid: i32, time: i64, after: u32) {
        self.interrupts = Interrupts::default();
        self.in_call = None;
        if !(self.wants)(tid) {
            return;
        }
        let held = Held {
            from: time,
            to: time,
            cpu: self.cpu,
        };
        self.open = Some((
            tid,
            Stretch {
                held,
                pieces: Vec::new(),
                ends_in_call: None,
            },
        ));
        self.piece = Some((time, after));
    }

    fn end(&mut self, time: i64) {
        self.close_piece(time);
        if let Some((tid, mut stretch)) = self.open.take() {
            stretch.held.to = time;
            stretch.ends_in_call = self.in_call;
            self.stretches.entry(tid).or_default().push(stretch);
        }
    }

    fn close_piece(&mut self, time: i64) {
        let Some((from, after)) = self.piece.take() else {
            return;
        };
        if let Some((_, stretch)) = &mut self.open {
            let interval = Interval {
                from,
                to: time.max(from),
                cpu: self.cpu,
                after,
            };
            stretch.pieces.push(Piece {
                interval,
                in_call: self.in_call,
            });
        }
    }

    fn open_piece(&mut self, time: i64, after: u32) {
        let is_suspended = self.interrupts.innermost().is_some();
        if self.piece.is_none() && self.open.is_some() && !is_suspended {
            self.piece = Some((time, after));
        }
    }

    fn call(&mut self, begins: bool, time: i64, after: u32) {
        self.close_piece(time);
        // The first call of a stretch shows whether the time before it was a call.
        if let (None, Some((_, stretch))) = (self.in_call, &mut self.open) {
            for piece in &mut stretch.pieces {
                piece.in_call = Some(!begins);
            }
        }
        self.in_call = Some(begins);
        self.open_piece(time, after);
    }

    fn record(&mut self, record: &KernelRecord, after: u32) {
        match record.note {
            Note::Interrupt(step) if self.open.is_some() => {
                let was = self.interrupts.innermost().is_some();
                self.interrupts.step(step);
                match (was, self.interrupts.innermost().is_some()) {
                    (false, true) => self.close_piece(record.time),
                    (true, false) => self.open_piece(record.time, after),
                    // The end of an interrupt whose beginning was not recorded.
                    (false, false) => {
                        if let Some((_, stretch)) = &mut self.open
                            && stretch.pieces.is_empty()
                        {
                            self.piece = Some((record.time, after));
                        }
                    }
                    (true, true) => {}
                }
            }
            Note::CallBegin if self.open.is_some() => self.call(true, record.time, after),
            Note::CallEnd if self.open.is_some() => self.call(false, record.time, after),
            _ => {}
        }
    }
}

/// The thread that ran before the next switch from a position on.
pub(crate) fn learned(records: &[KernelRecord]) -> Option<i32> {
    records.iter().find_map(|record| match record.note {
        Note::Switch { prev, .. } => Some(prev),
        _ => None,
    })
}

/// The interrupts that are active before the first of these records: those that are known (hard,
/// softirq), else those whose end comes first.
pub(crate) fn begun(records: &[KernelRecord], known: [Option<bool>; 2]) -> Interrupts {
    let mut interrupts = Interrupts::default();
    let [mut hard, mut soft] = known;
    for record in records {
        match record.note {
            Note::Switch { .. } => break,
            Note::Interrupt(InterruptStep::Hard(_)) => drop(hard.get_or_insert(false)),
            Note::Interrupt(InterruptStep::HardEnd) => drop(hard.get_or_insert(true)),
            Note::Interrupt(InterruptStep::Softirq(_)) => drop(soft.get_or_insert(false)),
            Note::Interrupt(InterruptStep::SoftirqEnd) => drop(soft.get_or_insert(true)),
            _ => {}
        }
        if hard.is_some() && soft.is_some() {
            break;
        }
    }
    if soft == Some(true) {
        interrupts.step(InterruptStep::Softirq(0));
    }
    if hard == Some(true) {
        interrupts.step(InterruptStep::Hard(Interrupt::Irq(0)));
    }
    interrupts
}

/// The intervals of all wanted threads. `running` is the thread of a CPU at the beginning of the
/// window, and whether it is interrupted, `span` the times at which it is
/// known.
pub(crate) fn intervals(
    cpus: &BTreeMap<u32, CpuRecords>,
    wants: &dyn Fn(i32) -> bool,
    running: &dyn Fn(u32) -> (Option<i32>, [Option<bool>; 2]),
    span: &dyn Fn(u32) -> (i64, i64),
) -> Map<i32, Intervals> {
    let mut stretches: Map<i32, Vec<Stretch>> = Map::default();
    for (&cpu, of_cpu) in cpus {
        let (from, to) = span(cpu);
        let mut finder = Finder {
            cpu,
            wants,
            stretches: &mut stretches,
            open: None,
            piece: None,
            interrupts: Interrupts::default(),
            in_call: None,
        };
        if let (Some(tid), known) = running(cpu) {
            finder.begin(tid, from, 0);
            finder.interrupts = begun(&of_cpu.records, known);
            if finder.interrupts.innermost().is_some() {
                finder.piece = None;
            }
        }
        let mut last = from;
        for (at, record) in (0u32..).zip(&of_cpu.records) {
            match record.note {
                Note::Switch { next, .. } => {
                    finder.end(record.time);
                    finder.begin(next, record.time, at + 1);
                }
                Note::Packet {
                    is_after_loss: true,
                    ..
                } => {
                    finder.end(last);
                    let rest = of_cpu.records.get(at as usize..).unwrap_or_default();
                    if let Some(tid) = learned(rest) {
                        finder.begin(tid, record.time, at + 1);
                    }
                }
                _ => finder.record(record, at + 1),
            }
            last = record.time;
        }
        finder.end(to);
    }
    stretches
        .into_iter()
        .map(|(tid, stretches)| (tid, joined(stretches)))
        .collect()
}

/// Orders the stretches of a thread, and drops those pieces in which it was in a system call.
fn joined(mut stretches: Vec<Stretch>) -> Intervals {
    stretches.sort_by_key(|stretch| (stretch.held.from, stretch.held.to));
    let mut intervals = Intervals::default();
    let mut in_call = false;
    for stretch in stretches {
        let own = stretch
            .pieces
            .iter()
            .filter(|piece| !piece.in_call.unwrap_or(in_call));
        intervals.own.extend(own.map(|piece| piece.interval));
        intervals.held.push(stretch.held);
        in_call = stretch.ends_in_call.unwrap_or(in_call);
    }
    intervals.is_sorted = intervals.own.is_sorted_by_key(|interval| interval.to);
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Bytes;

    /// The intervals of thread 7 on CPU 0, which runs thread `first` at the begin.
    fn of(first: i32, notes: &[(i64, Note)]) -> Intervals {
        let record = |&(time, note): &(i64, Note)| KernelRecord {
            time,
            class: 0,
            bytes: Bytes::default(),
            note,
        };
        let records = notes.iter().map(record).collect();
        let cpus = BTreeMap::from([(
            0,
            CpuRecords {
                records,
                ..CpuRecords::default()
            },
        )]);
        let mut all = intervals(
            &cpus,
            &|tid| tid == 7,
            &|_| (Some(first), [None, None]),
            &|_| (0, 1000),
        );
        all.remove(&7).unwrap_or_default()
    }

    fn to(next: i32) -> Note {
        Note::Switch { prev: -1, next }
    }

    fn at(time: i64, after: u32, until: i64) -> Located {
        Located::At {
            time,
            cpu: 0,
            after,
            until,
        }
    }

    #[test]
    fn events_lie_between_the_switches_of_their_thread() {
        let own = of(0, &[(100, to(7)), (200, to(0)), (300, to(7)), (400, to(0))]);
        assert_eq!(own.locate(150, 0), at(150, 1, 200));
        assert_eq!(own.locate(100, 0), at(100, 1, 200));
        assert_eq!(own.locate(200, 0), at(200, 1, 200));
        assert_eq!(own.locate(205, 10), at(200, 1, 200));
        assert_eq!(own.locate(295, 10), at(300, 3, 400));
        assert_eq!(own.locate(250, 10), Located::Nowhere);
        // The earlier of two moments that are equally near.
        assert_eq!(own.locate(250, 50), at(200, 1, 200));
        assert_eq!(own.locate(405, 5), at(400, 3, 400));
        assert_eq!(own.locate(90, 5), Located::Nowhere);
    }

    #[test]
    fn events_lie_outside_of_interrupts_and_calls() {
        let interrupt = Note::Interrupt(InterruptStep::Softirq(1));
        let end = Note::Interrupt(InterruptStep::SoftirqEnd);
        let own = of(
            0,
            &[
                (100, to(7)),
                (110, interrupt),
                (120, end),
                (130, Note::CallBegin),
                (150, Note::CallEnd),
                (200, to(0)),
            ],
        );
        assert_eq!(own.locate(105, 0), at(105, 1, 110));
        assert_eq!(own.locate(113, 5), at(110, 1, 110));
        assert_eq!(own.locate(117, 5), at(120, 3, 130));
        assert_eq!(own.locate(140, 5), Located::Suspended { cpu: 0 });
        assert_eq!(own.locate(149, 5), at(150, 5, 200));
    }

    #[test]
    fn a_thread_returns_from_a_call_that_began_earlier() {
        let own = of(0, &[(100, to(7)), (150, Note::CallEnd), (200, to(0))]);
        assert_eq!(own.locate(120, 5), Located::Suspended { cpu: 0 });
        assert_eq!(own.locate(160, 0), at(160, 2, 200));
        let calls = [
            (100, to(7)),
            (150, Note::CallBegin),
            (200, to(0)),
            (300, to(7)),
            (350, to(0)),
        ];
        let own = of(0, &calls);
        assert_eq!(own.locate(120, 0), at(120, 1, 150));
        assert_eq!(own.locate(320, 5), Located::Suspended { cpu: 0 });
    }

    #[test]
    fn the_thread_at_the_begin_runs_from_there() {
        let own = of(7, &[(100, to(0))]);
        assert_eq!(own.locate(50, 0), at(50, 0, 100));
        assert_eq!(own.locate(-10, 0), Located::Nowhere);
    }

    #[test]
    fn nothing_is_known_between_a_loss_and_the_packet_that_follows() {
        let loss = Note::Packet {
            discarded: 3,
            is_after_loss: true,
        };
        let own = of(
            7,
            &[
                (100, Note::Nothing),
                (200, loss),
                (300, Note::Switch { prev: 7, next: 0 }),
            ],
        );
        assert_eq!(own.locate(100, 0), at(100, 0, 100));
        assert_eq!(own.locate(150, 0), Located::Nowhere);
        assert_eq!(own.locate(250, 0), at(250, 2, 300));
    }

    #[test]
    fn the_nearest_moment_keeps_the_order_of_events() {
        let own = of(0, &[(100, to(7)), (110, to(0)), (130, to(7)), (150, to(0))]);
        let mut last = i64::MIN;
        for time in 80..170 {
            if let Located::At { time, .. } = own.locate(time, 20) {
                assert!(time >= last);
                last = time;
            }
        }
        assert_eq!(last, 150);
    }
}
