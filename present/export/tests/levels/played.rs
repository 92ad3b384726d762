//! Made-up lines with random states, and what their sums are.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Output};
use std::sync::Arc;

use tracebraid_levels::exported::{Item, Kind, Line, LineId, LinkKind, Sink, State};
use tracebraid_testkit::rng::Rng;

/// Time of the first item, in nanoseconds.
pub(crate) const BEGIN: i64 = 1_700_000_000_123_456_789;

/// Sums and numbers of the items.
#[derive(Default)]
pub(crate) struct Played {
    pub(crate) lines: Vec<Line>,
    /// Nanoseconds by title of the line and name of the state.
    pub(crate) sums: BTreeMap<(String, String), i64>,
    pub(crate) links: BTreeMap<LinkKind, u64>,
    /// Number of functions that were entered, by title of the line.
    pub(crate) functions: BTreeMap<String, u64>,
    pub(crate) events: u64,
    pub(crate) end: i64,
}

impl Played {
    /// Sums of a kind of lines.
    pub(crate) fn of(&self, kind: Kind) -> BTreeMap<(String, String), i64> {
        let lines = self.lines.iter().filter(|line| line.kind == kind);
        let titles: Vec<String> = lines.map(Line::title).collect();
        let sums = self
            .sums
            .iter()
            .filter(|((title, _), _)| titles.contains(title));
        sums.map(|(key, sum)| (key.clone(), *sum)).collect()
    }
}

/// The name of a state in exports, but for CPUs and LWPs that run a thread.
pub(crate) fn name(state: &State) -> String {
    match state {
        State::Blocked(reason) => format!("blocked: {reason}"),
        _ => state.word().to_owned(),
    }
}

struct Stage<'s> {
    sink: &'s mut dyn Sink,
    played: Played,
    time: i64,
    /// State of each line and its begin.
    states: BTreeMap<LineId, (State, i64)>,
}

impl Stage<'_> {
    fn line(&mut self, kind: Kind, parent: Option<LineId>, number: i32, name: &str) -> LineId {
        let line = Line {
            id: LineId(self.played.lines.len() as u32),
            kind,
            parent,
            number,
            name: name.into(),
        };
        self.sink.item(&Item::Line(&line)).expect("written");
        self.played.lines.push(line);
        LineId(self.played.lines.len() as u32 - 1)
    }

    fn close(&mut self, line: LineId) {
        if let Some((state, since)) = self.states.remove(&line) {
            let title = self.played.lines[line.0 as usize].title();
            let kind = self.played.lines[line.0 as usize].kind;
            let name = match (&state, kind) {
                (State::Running(name), Kind::Cpu | Kind::Lwp) => name.to_string(),
                _ => name(&state),
            };
            if state != State::Ended {
                *self.played.sums.entry((title, name)).or_default() += self.time - since;
            }
        }
    }

    fn state(&mut self, line: LineId, state: State, on: Option<LineId>) {
        if self.states.get(&line).is_some_and(|(of, _)| *of == state) {
            return;
        }
        self.close(line);
        let item = Item::State {
            time: self.time,
            line,
            state: &state,
            on,
        };
        self.sink.item(&item).expect("written");
        self.states.insert(line, (state, self.time));
    }

    fn link(&mut self, kind: LinkKind, moves: Option<LineId>, from: LineId, to: LineId) {
        let item = Item::Link {
            time: self.time,
            kind,
            moves,
            from,
            to,
        };
        self.sink.item(&item).expect("written");
        *self.played.links.entry(kind).or_default() += 1;
    }
}

/// Plays two CPUs, three LWPs and some user-level threads.
pub(crate) fn play(seed: u64, steps: u64, sink: &mut dyn Sink) -> Played {
    let mut random = Rng::new(seed);
    let mut stage = Stage {
        sink,
        played: Played::default(),
        time: BEGIN,
        states: BTreeMap::new(),
    };
    let machine = stage.line(Kind::Machine, None, 0, "made-up");
    let cpus: Vec<LineId> = (0..2)
        .map(|n| stage.line(Kind::Cpu, Some(machine), n, ""))
        .collect();
    let process = stage.line(Kind::Process, Some(machine), 40, "");
    let lwps: Vec<LineId> = (0..3)
        .map(|n| stage.line(Kind::Lwp, Some(process), 41 + n, ""))
        .collect();
    let name = |n: i32| {
        if n == 2 {
            "a \"quoted\" name"
        } else {
            "worker"
        }
    };
    let threads: Vec<LineId> = (0..8)
        .map(|n| stage.line(Kind::Thread, Some(process), 100_000_001 + n, name(n)))
        .collect();
    for cpu in &cpus {
        stage.state(*cpu, State::Idle, None);
    }
    let mut places: BTreeMap<LineId, LineId> = BTreeMap::new();
    let mut depths: BTreeMap<LineId, u32> = BTreeMap::new();
    for _ in 0..steps {
        stage.time += random.below(2000) as i64;
        let cpu = cpus[random.below(2) as usize];
        let lwp = lwps[random.below(3) as usize];
        let thread = threads[random.below(8) as usize];
        match random.below(8) {
            0 => {
                let name: Arc<str> = format!("thread-{}", random.below(5)).into();
                stage.state(cpu, State::Running(name), None);
            }
            1 => stage.state(cpu, State::Idle, None),
            2 => {
                if let Some(before) = places.insert(lwp, cpu).filter(|before| *before != cpu) {
                    stage.link(LinkKind::LwpMigration, Some(lwp), before, cpu);
                }
                stage.state(lwp, State::Running("worker".into()), Some(cpu));
            }
            3 => {
                let states = [
                    State::InKernel,
                    State::Preempted("hog".into()),
                    State::WaitsForCpu,
                ];
                let state = states[random.below(3) as usize].clone();
                stage.state(lwp, state, places.get(&lwp).copied());
            }
            4 => {
                if let Some(before) = places.insert(thread, lwp).filter(|before| *before != lwp) {
                    stage.link(LinkKind::ThreadMigration, Some(thread), before, lwp);
                }
                stage.state(thread, State::Running(Arc::default()), Some(lwp));
            }
            5 => {
                let states = [
                    State::Blocked("mutex".into()),
                    State::WaitsForLwp,
                    State::Preempted("hog".into()),
                ];
                let state = states[random.below(3) as usize].clone();
                stage.state(thread, state, places.get(&thread).copied());
            }
            6 => {
                let other = threads[random.below(8) as usize];
                if other != thread {
                    stage.link(LinkKind::WakeUp, None, thread, other);
                }
            }
            _ => {
                let is_running = stage.states.get(&thread).map(|(state, _)| state.word());
                if is_running != Some("running") {
                    continue;
                }
                let depth = depths.entry(thread).or_default();
                let leaves = *depth > 0 && random.below(2) == 0;
                *depth = if leaves { *depth - 1 } else { *depth + 1 };
                let name = (!leaves).then_some("function");
                let item = Item::Function {
                    time: stage.time,
                    line: thread,
                    name,
                };
                stage.sink.item(&item).expect("written");
                let title = stage.played.lines[thread.0 as usize].title();
                *stage.played.functions.entry(title).or_default() += u64::from(!leaves);
                let item = Item::Event {
                    time: stage.time,
                    line: thread,
                    name: "program:event",
                };
                stage.sink.item(&item).expect("written");
                stage.played.events += 1;
            }
        }
    }
    stage.time += 1000;
    for line in cpus.iter().chain(&lwps).chain(&threads) {
        stage.close(*line);
    }
    stage.sink.finish(stage.time).expect("written");
    stage.played.end = stage.time;
    stage.played
}

/// The output of a tool; `None` if it is missing, which is reported.
pub(crate) fn tool(name: &str, arguments: &[&std::ffi::OsStr]) -> Option<String> {
    match Command::new(name).args(arguments).output() {
        Ok(Output {
            status,
            stdout,
            stderr,
        }) => {
            let said = String::from_utf8_lossy(&stderr);
            assert!(status.success(), "{name}: {said}");
            Some(String::from_utf8(stdout).expect("text"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            tracebraid_testkit::skip::skipped(format_args!(
                "{name} is missing: run scripts/setup test"
            ));
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}
