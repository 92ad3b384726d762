//! Composed slices equal the whole, for random items.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tracebraid_follow::{CpuKey, Interrupt, Rules, Selection};
use tracebraid_kernel_model::{Comm, Syscall, UserWake};
use tracebraid_threads::{
    BegunCall, CallClass, DeviceClass, LeftAs, ParkedThread, WakeEvent, WakeSource, WakerFacts,
};

use crate::graph_step::{GraphItem, Issued, RequestKey, Segment, WakeOrigin};
use crate::numbers::Numbers;
use crate::rules::{GraphOptions, GraphPartial, GraphRules};
use crate::slice::GraphStep;
use crate::slice::wakes::KeptCause;

/// A random item: kind, thread, another thread, CPU, time since the previous item, and details.
type Told = (u8, i32, i32, u32, i64, u32);

type TimedItem = (CpuKey, i64, GraphItem);

const CALLS: [&str; 8] = [
    "read", "write", "sendto", "recvfrom", "futex", "futex", "wait4", "fsync",
];

/// Takes the lowest digit of the details, in base `count`.
fn take(details: &mut u32, count: u32) -> usize {
    let taken = *details % count;
    *details /= count;
    taken as usize
}

fn begun(time: i64, details: &mut u32) -> BegunCall {
    let call = Syscall::by_name(CALLS[take(details, 8)]).expect("a call");
    BegunCall {
        call,
        class: CallClass::of(call),
        operation: 0,
        time,
        argument: take(details, 4) as i64,
    }
}

fn waker(tid: i32, details: &mut u32) -> WakerFacts {
    match take(details, 4) {
        0 => WakerFacts::Nobody,
        1 => WakerFacts::Caller {
            tid,
            descriptor: 3,
            call: Some(begun(0, details).class).filter(|_| take(details, 2) == 0),
            lingers: take(details, 2) == 1,
        },
        _ => WakerFacts::Other {
            tid,
            requested: take(details, 4) == 3,
        },
    }
}

fn segment(details: &mut u32) -> Segment {
    Segment {
        connection: take(details, 4) as u64,
        sequence: take(details, 4) as u32,
        length: 1 + take(details, 3) as u32,
        acknowledged: take(details, 2) as u32,
    }
}

fn origin(tid: i32, details: &mut u32) -> WakeOrigin {
    let softirq = WakeSource::Interrupt(Interrupt::Softirq(7), DeviceClass::Other);
    match take(details, 8) {
        0 => WakeOrigin::Interrupt(WakeSource::Timer),
        1 => WakeOrigin::Interrupt(softirq),
        2 => WakeOrigin::Interrupt(WakeSource::BlockDevice),
        3 | 4 => WakeOrigin::Network(segment(details)),
        5 => WakeOrigin::Sender(take(details, 4) as u64, waker(tid, details)),
        6 => {
            let by = [UserWake::Timer, UserWake::Thread][take(details, 2)];
            WakeOrigin::User(by, waker(tid, details))
        }
        _ => WakeOrigin::Thread(waker(tid, details)),
    }
}

fn wake(woken: i32, tid: i32, details: &mut u32) -> GraphItem {
    let event = WakeEvent {
        for_device: false,
        user: None,
        woken,
        is_ready: take(details, 2) == 1,
        target: Some(take(details, 2) as u16),
    };
    GraphItem::Wake(event, origin(tid, details))
}

fn park(tid: i32, time: i64, details: &mut u32) -> GraphItem {
    let open = (take(details, 4) > 0).then(|| begun(time - take(details, 8) as i64, details));
    GraphItem::Park(ParkedThread {
        tid,
        open,
        called: open.map_or(i64::MIN, |open| open.time),
        has_entered: open.is_some() && take(details, 2) == 1,
        lingers: [None, None, Some(true), Some(false)][take(details, 4)],
        requested: take(details, 2) == 1,
        is_dying: take(details, 8) == 7,
    })
}

fn switch(prev: i32, next: i32, details: &mut u32) -> GraphItem {
    use LeftAs::*;
    let left = [
        Runnable, Blocked, Blocked, DiskSleep, Idle, Blocked, Ready, DiskSleep, Ended,
    ];
    let name = |number: usize| Comm::of_program([&b"one"[..], b"two", b""][number]);
    GraphItem::Switch {
        prev: Some(prev).filter(|_| take(details, 4) > 0),
        next: Some(next).filter(|&next| next != prev && take(details, 4) > 0),
        left: left[take(details, 9)],
        names: [0, 1].map(|_| name(take(details, 3))),
    }
}

fn request(details: &mut u32) -> RequestKey {
    RequestKey {
        device: 8,
        sector: take(details, 3) as i64,
    }
}

fn item(kind: u8, (tid, other): (i32, i32), time: i64, details: &mut u32) -> GraphItem {
    match kind % 40 {
        0..3 => GraphItem::Enter(tid),
        3..6 => {
            let call = begun(0, details).call;
            let call = Some(call).filter(|_| take(details, 2) == 0);
            GraphItem::Arrive(tid, call, take(details, 3) as i64 - 1)
        }
        6..9 => park(tid, time, details),
        9..16 => switch(tid, other, details),
        16..23 => wake(tid, other, details),
        23..25 => {
            GraphItem::Interrupted(tid, time - take(details, 4) as i64, Interrupt::Softirq(1))
        }
        25..27 => {
            let issued = Issued {
                sectors: 8 + take(details, 2) as u32,
                is_taken: take(details, 2) == 1,
            };
            let by = Some(tid).filter(|_| take(details, 3) > 0);
            GraphItem::Issue(request(details), by, issued)
        }
        27 | 28 => GraphItem::Complete(request(details)),
        29..32 => {
            let by = Some(tid).filter(|_| take(details, 3) > 0);
            GraphItem::Send(segment(details), by)
        }
        32 => GraphItem::Queue {
            work: take(details, 2) as i64,
            queue: 1,
            origin: origin(tid, details),
        },
        33 => GraphItem::Execute(tid, take(details, 2) as i64),
        34 => GraphItem::Named(tid, Comm::of_program(&b"three"[..])),
        35 => GraphItem::Belongs { tid, pid: other },
        kind => seldom(kind, (tid, other), details),
    }
}

fn seldom(kind: u8, (tid, other): (i32, i32), details: &mut u32) -> GraphItem {
    match (kind, take(details, 4)) {
        (36, 0..3) => GraphItem::Made(tid, Some(other)),
        (37, 0) if tid != other => GraphItem::TakeOver(tid, other),
        (38, 0) => GraphItem::Die(tid),
        (39, 0) => GraphItem::Lose,
        _ => GraphItem::Interrupted(tid, 0, Interrupt::Softirq(2)),
    }
}

fn items(told: &[Told]) -> Vec<TimedItem> {
    let mut time = 100;
    let item = |&(kind, tid, other, cpu, after, mut details): &Told| {
        time += after;
        let item = item(kind, (tid, other), time, &mut details);
        (CpuKey { trace: 0, cpu }, time, item)
    };
    told.iter().map(item).collect()
}

fn push(partial: &mut GraphPartial, items: &[TimedItem]) {
    for (cpu, time, item) in items {
        partial.push(*cpu, *time, item.clone());
    }
}

/// The whole graph as text.
fn described(rules: &GraphRules, mut partial: GraphPartial) -> String {
    let machine = &mut partial.machine;
    machine.catch_up_beside(&rules.classes);
    machine.ends_waiting(&rules.recorded, None, 10_000);
    let (numbers, addresses) =
        Numbers::new(&rules.classes, &machine.packets.unused, &machine.futexes);
    machine
        .lines
        .iter_mut()
        .for_each(|line| numbers.renumber(line));
    let requests = (&machine.requests.done, machine.requests.longest);
    let packets = machine
        .packets
        .packets
        .clone()
        .without(&machine.packets.unused);
    let cpus: Vec<_> = machine.cpus.iter().collect();
    let of_time = (&machine.lines, cpus, &machine.held);
    format!("{of_time:#?}\n{requests:#?}\n{packets:#?}\n{addresses:?}")
}

fn rules() -> GraphRules {
    GraphRules::new(&Selection::default(), &GraphOptions::default())
}

fn whole(items: &[TimedItem]) -> String {
    let rules = rules();
    let mut partial = GraphPartial::default();
    push(&mut partial, items);
    let GraphPartial { items, machine, .. } = &mut partial;
    rules.play(items, machine, |_| {});
    described(&rules, partial)
}

/// Number of uses of each case of composing.
type Ways = BTreeMap<&'static str, u32>;

fn way_of(step: &GraphStep) -> &'static str {
    match step {
        GraphStep::Meets(_) => "meets",
        GraphStep::Born(_) => "born",
        GraphStep::Lives(_) => "lives",
        GraphStep::Works(..) => "works",
        GraphStep::News(..) => "news",
        GraphStep::Occupied(..) => "occupied",
        GraphStep::Item(_, _, GraphItem::Enter(_)) => "enters",
        GraphStep::Item(_, _, GraphItem::Arrive(..)) => "arrives",
        GraphStep::Item(_, _, GraphItem::Park(_)) => "parks",
        GraphStep::Item(_, _, GraphItem::Queue { .. }) => "queues",
        GraphStep::Item(_, _, GraphItem::Execute(..)) => "executes",
        GraphStep::Item(_, _, GraphItem::Die(_)) => "dies",
        GraphStep::Item(_, _, GraphItem::TakeOver(..)) => "takes over",
        GraphStep::Item(..) => "others",
        GraphStep::Leaves(..) => "leaves",
        GraphStep::Comes(..) => "comes",
        GraphStep::Lose(_) => "loses",
        GraphStep::Wakes(kept) => match kept.cause {
            KeptCause::OfGraph => "wakes",
            KeptCause::Packet(_) => "wakes by a packet",
            KeptCause::Answer(..) => "wakes by an answer",
            KeptCause::Request(_) => "wakes by a request",
        },
    }
}

/// Composes slices that are cut at those times; when a slice is cut out, some later items are
/// already known.
fn sliced(items: &[TimedItem], cuts: &[i64], ways: &mut Ways) -> String {
    let rules = rules();
    let mut partial = GraphPartial::default();
    let mut rest = items;
    let mut played = Vec::new();
    for cut in cuts.iter().copied().chain([i64::MAX]) {
        let (now, later) =
            rest.split_at(rest.partition_point(|item| item.1 < cut.saturating_add(3)));
        push(&mut partial, now);
        rest = later;
        played.extend(rules.cut(&mut partial, cut).map(|cut| cut.play(&rules)));
    }
    for part in played {
        if let Some(steps) = part.steps() {
            for step in steps {
                *ways.entry(way_of(step)).or_default() += 1;
            }
        }
        part.compose(&rules, &mut partial.machine, |_| {});
    }
    described(&rules, partial)
}

/// Fails with the items and the differences.
fn same(items: &[TimedItem], cuts: &[i64], found: &str, expected: &str) {
    if found == expected {
        return;
    }
    let item = |(cpu, time, item): &TimedItem| format!("{} {time} {item:?}", cpu.cpu);
    let items: Vec<String> = items.iter().map(item).collect();
    let lines = found.lines().zip(expected.lines());
    let different = lines
        .enumerate()
        .find(|(_, (found, expected))| found != expected);
    let around = |text: &str| {
        let at = different.map_or(0, |(at, _)| at);
        let lines: Vec<&str> = text.lines().skip(at.saturating_sub(30)).take(50).collect();
        lines.join("\n")
    };
    panic!(
        "{items:#?}\ncut at {cuts:?}\nfound {}\nexpected {}",
        around(found),
        around(expected)
    );
}

fn told(length: usize) -> impl Strategy<Value = Vec<Told>> {
    let one = (
        any::<u8>(),
        1..5_i32,
        1..5_i32,
        0..2_u32,
        0..3_i64,
        any::<u32>(),
    );
    prop::collection::vec(one, 0..length)
}

fn holds(told: &[Told], mut cuts: Vec<i64>, ways: &mut Ways) {
    let items = items(told);
    cuts.sort_unstable();
    same(&items, &cuts, &sliced(&items, &cuts, ways), &whole(&items));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn slices_are_composed_to_the_whole(
        told in told(80),
        cuts in prop::collection::vec(100..180_i64, 0..6),
    ) {
        holds(&told, cuts, &mut Ways::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 20_000, ..ProptestConfig::default() })]
    #[test]
    fn long_slices_are_composed_to_the_whole(
        told in told(700),
        cuts in prop::collection::vec(100..800_i64, 0..12),
    ) {
        holds(&told, cuts, &mut Ways::new());
    }
}

/// Long random traces use every case of composing.
#[test]
fn every_way_of_composing_is_used() {
    let mut ways = Ways::new();
    let mut random = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..20 {
        let all = prop::collection::vec(any::<(u8, u8, u8, u8, u8, u32)>(), 3000);
        let all = all
            .new_tree(&mut random)
            .expect("nothing is refused")
            .current();
        let one = |(kind, tid, other, cpu, after, details): (u8, u8, u8, u8, u8, u32)| {
            let thread = |number: u8| 1 + i32::from(number % 4);
            (
                kind,
                thread(tid),
                thread(other),
                u32::from(cpu % 2),
                i64::from(after % 3),
                details,
            )
        };
        let told: Vec<Told> = all.into_iter().map(one).collect();
        let cuts = (0..60).map(|number| 100 + number * 50).collect();
        holds(&told, cuts, &mut ways);
    }
    let expected = [
        "meets",
        "born",
        "lives",
        "works",
        "news",
        "occupied",
        "enters",
        "arrives",
        "parks",
        "queues",
        "executes",
        "dies",
        "takes over",
        "leaves",
        "comes",
        "loses",
        "wakes",
        "wakes by a packet",
        "wakes by an answer",
        "wakes by a request",
    ];
    for way in expected {
        assert!(
            ways.get(way).is_some_and(|count| *count > 20),
            "{way}: {ways:?}"
        );
    }
}
