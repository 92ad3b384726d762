//! Results for random clocks whose relation is known, with random messages between their machines.

use proptest::prelude::*;
use tracebraid_clocks::{
    Accuracy, LIMIT, Machine, Machines, Matches, Message, Path, Relation, Slope, Synchronization,
    Timeline,
};
use tracebraid_ctf::clock::Timestamp;

/// A machine's time as a function of the other's: `x`, `offset` and the drifts in parts per
/// million, each with its duration.
#[derive(Clone, Debug)]
struct Clock {
    begin: i64,
    offset: i64,
    drifts: Vec<(i64, i64)>,
}

impl Clock {
    /// The time at `x`, rounded down.
    fn at(&self, x: i64) -> i64 {
        let mut from = self.begin;
        let mut moved = 0i128;
        for (index, &(length, ppm)) in self.drifts.iter().enumerate() {
            let is_last = index + 1 == self.drifts.len();
            let end = if is_last {
                i64::MAX
            } else {
                from.saturating_add(length)
            };
            let to = if index == 0 {
                x.min(end)
            } else {
                x.clamp(from, end)
            };
            moved += i128::from(to - from) * i128::from(ppm);
            from = end;
        }
        x + self.offset + moved.div_euclid(1_000_000) as i64
    }
}

/// Time after the beginning at which the first machine sends or receives, whether it receives, and
/// the delay of the message.
type Sent = (i64, bool, i64);

fn message(clock: &Clock, &(after, receives, delay): &Sent) -> (i64, i64, bool) {
    let x = clock.begin + after;
    match receives {
        true => (x, clock.at(x) - delay, true),
        false => (x, clock.at(x) + 1 + delay, false),
    }
}

fn timeline(messages: &[(i64, i64, bool)]) -> Timeline {
    let mut line = Timeline::default();
    for &(x, y, receives) in messages {
        match receives {
            true => line.receives(x, y),
            false => line.sends(x, y),
        }
    }
    line
}

/// Checks that no message is received before it was sent, with a tolerance in nanoseconds.
fn keeps_order(
    path: &Path,
    messages: &[(i64, i64, bool)],
    slack: i64,
) -> Result<(), TestCaseError> {
    let correction = path.correction().expect("a path is a correction");
    for &(x, y, receives) in messages {
        let corrected = correction.apply(Timestamp(x)).0;
        match receives {
            true => prop_assert!(
                corrected >= y - slack,
                "sent at {}, received at {}",
                y,
                corrected
            ),
            false => prop_assert!(
                corrected <= y + slack,
                "sent at {}, received at {}",
                corrected,
                y
            ),
        }
    }
    Ok(())
}

/// Maximum delay of messages where drifts change, in nanoseconds.
const DELAY: i64 = 40_000;
/// Maximum difference of two drifts, in parts per million: the assumed range of 1000, and 200 that
/// are drawn.
const MOST_PPM: i64 = 1200;

/// Uncertainty of the end of a stretch near `x`, in nanoseconds: the distance to the second message
/// of either direction on either side, where there are any.
fn unknown(messages: &[(i64, i64, bool)], x: i64) -> i64 {
    let distances = |receives: bool, is_before: bool| {
        let mut found: Vec<i64> = messages
            .iter()
            .filter(|message| message.2 == receives && (message.0 <= x) == is_before)
            .map(|message| (message.0 - x).abs())
            .collect();
        found.sort_unstable();
        found.get(1).or(found.last()).copied()
    };
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .filter_map(|(receives, is_before)| distances(receives, is_before))
        .max()
        .unwrap_or_default()
}

fn sent(
    within: i64,
    delay: i64,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Sent>> {
    prop::collection::vec((0..within, any::<bool>(), 0..delay), count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_truth_is_within_the_bounds(
        begin in -1_000_000_000_000i64..1_700_000_000_000_000_000,
        offset in -1_000_000_000_000i64..1_000_000_000_000,
        ppm in -900i64..900,
        sent in sent(100_000_000_000, 5_000_000, 1..60),
        probes in prop::collection::vec(-300_000_000_000i64..400_000_000_000, 8),
    ) {
        let clock = Clock { begin, offset, drifts: vec![(0, ppm)] };
        let messages: Vec<_> = sent.iter().map(|sent| message(&clock, sent)).collect();
        let path = Path::of(&timeline(&messages)).expect("a line fits").expect("there are messages");
        prop_assert_eq!(path.stretches().len(), 1);
        keeps_order(&path, &messages, 0)?;
        for probe in probes {
            let x = begin + probe;
            let (truth, (low, high)) = (clock.at(x), path.bounds(x));
            prop_assert!(low.is_none_or(|low| low.round() <= truth + 1), "{:?} {}", low, truth);
            prop_assert!(high.is_none_or(|high| truth <= high.round()), "{} {:?}", truth, high);
            let found = path.at(x).expect("a path converts all times").round();
            prop_assert!(low.is_none_or(|low| low.round() <= found + 1));
            prop_assert!(high.is_none_or(|high| found <= high.round() + 1));
        }
        let (low, high) = path.slopes().expect("there is a line");
        let truth = Slope::new(1_000_000 + ppm, 1_000_000);
        prop_assert!(low <= truth && truth <= high);
        let directions = |to: bool| messages.iter().any(|message| message.2 == to);
        let is_one_way = !directions(true) || !directions(false);
        prop_assert_eq!(path.accuracy() == Accuracy::Incomplete, is_one_way);
    }

    #[test]
    fn drifts_may_change(
        offset in -1_000_000_000i64..1_000_000_000,
        drifts in prop::collection::vec((1i64..60, -200i64..200), 1..6),
        sent in sent(100_000_000_000, DELAY, 200..400),
    ) {
        let begin = 1_700_000_000_000_000_000;
        let drifts = drifts.into_iter().map(|(seconds, ppm)| (seconds * 1_000_000_000, ppm)).collect();
        let clock = Clock { begin, offset, drifts };
        let messages: Vec<_> = sent.iter().map(|sent| message(&clock, sent)).collect();
        let path = Path::of(&timeline(&messages)).expect("lines fit").expect("there are messages");
        keeps_order(&path, &messages, 0)?;
        let (first, last) = path.extent();
        let correction = path.correction().expect("a path is a correction");
        let times: Vec<i64> = (0..500).map(|step| first + (last - first) / 500 * step).collect();
        let corrected: Vec<Timestamp> = times.iter().map(|&x| correction.apply(Timestamp(x))).collect();
        prop_assert!(corrected.is_sorted());
        // At a message the error is bounded by its delay; between messages it grows by at most the
        // difference of two drifts.
        for (&x, found) in times.iter().zip(&corrected) {
            let most = 4 * DELAY + unknown(&messages, x) / 1_000_000 * MOST_PPM;
            prop_assert!(found.0.abs_diff(clock.at(x)) <= most.unsigned_abs(), "{} {}", found.0, clock.at(x));
        }
    }

    #[test]
    fn absurd_times_do_not_overflow(
        messages in prop::collection::vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..12),
        near in prop::collection::vec((-4i64..4, -4i64..4, any::<bool>()), 0..12),
        x in any::<i64>(),
    ) {
        let edges = near.iter().map(|&(x, y, to)| {
            let at = |step: i64| (LIMIT / 3).saturating_mul(step);
            (at(x), at(y), to)
        });
        let messages: Vec<_> = messages.into_iter().chain(edges).collect();
        if let Ok(Some(path)) = Path::of(&timeline(&messages)) {
            let _ = (path.at(x), path.bounds(x), path.slopes(), path.accuracy(), path.pieces());
            if path.accuracy() != Accuracy::Fail {
                let is_near = |time: i64| -LIMIT < time && time < LIMIT;
                let taken: Vec<_> =
                    messages.into_iter().filter(|&(x, y, _)| is_near(x) && is_near(y)).collect();
                // Over a century, 64 bits cannot represent the drift to the nanosecond.
                keeps_order(&path, &taken, 10)?;
            }
        }
    }

    #[test]
    fn several_machines_get_the_time_of_one(
        offsets in prop::collection::vec((-1_000_000_000i64..1_000_000_000, -100i64..100), 2..5),
        sent in prop::collection::vec(
            (0usize..5, 0usize..5, 0i64..10_000_000_000, 1_000i64..300_000), 1..200),
        root in 0usize..5,
    ) {
        let begin = 1_700_000_000_000_000_000;
        let of = |(offset, ppm)| Clock { begin, offset, drifts: vec![(0, ppm)] };
        let clocks: Vec<Clock> = offsets.into_iter().map(of).collect();
        let (count, root) = (clocks.len(), root % clocks.len());
        let mut matches = Matches::default();
        for (from, to, after, delay) in sent {
            let (from, to) = (from % count, to % count);
            if from != to {
                let (sent, received) = (clocks[from].at(begin + after), clocks[to].at(begin + after + delay));
                matches.add(from, to, Message { sent, received });
            }
        }
        let name = |index: usize| Machine { host: Some(format!("h{index}")), ..Machine::default() };
        let machines = Machines::from_iter((0..count).map(name));
        let reference = format!("h{root}");
        let found = Synchronization::of(machines, &matches, Some(&reference)).expect("the reference exists");
        prop_assert_eq!(&found.reference, &reference);
        let corrections: Vec<_> = found.hosts.iter().map(|host| host.correction().expect("sound")).collect();
        for (index, host) in found.hosts.iter().enumerate() {
            // Exactly the machines that are connected with the reference get its time.
            let is_connected = connected(&matches, count, root).contains(&index);
            prop_assert_eq!(host.is_related, is_connected);
            for next in 0..count {
                // Machines that are adjacent in a chain keep the order of their messages.
                let is_next = host.through.first() == Some(&format!("h{next}"));
                if is_next && host.is_related {
                    for (from, to) in [(index, next), (next, index)] {
                        for message in matches.between(from, to) {
                            let sent = corrections[from].apply(Timestamp(message.sent));
                            let received = corrections[to].apply(Timestamp(message.received));
                            prop_assert!(sent <= received);
                        }
                    }
                }
            }
        }
    }
}

fn connected(matches: &Matches, count: usize, root: usize) -> Vec<usize> {
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        for next in 0..count {
            let are_related = !matches.between(found[at], next).is_empty()
                || !matches.between(next, found[at]).is_empty();
            if are_related && !found.contains(&next) {
                found.push(next);
            }
        }
        at += 1;
    }
    found
}

#[test]
fn few_messages_say_little_but_nothing_wrong() {
    let path = |messages: &[(i64, i64, bool)]| Path::of(&timeline(messages));
    assert_eq!(path(&[]), Ok(None));
    // One message: it is assumed to arrive at once.
    let one = path(&[(1000, 4000, true)]).unwrap().unwrap();
    assert_eq!(
        (one.accuracy(), one.at(1000).map(|at| at.round())),
        (Accuracy::Incomplete, Some(4000))
    );
    assert_eq!(one.bounds(1000).0.map(|low| low.round()), Some(4000));
    assert_eq!(one.bounds(1000).1, None);
    // A message in each direction at one moment: the middle.
    let both = path(&[(1000, 4000, true), (1000, 4010, false)])
        .unwrap()
        .unwrap();
    assert_eq!(
        (both.accuracy(), both.at(1000).map(|at| at.round())),
        (Accuracy::Approximate, Some(4005))
    );
    // All messages at one time, which also repeats.
    let same = path(&[(5, 5, true), (5, 5, false), (5, 5, true)])
        .unwrap()
        .unwrap();
    assert_eq!(same.at(5).map(|at| at.round()), Some(5));
}

/// The drift changes by 100 ppm; messages with delays of 20 to 40 µs reveal it.
#[test]
fn each_drift_has_a_line() {
    let begin = 1_700_000_000_000_000_000;
    let clock = |drifts| Clock {
        begin,
        offset: 7_000_000_000,
        drifts,
    };
    let sent = |step: i64| {
        (
            step * 5_000_000,
            step % 2 == 0,
            20_000 + step * 7919 % 20_000,
        )
    };
    let messages_of = |clock: &Clock| -> Vec<_> {
        (0..20_000)
            .map(|step| message(clock, &sent(step)))
            .collect()
    };
    let even = clock(vec![(0, 30)]);
    let line = Path::of(&timeline(&messages_of(&even))).unwrap().unwrap();
    assert_eq!(
        (line.stretches().len(), line.accuracy()),
        (1, Accuracy::Accurate)
    );
    let bent = clock(vec![(50_000_000_000, 30), (0, 130)]);
    let messages = messages_of(&bent);
    let lines = Path::of(&timeline(&messages)).unwrap().unwrap();
    assert_eq!(
        (lines.stretches().len(), lines.accuracy()),
        (2, Accuracy::Accurate)
    );
    keeps_order(&lines, &messages, 0).unwrap();
    for second in 0..100 {
        let x = begin + second * 1_000_000_000;
        assert!(
            lines.at(x).unwrap().round().abs_diff(bent.at(x)) < 40_000,
            "{second}"
        );
    }
}

/// The drift changes while only one direction still has messages. These allow drifts of up to 1,000
/// ppm; the messages before the change must narrow that.
#[test]
fn one_direction_at_the_end_is_bounded_by_what_came_before() {
    let second = 1_000_000_000;
    let clock = Clock {
        begin: 1_700_000_000_000_000_000,
        offset: 0,
        drifts: vec![(90 * second, 0), (0, -19)],
    };
    let sent = |step: i64| {
        (
            step * second / 10,
            step % 2 == 0 && step < 905,
            step * 7919 % 20_000,
        )
    };
    let mut sent: Vec<Sent> = (0..1000).map(sent).collect();
    // No line with the earlier drift satisfies these two messages.
    sent.push((90 * second, true, 0));
    sent.push((91 * second, false, 0));
    let messages: Vec<_> = sent.iter().map(|sent| message(&clock, sent)).collect();
    let path = Path::of(&timeline(&messages)).unwrap().unwrap();
    assert!(path.stretches().len() > 1);
    keeps_order(&path, &messages, 0).unwrap();
    let last_received = clock.begin + 904 * second / 10;
    for tenth in 0..1000 {
        let x = clock.begin + tenth * second / 10;
        let wrong = path.at(x).unwrap().round() - clock.at(x);
        // Twice the delay of a message, and 100 ppm of the time since the last message of the other
        // direction.
        let most = 40_000 + (x - last_received).max(0) / 10_000;
        assert!(
            wrong.abs() < most,
            "{wrong} ns at {tenth} tenths of a second"
        );
    }
}

/// If the assumed range of drifts and not messages bound the drift, the accuracy is not `Accurate`.
#[test]
fn assumed_drifts_are_not_accurate() {
    let clock = Clock {
        begin: 1_700_000_000_000_000_000,
        offset: 7_000_000_000,
        drifts: vec![(0, 30)],
    };
    // Messages take half a millisecond in each direction, so over `length` they leave the drift
    // uncertain by a millisecond.
    let within = |length: i64| {
        let sent = |step: i64| (step * length / 1000, step % 2 == 0, 500_000);
        let messages: Vec<_> = (0..1000).map(|step| message(&clock, &sent(step))).collect();
        Path::of(&timeline(&messages)).unwrap().unwrap()
    };
    let ppm = |path: &Path| {
        let (low, high) = path.slopes().unwrap();
        (low.drift_ppm().round(), high.drift_ppm().round())
    };
    let short = within(100_000_000);
    assert_eq!(short.accuracy(), Accuracy::Approximate);
    assert_eq!(ppm(&short), (-1000.0, 1000.0));
    let long = within(100_000_000_000);
    assert_eq!(long.accuracy(), Accuracy::Accurate);
    let (low, high) = ppm(&long);
    assert!(-30.0 < low && low < high && high < 90.0, "{low} {high}");
}

#[test]
fn what_cannot_be_is_said() {
    let mut relation = Relation::default();
    assert!(relation.not_before(0, 10) && relation.not_after(0, 9));
    assert!(relation.solve().is_err());
    // A clock that goes back.
    let second = 1_000_000_000;
    let back = [
        (0, 0, true),
        (0, 1, false),
        (second, -second, true),
        (second, 1 - second, false),
    ];
    assert!(Path::of(&timeline(&back)).is_err());
    // One message that was received before it was sent, among many valid ones, which suffice.
    let mut many: Vec<_> = (0..100)
        .flat_map(|step| {
            [
                (step * second, step * second, true),
                (step * second + 9, step * second + 20, false),
            ]
        })
        .collect();
    many.push((50 * second + 10, 50 * second - 10_000, false));
    let path = Path::of(&timeline(&many)).unwrap().unwrap();
    assert_eq!(path.accuracy(), Accuracy::Fail);
    assert!(path.at(20 * second).unwrap().round().abs_diff(20 * second) < 20);
}
