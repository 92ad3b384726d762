//! Slices against a machine that plays every step in order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tracebraid_follow::{CpuKey, Interrupt, Rules, Selection, ThreadKey, Views};

use crate::levels::LevelOptions;
use crate::levels::reactions::ReactionRules;
use crate::levels::reactions::reaction_machine::{
    ReactionCpu, ReactionMachine, ReactionPlayer, ReactionThread,
};
use crate::levels::reactions::reaction_slice::{PlayedReactions, ReactionSlice};
use crate::levels::reactions::reaction_step::{CpuStep, ReactionStep};
use crate::levels::reactions::reaction_sums::{Reacted, ReactionSums, ThreadReactions};

type Moment = (CpuKey, i64);

fn rules() -> ReactionRules {
    let options = LevelOptions::from(Views {
        rows: 1_000_000,
        ..Views::default()
    });
    ReactionRules::new(&Selection::default(), &options)
}

/// The finished reactions of each thread, and the states at the end.
#[derive(Debug, PartialEq)]
struct Outcome {
    finished: BTreeMap<ThreadKey, Vec<Reacted>>,
    threads: BTreeMap<ThreadKey, ReactionThread>,
    cpus: BTreeMap<CpuKey, ReactionCpu>,
}

impl Outcome {
    fn of(machine: &ReactionMachine, sums: &ReactionSums) -> Outcome {
        let finished = |(key, sums): (ThreadKey, &ThreadReactions)| {
            (key, sums.longest.clone().into_sorted(usize::MAX))
        };
        let threads = machine.threads.entries();
        let cpus = machine.cpus.iter().copied();
        // Entries in the default state are left out: slices and the plain pass create different
        // ones.
        Outcome {
            finished: sums.threads().map(finished).collect(),
            threads: threads
                .map(|(key, thread)| (key, *thread))
                .filter(|(_, thread)| *thread != ReactionThread::default())
                .collect(),
            cpus: cpus
                .filter(|(_, cpu)| *cpu != ReactionCpu::default())
                .collect(),
        }
    }
}

fn plain(rules: &ReactionRules, steps: &[(Moment, ReactionStep)]) -> Outcome {
    let (mut machine, mut sums) = (ReactionMachine::default(), ReactionSums::default());
    let mut player = ReactionPlayer {
        rules,
        machine: &mut machine,
        sums: &mut sums,
    };
    for &((cpu, time), step) in steps {
        player.play(cpu, time, step);
    }
    Outcome::of(&machine, &sums)
}

fn played(
    rules: &ReactionRules,
    sums: &mut ReactionSums,
    steps: &[(Moment, ReactionStep)],
) -> PlayedReactions {
    let mut slice = ReactionSlice::new(rules);
    for &(at, step) in steps {
        slice.play(sums, at, step);
    }
    slice.end()
}

/// Plays slices of these numbers of steps, and composes them.
fn sliced(
    rules: &ReactionRules,
    mut steps: &[(Moment, ReactionStep)],
    lengths: &[usize],
) -> Outcome {
    let (mut machine, mut sums) = (ReactionMachine::default(), ReactionSums::default());
    for length in lengths.iter().copied().chain([usize::MAX]) {
        let (slice, later) = steps.split_at(length.min(steps.len()));
        steps = later;
        let played = played(rules, &mut sums, slice);
        played.compose(rules, &mut machine, &mut sums);
    }
    Outcome::of(&machine, &sums)
}

/// LWPs have the ids 1 to 3, user-level threads 101 to 103.
fn tid() -> impl Strategy<Value = i32> {
    (1..=3, any::<bool>()).prop_map(|(tid, is_user)| if is_user { tid + 100 } else { tid })
}

fn cpu_step() -> impl Strategy<Value = CpuStep> {
    prop_oneof![
        (24u16..26).prop_map(|irq| CpuStep::Hard(Interrupt::Irq(irq))),
        Just(CpuStep::HardEnd),
        (0u8..2).prop_map(CpuStep::Softirq),
        Just(CpuStep::SoftirqEnd),
    ]
}

/// Also steps that no kernel would record in this order.
fn step() -> impl Strategy<Value = ReactionStep> {
    let switch = (tid(), tid(), 1..=3, any::<bool>(), any::<bool>());
    let switch = switch.prop_map(|(prev, next, lwp, waits, is_user)| ReactionStep::Switch {
        prev,
        next,
        lwp,
        waits,
        is_user,
    });
    let wake = (tid(), prop::option::of(1..=3), any::<bool>());
    let wake = wake.prop_map(|(woken, scheduler, is_user)| ReactionStep::Wake {
        woken,
        scheduler,
        is_user,
    });
    prop_oneof![
        4 => cpu_step().prop_map(ReactionStep::Interrupt),
        6 => switch,
        6 => wake,
        4 => (101..=103).prop_map(ReactionStep::Act),
        1 => tid().prop_map(ReactionStep::Begins),
        1 => Just(ReactionStep::Lost),
    ]
}

fn steps() -> impl Strategy<Value = Vec<(Moment, ReactionStep)>> {
    let step = (0..2u32, 0..3u32, 0..3i64, step());
    prop::collection::vec(step, 0..120).prop_map(|steps| {
        let mut time = 0;
        let place = |(trace, cpu, gap, step)| {
            time += gap;
            ((CpuKey { trace, cpu }, time), step)
        };
        steps.into_iter().map(place).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn slices_equal_one_pass(
        steps in steps(),
        lengths in prop::collection::vec(0usize..20, 0..20),
    ) {
        let rules = rules();
        prop_assert_eq!(sliced(&rules, &steps, &lengths), plain(&rules, &steps));
    }
}

const TURNS: i64 = 10_000;

/// On each of two CPUs, an LWP runs two user-level threads in turn. One waits and is woken by the
/// scheduler, which an interrupt wakes; the other yields, and calls without success.
fn turns() -> Vec<(Moment, ReactionStep)> {
    let switch = |prev, next, lwp, waits, is_user| ReactionStep::Switch {
        prev,
        next,
        lwp,
        waits,
        is_user,
    };
    let wake = |woken, scheduler, is_user| ReactionStep::Wake {
        woken,
        scheduler,
        is_user,
    };
    let mut all = Vec::new();
    for turn in 0..TURNS {
        let cpu = (turn % 2) as u32;
        let lwp = 1 + cpu as i32;
        let (waiter, poller) = (101 + 10 * cpu as i32, 102 + 10 * cpu as i32);
        let steps = [
            ReactionStep::Interrupt(CpuStep::Softirq(3)),
            wake(lwp, None, false),
            ReactionStep::Interrupt(CpuStep::SoftirqEnd),
            switch(0, lwp, 0, false, false),
            wake(waiter, Some(lwp), true),
            switch(lwp, waiter, lwp, false, true),
            ReactionStep::Act(waiter),
            switch(waiter, lwp, lwp, true, true),
            switch(lwp, poller, lwp, false, true),
            ReactionStep::Act(poller),
            ReactionStep::Act(poller),
            switch(poller, 7, lwp, false, false),
            switch(7, poller, 7, false, false),
            switch(poller, lwp, lwp, false, true),
            switch(lwp, 0, lwp, true, false),
        ];
        let at = |index| (CpuKey { trace: 0, cpu }, 100 * turn + index as i64);
        all.extend(
            steps
                .into_iter()
                .enumerate()
                .map(|(index, step)| (at(index), step)),
        );
    }
    all
}

/// A thread that is created in the slice is known from its beginning.
#[test]
fn acts_of_new_threads_are_not_kept() {
    let rules = rules();
    let cpu = CpuKey { trace: 0, cpu: 0 };
    let begins = |tid: i32| {
        let wake = ReactionStep::Wake {
            woken: tid,
            scheduler: None,
            is_user: true,
        };
        [ReactionStep::Begins(tid), wake, ReactionStep::Act(tid)]
    };
    let steps = (101..201).flat_map(begins).map(|step| ((cpu, 0), step));
    let steps: Vec<_> = steps.collect();
    let played = played(&rules, &mut ReactionSums::default(), &steps);
    assert_eq!(played.kept_acts(), 0);
}

/// The law of scale: composing does not depend on the number of records.
#[test]
fn slices_keep_few_acts_of_each_thread() {
    let (rules, steps) = (rules(), turns());
    let played = played(&rules, &mut ReactionSums::default(), &steps);
    let kept = played.len();
    assert!(kept < 60, "{kept} acts, threads and CPUs to compose");
    let length = steps.len() / 7;
    assert_eq!(sliced(&rules, &steps, &[length; 6]), plain(&rules, &steps));
    let finished = plain(&rules, &steps).finished;
    let count: usize = finished.values().map(Vec::len).sum();
    assert_eq!(count as i64, TURNS);
}
