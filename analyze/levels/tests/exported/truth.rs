//! Lines of generated recordings, whose truth is known.

use std::collections::BTreeMap;
use std::io;

use tempfile::TempDir;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::Control;
use tracebraid_levels::exported::{Item, Kind, Line, LineId, Sink, export};
use tracebraid_levels::{Options, merge};
use tracebraid_models::levels::{LevelShape, LevelTruth, UserLevelState, record};

/// Nanoseconds by process, user-level thread and state.
type Sums = BTreeMap<(i32, u64, String), i64>;

/// Offset of the generated traces' clock, in nanoseconds.
const CLOCK_OFFSET: i64 = 5000;

#[derive(Default)]
struct Collector {
    lines: BTreeMap<LineId, Line>,
    states: BTreeMap<LineId, (String, i64)>,
    sums: BTreeMap<(LineId, String), i64>,
    last: i64,
    /// States count up to this time: the last records of a program may follow the kernel's, and
    /// have no CPU.
    cut: i64,
}

impl Collector {
    fn close(&mut self, line: LineId, time: i64) {
        if let Some((state, since)) = self.states.remove(&line) {
            let length = time.min(self.cut) - since.min(self.cut);
            *self.sums.entry((line, state)).or_default() += length;
        }
    }

    /// Sums of user-level threads by process and their own ids.
    fn threads(&self) -> Sums {
        let mut sums = Sums::new();
        for ((line, state), sum) in &self.sums {
            let line = &self.lines[line];
            if line.kind == Kind::Thread && state != "ended" && *sum > 0 {
                let process = self.lines[&line.parent.expect("a process")].number;
                let ult = u64::try_from(line.number % 100_000_000).expect("an id");
                *sums.entry((process, ult, state.clone())).or_default() += sum;
            }
        }
        sums
    }
}

impl Sink for Collector {
    fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        match item {
            Item::Line(line) => {
                self.lines.insert(line.id, (*line).clone());
            }
            Item::State {
                time, line, state, ..
            } => {
                assert!(*time >= self.last, "in the order of time");
                self.last = *time;
                self.close(*line, *time);
                let kind = self.lines[line].kind;
                let name = match (kind, state.detail()) {
                    (Kind::Thread, detail) if state.word() == "blocked" => {
                        format!("blocked: {detail}")
                    }
                    _ => state.word().to_owned(),
                };
                self.states.insert(*line, (name, *time));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, end: i64) -> io::Result<()> {
        for line in self.states.keys().copied().collect::<Vec<_>>() {
            self.close(line, end);
        }
        Ok(())
    }
}

fn name(state: &UserLevelState) -> String {
    match state {
        UserLevelState::Active { .. } => "running".to_owned(),
        UserLevelState::LwpPreempted { .. } => "preempted".to_owned(),
        UserLevelState::LwpBlocked { .. } => "blocked in kernel".to_owned(),
        UserLevelState::LwpReady { .. } => "waits for CPU".to_owned(),
        UserLevelState::Ready => "ready".to_owned(),
        UserLevelState::Blocked { reason } => format!("blocked: {reason}"),
    }
}

fn expected(truth: &LevelTruth, cut: i64) -> Sums {
    let mut sums = Sums::new();
    for ((pid, ult, _), stretches) in &truth.lives {
        for stretch in stretches {
            let length = (stretch.to as i64).min(cut) - (stretch.from as i64).min(cut);
            *sums.entry((*pid, *ult, name(&stretch.state))).or_default() += length;
        }
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

#[test]
fn states_of_user_level_threads_are_those_of_the_truth() {
    // Without equal times, whose order is that of CPUs (head of `follow.rs`).
    let shape = LevelShape {
        ties: 0,
        ..LevelShape::PLAIN
    };
    for seed in 0..3 {
        let directory = TempDir::new().expect("a directory");
        let traces = record(seed, shape, &directory.path().join("recorded"));
        let set = TraceSet::open(&traces.all()).expect("traces");
        let to = directory.path().join("super");
        merge(&set, &to, Options::default(), &Control::default()).expect("a super-trace");
        let set = TraceSet::open(&[to]).expect("a super-trace");
        let cut = traces.truth.end as i64 - 5000;
        let mut collector = Collector {
            cut: cut + CLOCK_OFFSET,
            ..Collector::default()
        };
        export(&set, &mut collector).expect("exported");
        let (found, expected) = (collector.threads(), expected(&traces.truth, cut));
        let mut differ = Vec::new();
        for key in found.keys().chain(expected.keys()) {
            let sums = [found.get(key), expected.get(key)];
            if sums[0] != sums[1] {
                differ.push(format!("{key:?}: {sums:?}"));
            }
        }
        assert!(expected.len() > 50);
        assert_eq!(
            differ,
            [] as [String; 0],
            "seed {seed} of {}",
            expected.len()
        );
    }
}
