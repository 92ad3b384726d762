//! Slices give the same result as one machine in the order of time, for any events.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tracebraid_kernel_model::{Peer, Syscall, UserWake};
use tracebraid_statistics::Distribution;
use tracebraid_tables::View;
use tracebraid_threads::{
    BegunCall, CallClass, DeviceClass, LeftAs, ParkedThread, WakeEvent, WakeSource, WakerFacts,
};

use crate::waits::wait_compose::PlayedSlice;
use crate::waits::wait_slice::{KeptWaker, WaitSlice, WaitStep};
use crate::waits::wait_step::WaitItem;
use crate::waits::wait_sums::WaitSums;
use crate::waits::{WaitPartial, WaitRules};
use tracebraid_follow::{CpuKey, Interrupt, Rules, Selection, Views};

/// An event: kind, thread, other thread, CPU, time after the previous event, age of its call,
/// details.
type Told = (u8, i32, i32, u32, i64, i64, u16);

const CALLS: [&str; 16] = [
    "read",
    "write",
    "sendto",
    "recvfrom",
    "accept",
    "connect",
    "socket",
    "close",
    "futex",
    "wait4",
    "tgkill",
    "nanosleep",
    "sendfile",
    "read",
    "write",
    "futex",
];

fn begun(time: i64, details: u16) -> BegunCall {
    let call = Syscall::by_name(CALLS[usize::from(details % 16)]).expect("a call");
    BegunCall {
        call,
        class: CallClass::of(call),
        operation: (details >> 4 & 1) as u8,
        time,
        argument: i64::from(details >> 5 & 3),
    }
}

fn rules(views: Vec<View>) -> WaitRules {
    let views = Views {
        views,
        ..Views::default()
    };
    WaitRules::new(&Selection::default(), &views.into())
}

fn waker(tid: i32, details: u16) -> WakerFacts {
    let begun = begun(0, details);
    match details >> 8 & 3 {
        0 => WakerFacts::Caller {
            tid,
            descriptor: begun.argument as i32,
            call: Some(begun.class).filter(|_| details >> 7 & 1 == 0),
            lingers: details >> 10 & 1 == 1,
        },
        1 => WakerFacts::Nobody,
        _ => WakerFacts::Other {
            tid,
            requested: details >> 10 & 7 == 7,
        },
    }
}

fn wake(woken: i32, tid: i32, details: u16) -> WaitItem {
    let event = WakeEvent {
        for_device: false,
        user: None,
        woken,
        is_ready: details & 1 == 1,
        target: Some(details >> 1 & 1),
    };
    match details >> 12 {
        0 => WaitItem::Wake(event, WakeSource::Timer, WakerFacts::Nobody),
        1 => {
            let source = WakeSource::Interrupt(Interrupt::Softirq(7), DeviceClass::Other);
            WaitItem::Wake(event, source, WakerFacts::Nobody)
        }
        2 => WaitItem::Wake(event, WakeSource::BlockDevice, WakerFacts::Nobody),
        3 => {
            let source = WakeSource::User(UserWake::Thread);
            WaitItem::Wake(event, source, waker(tid, details >> 2))
        }
        _ => WaitItem::Wake(event, WakeSource::Thread, waker(tid, details >> 2)),
    }
}

fn park(tid: i32, (time, ago): (i64, i64), details: u16) -> WaitItem {
    let open = (details >> 8 & 3 > 0).then(|| begun(time - ago, details));
    let has_entered = open.is_some() && details >> 10 & 1 == 1;
    WaitItem::Park(ParkedThread {
        tid,
        open,
        called: open.map_or(i64::MIN, |open| open.time),
        has_entered,
        lingers: [None, None, Some(true), Some(false)][usize::from(details >> 11 & 3)],
        requested: details >> 13 & 1 == 1,
        is_dying: details >> 12 == 1,
    })
}

fn left(details: u16) -> LeftAs {
    use LeftAs::*;
    [
        Runnable, Blocked, Ready, DiskSleep, Idle, Blocked, DiskSleep, Ended,
    ][usize::from(details % 8)]
}

fn items(told: &[Told]) -> Vec<(CpuKey, i64, WaitItem)> {
    let mut time = 100;
    let mut active = [false; 8];
    let item = |&(kind, tid, other, cpu, after, ago, details): &Told| {
        time += after;
        let result = i64::from(details >> 7 & 3) - 1;
        let is_active = active[tid as usize];
        let item = match kind % 32 {
            0..3 => WaitItem::Enter(tid),
            3..6 => {
                let call = begun(0, details).call;
                WaitItem::Arrive(tid, Some(call).filter(|_| details >> 9 & 1 == 0), result)
            }
            6..10 => park(tid, (time, ago), details),
            10..13 if is_active => WaitItem::Call(tid, begun(time - ago, details), result),
            13..19 => WaitItem::Switch {
                prev: Some(tid).filter(|_| details >> 3 & 3 > 0),
                next: Some(other).filter(|&other| other != tid && details >> 5 & 3 > 0),
                left: left(details),
            },
            19..27 => wake(tid, other, details),
            27 if ago == 0 => WaitItem::Made(tid),
            27 => WaitItem::Peer(
                tid,
                Box::new(Peer {
                    family: if details & 1 == 1 { 1 } else { 2 },
                    address: None,
                    port: details >> 1 & 1,
                }),
            ),
            28 if ago == 0 && tid != other => WaitItem::TakeOver(tid, other),
            29 if ago < 2 => WaitItem::Die(tid),
            30 if ago < 3 => WaitItem::Lose,
            _ => WaitItem::Belongs {
                tid,
                pid: other % 2,
            },
        };
        // Calls that end in their stretch occur only for threads with an earlier item that makes
        // their calls known.
        active[tid as usize] |= match &item {
            WaitItem::Enter(_) | WaitItem::Arrive(..) => true,
            WaitItem::Park(parked) => parked.has_called(),
            _ => false,
        };
        (CpuKey { trace: 0, cpu }, time, item)
    };
    told.iter().map(item).collect()
}

/// Number of steps of composing, by kind.
type Ways = BTreeMap<&'static str, u32>;

fn way_of(step: &WaitStep) -> &'static str {
    match step {
        WaitStep::News(..) => "news",
        WaitStep::Item(_, _, WaitItem::Arrive(..)) => "arrives",
        WaitStep::Item(_, _, WaitItem::Park(_)) => "parks",
        WaitStep::Item(_, _, WaitItem::Call(..)) => "calls",
        WaitStep::Item(_, _, WaitItem::Die(_)) => "dies",
        WaitStep::Item(_, _, WaitItem::TakeOver(..)) => "takes over",
        WaitStep::Item(..) => "others",
        WaitStep::Leaves(..) => "leaves",
        WaitStep::Comes(..) => "comes",
        WaitStep::Wakes(kept) => match kept.waker {
            KeptWaker::Known(..) => "wakes",
            KeptWaker::By(WakerFacts::Caller { .. }) => "wakes by an unknown socket",
            KeptWaker::By(_) => "wakes by an unknown thread",
        },
    }
}

fn short(sums: &Distribution) -> String {
    let of = sums.summary();
    format!(
        "{} * {:?}..{:?} = {}",
        of.count(),
        of.min(),
        of.max(),
        of.sum()
    )
}

/// Fails with the items and the differing lines.
fn same(items: &[(CpuKey, i64, WaitItem)], cuts: &[i64], found: &str, expected: &str) {
    if found != expected {
        let items: Vec<String> = items
            .iter()
            .map(|(cpu, time, item)| format!("{} {time} {item:?}", cpu.cpu))
            .collect();
        let only = |of: &str, other: &str| {
            let lines = of
                .lines()
                .filter(|line| !other.lines().any(|other| other == *line));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        panic!(
            "{items:#?}\ncut at {cuts:?}\nfound {:#?}\nexpected {:#?}",
            only(found, expected),
            only(expected, found)
        );
    }
}

fn described(rules: &WaitRules, partial: &WaitPartial) -> String {
    let sums = &partial.sums;
    let mut threads: Vec<_> = sums.threads.entries().collect();
    threads.sort_by_key(|of| of.0);
    let threads = threads.into_iter().map(|(thread, sums)| {
        let mut calls: Vec<_> = sums.calls.iter().collect();
        calls.sort_by_key(|of| of.0);
        let calls = calls.into_iter().map(|(call, sums)| {
            let parts = sums.parts();
            let parts: Vec<_> = parts
                .iter()
                .map(|(why, part)| format!("{why:?} {}", short(part)))
                .collect();
            format!("\n {}: {} {parts:?}", call.name(), short(&sums.whole()))
        });
        let calls: String = calls.collect();
        let top = sums.top.clone().into_sorted(rules.options.views.top());
        format!("{thread:?} {calls} {top:?}\n")
    });
    let threads: String = threads.collect();
    let mut futexes = sums.futexes.entries().to_vec();
    futexes
        .iter_mut()
        .for_each(|(_, sums)| sums.wakers.sort_unstable());
    futexes.sort_by_key(|of| of.0);
    let futexes: String = futexes
        .iter()
        .map(|(key, sums)| format!("{key:?} {sums:?}\n"))
        .collect();
    let mut sockets = sums.sockets.entries().to_vec();
    sockets.sort_by_key(|of| of.0);
    let sockets: String = sockets
        .iter()
        .map(|(key, sums)| format!("{key:?} {}\n", short(sums)))
        .collect();
    let mut log = sums.log.clone();
    log.sort_unstable();
    let open = partial.machine.unfinished(rules, |_| true);
    format!("{threads}\n{futexes}\n{sockets}\n{log:#?} {open}")
}

fn push(partial: &mut WaitPartial, items: &[(CpuKey, i64, WaitItem)]) {
    for (cpu, time, item) in items {
        partial.push(*cpu, *time, item.clone());
    }
}

fn whole(items: &[(CpuKey, i64, WaitItem)]) -> String {
    let rules = rules(vec![View::Stats, View::Top, View::Log]);
    let mut partial = WaitPartial::default();
    push(&mut partial, items);
    rules.play(&mut partial, None);
    described(&rules, &partial)
}

/// Plays slices cut at the given times. Some of the later items are known when a slice is cut.
fn sliced(items: &[(CpuKey, i64, WaitItem)], cuts: &[i64], ways: &mut Ways) -> String {
    let rules = rules(vec![View::Stats, View::Top, View::Log]);
    let (mut partial, mut resident) = (WaitPartial::default(), WaitPartial::default());
    let mut rest = items;
    let mut begin = i64::MIN;
    let mut composed = Vec::new();
    for cut in cuts.iter().copied().chain([i64::MAX]) {
        let (now, later) =
            rest.split_at(rest.partition_point(|item| item.1 < cut.saturating_add(3)));
        push(&mut partial, now);
        rest = later;
        let mut items = partial.items.cut(cut);
        let directory = partial.directory.go_on(&mut partial.news, cut);
        let mut slice = WaitSlice::new(&rules, begin, directory);
        begin = cut;
        items.play(None, |cpu, time, item| {
            slice.play(&mut resident.sums, cpu, time, item)
        });
        for step in &slice.steps {
            *ways.entry(way_of(step)).or_default() += 1;
        }
        let played = PlayedSlice::new(slice);
        for (way, count) in played.counts() {
            *ways.entry(way).or_default() += count;
        }
        composed.push(played);
    }
    for played in composed {
        played.compose(&rules, &mut partial.machine, &mut partial.sums);
    }
    partial.sums.merge(resident.sums, rules.options.views.top());
    described(&rules, &partial)
}

fn told(length: usize) -> impl Strategy<Value = Vec<Told>> {
    let one = (
        any::<u8>(),
        1..5_i32,
        1..5_i32,
        0..2_u32,
        0..3_i64,
        0..8_i64,
        any::<u16>(),
    );
    prop::collection::vec(one, 0..length)
}

fn holds(told: &[Told], mut cuts: Vec<i64>) {
    let items = items(told);
    cuts.sort_unstable();
    same(
        &items,
        &cuts,
        &sliced(&items, &cuts, &mut Ways::new()),
        &whole(&items),
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn slices_are_composed_to_the_whole(
        told in told(60),
        cuts in prop::collection::vec(100..160_i64, 0..6),
    ) {
        holds(&told, cuts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 20_000, ..ProptestConfig::default() })]
    #[test]
    fn long_slices_are_composed_to_the_whole(
        told in told(700),
        cuts in prop::collection::vec(100..800_i64, 0..12),
    ) {
        holds(&told, cuts);
    }
}

/// The next number of a pseudo-random sequence.
fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Long random traces use every kind of step.
#[test]
fn every_way_of_composing_is_used() {
    let mut ways = Ways::new();
    let mut seed = 7;
    for _ in 0..20 {
        let one = |_| {
            let mut below = |bound: u64| next(&mut seed) % bound;
            (
                below(256) as u8,
                1 + below(4) as i32,
                1 + below(4) as i32,
                below(2) as u32,
                below(3) as i64,
                below(8) as i64,
                below(1 << 16) as u16,
            )
        };
        let told: Vec<Told> = (0..3000).map(one).collect();
        let items = items(&told);
        let cuts: Vec<i64> = (0..60).map(|number| 100 + number * 50).collect();
        assert_eq!(sliced(&items, &cuts, &mut ways), whole(&items));
    }
    let expected = [
        "news",
        "news at the end",
        "arrives",
        "parks",
        "calls",
        "dies",
        "takes over",
        "others",
        "leaves",
        "comes",
        "wakes",
        "wakes by an unknown socket",
        "wakes by an unknown thread",
        "sockets that are other ones later",
        "sums of unknown sockets",
    ];
    for way in expected {
        assert!(
            ways.get(way).is_some_and(|count| *count > 50),
            "{way}: {ways:?}"
        );
    }
}

/// Eight threads that wait and receive, in a number of rounds.
fn activity(rounds: std::ops::Range<i64>, partial: &mut WaitPartial) {
    let cpu = CpuKey { trace: 0, cpu: 0 };
    let left = LeftAs::Blocked;
    for (round, tid) in rounds.flat_map(|round| (1..9).map(move |tid| (round, tid))) {
        let time = 1000 * round + 100 * i64::from(tid);
        let thread = Some(tid);
        let (next, prev) = (None, None);
        for (after, item) in [
            (0, wake(tid, 10, 0)),
            (
                10,
                WaitItem::Switch {
                    prev,
                    next: thread,
                    left,
                },
            ),
            (20, WaitItem::Arrive(tid, None, 1)),
            (30, WaitItem::Call(tid, begun(time + 25, 3 + 32), 5)),
            (40, park(tid, (time + 40, 2), 0x103)),
            (
                40,
                WaitItem::Switch {
                    prev: thread,
                    next,
                    left,
                },
            ),
        ] {
            partial.push(cpu, time + after, item);
        }
    }
}

fn calls(sums: &WaitSums) -> u64 {
    let calls = sums
        .threads
        .entries()
        .flat_map(|(_, sums)| sums.calls.iter());
    calls.map(|(_, call)| call.totals().calls).sum()
}

/// The results of a slice depend on the number of threads, not on that of items.
#[test]
fn little_is_kept_of_what_goes_on() {
    let size = |rounds: i64| {
        let rules = rules(vec![View::Stats]);
        let mut partial = WaitPartial::default();
        activity(0..rounds, &mut partial);
        let directory = partial.directory.go_on(&mut partial.news, i64::MAX);
        let mut slice = WaitSlice::new(&rules, 0, directory);
        let mut sums = WaitSums::default();
        let play = |cpu, time, item| slice.play(&mut sums, cpu, time, item);
        partial.items.play(None, play);
        (PlayedSlice::new(slice).counts(), calls(&sums))
    };
    let (few, many) = (size(50), size(200));
    assert!(few.1 > 300 && many.1 > 1400, "{few:?} {many:?}");
    assert_eq!(few.0, many.0);
}

/// The size of the composed state depends on the number of threads and sockets.
#[test]
fn states_do_not_grow_with_time() {
    let size = |slices: i64| {
        let rules = rules(vec![View::Stats]);
        let (mut partial, mut resident) = (WaitPartial::default(), WaitPartial::default());
        for slice in 0..slices {
            activity(slice * 10..slice * 10 + 10, &mut partial);
            for slice in rules.slices(&mut partial, 10_000 * (slice + 1)) {
                let composition = slice(&mut resident);
                composition(&mut partial);
            }
        }
        partial.sums.merge(resident.sums, rules.options.views.top());
        let bytes = serde_json::to_vec(&partial)
            .expect("a state can be serialized")
            .len();
        (bytes, calls(&partial.sums))
    };
    let (few, many) = (size(10), size(40));
    assert!(few.1 > 700 && many.1 > 3 * few.1, "{few:?} {many:?}");
    assert!(many.0 < few.0 + few.0 / 5, "{few:?} {many:?}");
}
