//! Slices played in parallel give the same result as one machine in the order of time.

use std::collections::{BTreeMap, VecDeque};

use crate::io::IoRules;
use proptest::prelude::*;
use tracebraid_descriptors::{Change, Deed, Exit, Holder, NO_FD, Open, Sharing};
use tracebraid_engine::Composition;
use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::io::call::Io;
use crate::io::item::{IoAction, IoItem};
use crate::io::partial::IoPartial;
use crate::io::sink::Draft;
use crate::io::stretch::{Edges, Stretch};
use crate::io::sums::Sums;

/// An item: kind, thread, CPU, time after the previous item, two descriptors, and age of its call.
type Told = (u8, i32, u32, i64, (i32, i32), i64);

/// A system call with the given action, from the kernel's table.
fn call(is_it: impl Fn(Action) -> bool) -> Syscall {
    let found = Syscall::all().find(|call| is_it(call.action()));
    found.expect("a call with that action")
}

fn open(kind: u8, time: i64, fds: (i32, i32)) -> Open {
    let (call, deed) = match kind % 7 {
        0 => (call(|action| action == Action::Read), Deed::Io),
        1 => (call(|action| action == Action::Copy), Deed::Io),
        2 => (
            call(|action| matches!(action, Action::Open(..))),
            Deed::Make,
        ),
        3 => (call(|action| action == Action::Duplicate), Deed::Duplicate),
        4 => (call(|action| action == Action::Accept), Deed::Accept),
        5 => (call(|action| action == Action::Unshare), Deed::Unshare),
        _ => (call(|action| action == Action::Sync), Deed::Nothing),
    };
    Open {
        time,
        fds,
        call,
        deed,
        kind: FdType::File,
        cloexec: fds.1 == 2,
    }
}

fn exit(kind: u8, fds: (i32, i32)) -> Exit {
    let of = open(kind, 0, fds);
    Exit {
        result: i64::from(fds.1) - 1,
        pair: Exit::NO_PAIR,
        call: Some(of.call).filter(|_| !kind.is_multiple_of(5)),
        peer: None,
        counts: true,
    }
}

fn change(kind: u8, (fd, other): (i32, i32)) -> Change {
    let cloexec = kind.is_multiple_of(2);
    match kind % 9 {
        0 => Change::Closed { fd },
        1 => Change::Duplicated {
            from: fd,
            to: other,
            cloexec,
        },
        2 => Change::Range {
            first: 1,
            last: 2,
            only_flag: cloexec,
            unshared: fd == 0,
        },
        3 => Change::Cloning(Some(Sharing {
            process: fd > 1,
            files: fd > 0,
        })),
        4 => Change::Unshared,
        5 => Change::CloseOnExec { fd, cloexec },
        6 => Change::Accepted {
            fd,
            from: other,
            kind: None,
            cloexec,
        },
        _ => Change::Opened {
            fd,
            kind: [FdType::Pipe, FdType::File][kind as usize % 2],
            cloexec,
        },
    }
}

/// The action of an item; `None` for a call that begins and ends in one stretch.
fn what(&(kind, tid, _, _, fds, ago): &Told, time: i64) -> Option<IoAction> {
    let number = kind / 32;
    Some(match kind % 32 {
        0..4 => IoAction::Entry,
        4..10 => IoAction::Exit(exit(number, fds)),
        10..15 => IoAction::Park(open(number, time - ago, fds)),
        15..21 => IoAction::Change(change(number + kind % 2, fds)),
        21 => IoAction::Fork {
            child: (tid + 1) % 4,
            child_pid: (fds.0 > 0).then_some(fds.0),
            parent_pid: (fds.1 > 1).then_some(tid),
        },
        22 => IoAction::Exec,
        23 => IoAction::End,
        24 => IoAction::Member {
            pid: fds.0,
            table: (fds.1 > 1).then_some(7),
        },
        25 => IoAction::Holds {
            holder: match ago {
                0 => Holder::Table(7),
                _ => Holder::Process(tid),
            },
            fd: fds.0,
            kind: FdType::Network,
            cloexec: fds.1 == 1,
        },
        26 => IoAction::Unfinished(time - ago),
        27 => IoAction::Unstarted,
        _ => return None,
    })
}

/// Parts of a trace: the end time of each, which is the start of the next, and its items.
fn parts(told: &[Told], size: usize) -> Vec<(i64, IoPartial)> {
    let mut time = 100;
    let mut parts = Vec::new();
    for told in told.chunks(size) {
        let mut drafts: BTreeMap<u32, Draft> = BTreeMap::new();
        for told in told {
            let &(kind, tid, cpu, after, fds, ago) = told;
            time += after;
            let key = CpuKey { trace: 0, cpu };
            let draft = drafts.entry(cpu).or_insert_with(|| Draft::new(key));
            match what(told, time) {
                Some(what) => draft.items.push(IoItem { time, tid, what }),
                None => {
                    let io = Io {
                        entry: time - ago,
                        latency: ago as u64,
                        result: i64::from(kind),
                        fds: (fds.0, NO_FD),
                        call: open(kind % 2, 0, fds).call,
                    };
                    let group = draft.calls.groups().count().wrapping_sub(1);
                    if !draft.calls.join(group, tid, &io) {
                        draft.calls.begin(tid, &io);
                    }
                }
            }
        }
        let mut part = IoPartial::default();
        part.sink
            .add(drafts.into_values().filter_map(Draft::finish));
        parts.push((time, part));
    }
    parts
}

/// The result to compare.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    sums: BTreeMap<(ThreadKey, Syscall, FdType), Sums>,
    losses: BTreeMap<ThreadKey, (u64, u64)>,
}

fn outcome(partial: IoPartial, rules: &IoRules) -> Outcome {
    let (totals, _) = partial.finish(rules);
    let mut outcome = Outcome::default();
    for (thread, sheet) in totals.sheets.entries() {
        for (call, kind, sums) in sheet {
            outcome.sums.insert((thread, *call, *kind), *sums);
        }
    }
    for (thread, losses) in totals.losses.entries() {
        let losses = (losses.unfinished, losses.unstarted);
        if losses != (0, 0) {
            outcome.losses.insert(thread, losses);
        }
    }
    outcome
}

/// Number of slices, and number of those played in order.
type Counts = (usize, u32);

/// The state before the first part, with a call open since the beginning, so that no descriptor is
/// forgotten.
fn remembering() -> IoPartial {
    let head = Stretch {
        tid: Some(9),
        begun: true,
        open: Some(open(6, 0, (0, 0))),
        ..Stretch::default()
    };
    let key = CpuKey { trace: 0, cpu: 9 };
    let tail = None;
    let mut partial = IoPartial::default();
    partial.edges.push(Edges { key, head, tail });
    partial
}

fn sliced(told: &[Told], size: usize, is_late: bool) -> (Outcome, Counts) {
    let rules = IoRules::default();
    let (mut all, mut resident) = (remembering(), IoPartial::default());
    let mut counts = (0, 0);
    let mut pending = VecDeque::new();
    let mut compose = |all: &mut IoPartial, resident: &mut IoPartial, pending: &mut VecDeque<_>| {
        let composition: Composition<'_, IoPartial> = pending.pop_front()?;
        composition(all);
        let slices = all.follow_up(&rules);
        counts.0 += slices.len();
        counts.1 += u32::from(all.is_replaying && !slices.is_empty());
        pending.extend(slices.into_iter().map(|slice| slice(resident)));
        Some(())
    };
    for (until, part) in parts(told, size) {
        all.merge(&rules, part);
        pending.extend(all.slice(until).map(|slice| slice(&mut resident)));
        // With `is_late`, a slice is composed after the next one was taken.
        while pending.len() > usize::from(is_late) {
            compose(&mut all, &mut resident, &mut pending);
        }
    }
    while compose(&mut all, &mut resident, &mut pending).is_some() {}
    all.merge(&rules, resident);
    (outcome(all, &rules), counts)
}

/// Plays all items on one machine, in the order of time.
fn whole(told: &[Told]) -> Outcome {
    let rules = IoRules::default();
    let mut all = IoPartial::default();
    for (_, part) in parts(told, usize::MAX) {
        all.merge(&rules, part);
    }
    outcome(all, &rules)
}

fn told() -> impl Strategy<Value = Vec<Told>> {
    let fds = (0..4_i32, 0..4_i32);
    let one = (any::<u8>(), -1..4_i32, 0..3_u32, 0..3_i64, fds, 0..12_i64);
    prop::collection::vec(one, 0..80)
}

/// A sequence with all kinds of items, in which most slices are played in parallel.
#[test]
fn all_that_slices_can_do_happens() {
    let told: Vec<Told> = (0..9000_i64)
        .map(|at| {
            let of = |prime: i64, most: i64| at * prime % 1009 % most;
            // Few items leave the thread's table unclear.
            let kind = [of(7, 21), of(11, 24), 27, 29][at as usize % 4] + 32 * of(5, 5);
            let fds = (of(13, 4) as i32, of(17, 4) as i32);
            (
                kind as u8,
                of(3, 4) as i32,
                of(19, 3) as u32,
                of(23, 3),
                fds,
                of(29, 12),
            )
        })
        .collect();
    let (found, counts) = sliced(&told, 30, true);
    assert_eq!(found, whole(&told));
    assert!(
        counts.0 > 250 && counts.1 < counts.0 as u32 / 2,
        "{counts:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn slices_are_composed_to_the_whole(told in told(), size in 1..30_usize, is_late: bool) {
        let (found, _) = sliced(&told, size, is_late);
        prop_assert_eq!(found, whole(&told));
    }
}
