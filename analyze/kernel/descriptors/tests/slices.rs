//! Descriptors followed in slices are equal to descriptors followed in time order.

use std::cell::Cell;

use proptest::prelude::*;
use tracebraid_descriptors::{
    Act, Change, Descriptors, Holder, Moment, Resolved, Sharing, Sliced, ThreadAct, UnclearAct,
    ValueId,
};
use tracebraid_follow::ThreadKey;
use tracebraid_kernel_model::FdType;

/// A step of a thread.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Change(Change),
    Rename(i32, FdType),
    Act(Act),
    Holds(Holder, i32, FdType, bool),
    /// A late call ends: the slice does not know its change.
    Late(Change),
    LateRename(i32, FdType),
    /// Looks up a descriptor at a time this many nanoseconds earlier.
    Ask(i32, i64),
}

fn kind() -> impl Strategy<Value = FdType> {
    prop::sample::select(vec![
        FdType::File,
        FdType::Pipe,
        FdType::Network,
        FdType::Socket,
    ])
}

fn fd() -> impl Strategy<Value = i32> {
    0..5i32
}

fn tid() -> impl Strategy<Value = i32> {
    1..7i32
}

fn change() -> impl Strategy<Value = Change> {
    let cloexec = any::<bool>;
    prop_oneof![
        4 => (fd(), kind(), cloexec()).prop_map(|(fd, kind, cloexec)| Change::Opened { fd, kind, cloexec }),
        1 => (fd(), fd(), kind(), cloexec())
            .prop_map(|(one, two, kind, cloexec)| Change::Pair { fds: (one, two), kind, cloexec }),
        1 => (fd(), fd(), prop::option::of(kind()), cloexec())
            .prop_map(|(fd, from, kind, cloexec)| Change::Accepted { fd, from, kind, cloexec }),
        3 => (fd(), fd(), cloexec())
            .prop_map(|(from, to, cloexec)| Change::Duplicated { from, to, cloexec }),
        2 => (fd(), cloexec()).prop_map(|(fd, cloexec)| Change::CloseOnExec { fd, cloexec }),
        3 => fd().prop_map(|fd| Change::Closed { fd }),
    ]
}

fn other_change() -> impl Strategy<Value = Change> {
    let sharing =
        (any::<bool>(), any::<bool>()).prop_map(|(process, files)| Sharing { process, files });
    let range = (0..5i64, 0..5i64, any::<bool>(), any::<bool>());
    prop_oneof![
        2 => prop::option::of(sharing).prop_map(Change::Cloning),
        1 => range.prop_map(|(first, last, only_flag, unshared)| Change::Range { first, last, only_flag, unshared }),
        1 => Just(Change::Unshared),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let told = || prop::option::of(tid());
    prop_oneof![
        4 => (tid(), told(), told())
            .prop_map(|(child, child_pid, parent_pid)| Act::Fork { child, child_pid, parent_pid }),
        2 => Just(Act::Exec),
        2 => Just(Act::End),
        1 => (tid(), prop::option::of(0..2i64)).prop_map(|(pid, table)| Act::Member { pid, table }),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    let holder = prop_oneof![
        tid().prop_map(Holder::Process),
        (0..2i64).prop_map(Holder::Table)
    ];
    prop_oneof![
        12 => change().prop_map(Deed::Change),
        4 => other_change().prop_map(Deed::Change),
        1 => (fd(), kind()).prop_map(|(fd, kind)| Deed::Rename(fd, kind)),
        6 => act().prop_map(Deed::Act),
        1 => (holder, fd(), kind(), any::<bool>()).prop_map(|(holder, fd, kind, cloexec)| Deed::Holds(holder, fd, kind, cloexec)),
        2 => change().prop_map(Deed::Late),
        1 => (fd(), kind()).prop_map(|(fd, kind)| Deed::LateRename(fd, kind)),
        8 => (fd(), 0..6i64).prop_map(|(fd, ago)| Deed::Ask(fd, ago)),
    ]
}

/// Time, thread and step.
type Done = (i64, ThreadKey, Deed);

/// Plays a step with all earlier steps known; returns the result of a lookup.
fn play(descriptors: &mut Descriptors, (time, thread, deed): Done) -> Option<FdType> {
    match deed {
        Deed::Change(change) | Deed::Late(change) => descriptors.change(thread, time, change),
        Deed::Rename(fd, kind) | Deed::LateRename(fd, kind) => {
            descriptors.rename(thread, fd, time, kind)
        }
        Deed::Act(act) => descriptors.act(thread, time, act),
        Deed::Holds(holder, fd, kind, cloexec) => {
            descriptors.holds(thread, time, Act::Holds(holder), (fd, kind, cloexec));
        }
        Deed::Ask(fd, ago) => return Some(descriptors.kind(thread, fd, time - ago).kind),
    }
    None
}

fn act_of(deed: &Deed) -> Option<Act> {
    match deed {
        Deed::Act(act) => Some(*act),
        Deed::Holds(holder, ..) => Some(Act::Holds(*holder)),
        Deed::Change(change) => change.act(),
        _ => None,
    }
}

/// A change with values of a slice.
fn in_slice(sliced: &mut Sliced<FdType>, change: Change) -> Change<ValueId> {
    match change {
        Change::Opened { kind, .. } | Change::Pair { kind, .. } => change.with(sliced.is(kind)),
        Change::Accepted {
            fd,
            from,
            kind,
            cloexec,
        } => Change::Accepted {
            fd,
            from,
            kind: kind.map(|kind| sliced.is(kind)),
            cloexec,
        },
        other => other.with(ValueId::default()),
    }
}

/// Effect of a late call on its table.
type Outcome = Box<dyn Fn(i32, (FdType, bool)) -> (FdType, bool)>;

/// Acts of a slice, with an [`Act::Touch`] before each change.
fn acts_of(all: &[Done]) -> Vec<ThreadAct> {
    let mut acts: Vec<ThreadAct> = Vec::new();
    for (time, thread, deed) in all {
        if matches!(
            deed,
            Deed::Change(_) | Deed::Rename(..) | Deed::Late(_) | Deed::LateRename(..)
        ) {
            acts.push((*thread, *time, Some(Act::Touch)));
        }
        acts.extend(act_of(deed).map(|act| (*thread, *time, Some(act))));
    }
    acts
}

/// Plays a slice and returns the results of lookups; `None` if the slice must be played in time
/// order.
fn play_slice(
    descriptors: &mut Descriptors,
    begin: i64,
    since: i64,
    all: &[Done],
) -> Option<Vec<FdType>> {
    let acts = acts_of(all);
    let ahead = match descriptors.look_ahead(&acts) {
        Ok(ahead) => ahead,
        Err(UnclearAct(at)) => {
            assert!(at < acts.len());
            descriptors.touch_all(&acts);
            return None;
        }
    };
    let mut sliced: Sliced<FdType> = Sliced::new(ahead);
    let mut late: Vec<(Moment, ThreadKey, Deed)> = Vec::new();
    let mut asked: Vec<Result<ValueId, FdType>> = Vec::new();
    for &(time, thread, deed) in all {
        let holder = act_of(&deed).and_then(|_| sliced.act(time));
        match deed {
            Deed::Change(change) => {
                let change = in_slice(&mut sliced, change);
                sliced.change(thread, time, change);
            }
            Deed::Rename(fd, kind) => {
                let kind = sliced.is(kind);
                sliced.rename(thread, fd, time, kind);
            }
            Deed::Act(_) => {}
            Deed::Holds(_, fd, kind, cloexec) => {
                let kind = sliced.is(kind);
                if let Some(table) = holder {
                    sliced.holds(table, time, (fd, kind, cloexec));
                }
            }
            Deed::Late(_) | Deed::LateRename(..) => {
                let table = sliced.table(thread);
                late.push((sliced.moment(), table, deed));
                sliced.late(thread, time, late.len() as u32 - 1);
            }
            Deed::Ask(fd, ago) if time - ago < begin => {
                asked.push(Err(descriptors.kind(thread, fd, time - ago).kind));
            }
            Deed::Ask(fd, ago) => asked.push(Ok(sliced.at(thread, fd, time - ago).value)),
        }
    }
    let mut late_tables: Vec<ThreadKey> = late.iter().map(|(_, table, _)| *table).collect();
    late_tables.sort_unstable();
    sliced.end(since, &late_tables);
    let mut known = Resolved::default();
    let what = |kind| kind;
    let outcomes = outcomes(descriptors, &mut sliced, late, &mut known);
    let by = |call: u32, fd, before| outcomes[call as usize](fd, before);
    let mut answer = |asked: Result<ValueId, FdType>| match asked {
        Ok(value) => sliced.resolve_one(&mut known, value, descriptors, &what, &by),
        Err(kind) => kind,
    };
    let answers = asked.into_iter().map(&mut answer).collect();
    sliced.install(&mut known, descriptors, since, &what, &by, &[0, 1, 2, 3, 4]);
    descriptors.forget(since);
    Some(answers)
}

/// Outcomes of the late calls, in order.
fn outcomes(
    descriptors: &Descriptors,
    sliced: &mut Sliced<FdType>,
    late: Vec<(Moment, ThreadKey, Deed)>,
    known: &mut Resolved<FdType>,
) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    let what = |kind| kind;
    for (moment, table, deed) in late {
        let by = |call: u32, fd, before| match outcomes.get(call as usize) {
            Some(outcome) => outcome(fd, before),
            None => panic!("lookup of a call that has not ended"),
        };
        let mut now = |fd| {
            let value = sliced.now(table, fd, Some(moment));
            sliced.resolve_one(known, value, descriptors, &what, &by)
        };
        let outcome: Outcome = match deed {
            Deed::LateRename(to, kind) => {
                Box::new(move |fd, before| if fd == to { (kind, before.1) } else { before })
            }
            Deed::Late(change) => outcome(change, &mut now),
            _ => unreachable!("not a late call"),
        };
        outcomes.push(outcome);
    }
    outcomes
}

fn outcome(change: Change, now: &mut dyn FnMut(i32) -> FdType) -> Outcome {
    let accepted = |kind: FdType| match kind {
        FdType::Unknown => FdType::Socket,
        kind => kind,
    };
    match change {
        Change::Opened {
            fd: to,
            kind,
            cloexec,
        } => Box::new(move |fd, before| if fd == to { (kind, cloexec) } else { before }),
        Change::Pair { fds, kind, cloexec } => {
            Box::new(move |fd, before| match fd == fds.0 || fd == fds.1 {
                true => (kind, cloexec),
                false => before,
            })
        }
        Change::Accepted {
            fd: to,
            from,
            kind,
            cloexec,
        } => {
            let kind = kind.unwrap_or_else(|| accepted(now(from)));
            Box::new(move |fd, before| if fd == to { (kind, cloexec) } else { before })
        }
        Change::Duplicated { from, to, cloexec } => {
            let kind = now(from);
            Box::new(move |fd, before| if fd == to { (kind, cloexec) } else { before })
        }
        Change::CloseOnExec { fd: to, cloexec } => Box::new(move |fd, before| {
            if fd == to {
                (before.0, cloexec)
            } else {
                before
            }
        }),
        Change::Closed { fd: to } => Box::new(move |fd, before| {
            if fd == to {
                (FdType::Unknown, false)
            } else {
                before
            }
        }),
        _ => unreachable!("not a change at an exit"),
    }
}

thread_local! {
    /// Numbers of slices that were played ahead, and in time order.
    static PLAYED: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Compares all steps in slices of this length with all steps in time order.
fn check(deeds: Vec<(i64, i32, Deed)>, length: i64) -> Result<(), TestCaseError> {
    let mut time = 0;
    let mut all: Vec<Done> = Vec::new();
    for (gap, tid, deed) in deeds {
        time += gap;
        all.push((time, ThreadKey { trace: 0, tid }, deed));
    }
    let (mut plain, mut sliced) = (Descriptors::default(), Descriptors::default());
    let (mut begin, mut rest) = (0, all.as_slice());
    while !rest.is_empty() {
        let end = begin + length;
        let (slice, later) = rest.split_at(rest.partition_point(|done| done.0 < end));
        let expected: Vec<FdType> = slice
            .iter()
            .filter_map(|done| play(&mut plain, *done))
            .collect();
        // Lookups reach back six nanoseconds at most.
        let (played, replayed) = PLAYED.get();
        let found = match play_slice(&mut sliced, begin, end - 7, slice) {
            Some(found) => {
                PLAYED.set((played + 1, replayed));
                found
            }
            None => {
                PLAYED.set((played, replayed + 1));
                slice
                    .iter()
                    .filter_map(|done| play(&mut sliced, *done))
                    .collect()
            }
        };
        prop_assert_eq!(found, expected);
        for (tid, fd) in (1..7).flat_map(|tid| (0..5).map(move |fd| (tid, fd))) {
            let thread = ThreadKey { trace: 0, tid };
            for time in [end - 6, end - 3, end - 1] {
                let [one, other] = [&plain, &sliced].map(|all| all.kind(thread, fd, time).kind);
                prop_assert_eq!(one, other, "thread {} descriptor {} at {}", tid, fd, time);
            }
            prop_assert_eq!(plain.process(thread), sliced.process(thread));
        }
        (begin, rest) = (end, later);
    }
    Ok(())
}

#[test]
fn slices_are_what_the_order_of_time_is() {
    let deeds = prop::collection::vec((0..3i64, tid(), deed()), 0..160);
    let config = ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&(deeds, 1..60i64), |(deeds, length)| check(deeds, length));
    result.unwrap_or_else(|error| panic!("{error}"));
    let (played, replayed) = PLAYED.get();
    assert!(played > 5000 && replayed > 500, "{played} {replayed}");
}
