//! A plain model of goroutines: their times by state, from an imported trace.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::MergedReader;
use tracebraid_ctf::schema::{Encoding, IntClass};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::walk::Visitor;

/// An event record.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    /// Nanoseconds of the clock.
    pub(crate) time: u64,
    pub(crate) name: String,
    pub(crate) integers: BTreeMap<String, i64>,
    pub(crate) texts: BTreeMap<String, String>,
}

impl Visitor for Plain {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        let value = match (class.signed, class.length) {
            (true, 32) => i64::from(raw as u32 as i32),
            _ => raw as i64,
        };
        self.integers.insert(node.name.to_string(), value);
    }

    fn string(&mut self, node: &Node, _: Encoding, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.texts.insert(node.name.to_string(), text);
    }
}

/// All event records of the traces below a directory, by time.
pub(crate) fn events(directory: &Path) -> Vec<Plain> {
    let set = TraceSet::open(&[directory.to_owned()]).expect("traces");
    assert_eq!(set.damage().count(), 0);
    let mut reader = MergedReader::new(&set);
    let mut all = Vec::new();
    while let Some((_, stream)) = reader.next() {
        all.push(plain(&mut stream.event().expect("an event")));
    }
    all
}

fn plain(event: &mut Event<'_>) -> Plain {
    let mut plain = Plain {
        time: event.clock,
        name: event.class.name.to_string(),
        ..Plain::default()
    };
    let walked = event.walk_body(&mut plain, |_, _| {});
    walked.expect("a sound event");
    plain
}

/// The summary of a goroutine by Go (tests/go/summarize).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Summary {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) exec: i64,
    pub(crate) sched: i64,
    pub(crate) block: BTreeMap<String, i64>,
    pub(crate) syscall: i64,
    pub(crate) syscall_block: i64,
}

/// The sums of a stack: waits and system calls that have ended, their time, and CPU samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct StackSums {
    pub(crate) waits: u64,
    pub(crate) wait: i64,
    pub(crate) samples: u64,
}

/// The sums of all stacks of an imported trace.
pub(crate) fn stacks(events: &[Plain]) -> BTreeMap<String, StackSums> {
    let mut frames: BTreeMap<i64, &str> = BTreeMap::new();
    let mut sums: BTreeMap<String, StackSums> = BTreeMap::new();
    for event in events {
        let Some(stack) = event.integers.get("stack").copied().filter(|of| *of != 0) else {
            continue;
        };
        if event.name == "go:stack_frames" {
            frames.insert(stack, &event.texts["frames"]);
            continue;
        }
        let mut sum = |add: StackSums| {
            let own = sums.entry(frames[&stack].to_owned()).or_default();
            own.waits += add.waits;
            own.wait += add.wait;
            own.samples += add.samples;
        };
        match event.name.as_str() {
            "go:cpu_sample" => sum(StackSums {
                samples: 1,
                ..StackSums::default()
            }),
            "go:wait_stack" => sum(StackSums {
                waits: 1,
                wait: event.integers["wait_ns"],
                samples: 0,
            }),
            _ => {}
        }
    }
    sums
}

/// The summary of a trace by Go.
#[derive(Debug, Deserialize)]
pub(crate) struct Oracle {
    pub(crate) goroutines: Vec<Summary>,
    pub(crate) kinds: BTreeMap<String, usize>,
    pub(crate) tasks: BTreeMap<String, usize>,
    /// By functions, the outermost first, separated by semicolons.
    pub(crate) stacks: BTreeMap<String, StackSums>,
    /// Time of the last event.
    pub(crate) last: i64,
    #[serde(default)]
    pub(crate) error: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Running,
    Blocked(String),
    /// With the time at which it lost its processor.
    Call(Option<i64>),
    Ended,
}

#[derive(Debug)]
struct Goroutine {
    state: State,
    since: i64,
    /// In a system call since before the trace.
    began_in_call: bool,
    summary: Summary,
}

/// Goroutines by their ids.
#[derive(Debug, Default)]
pub(crate) struct Model {
    goroutines: BTreeMap<i64, Goroutine>,
    /// Processors by LWP.
    processors: BTreeMap<i64, i64>,
    /// Goroutines in system calls by the processor they began with, and the reverse. At the end of a
    /// call, Go forgets the processor even if another goroutine has taken it since, and then
    /// misses that goroutine's loss of it.
    calling: BTreeMap<i64, i64>,
    called_with: BTreeMap<i64, i64>,
}

impl Goroutine {
    fn go_on(&mut self, time: i64, state: State) {
        let passed = time - self.since;
        let of = &mut self.summary;
        match &self.state {
            State::Ready => of.sched += passed,
            State::Running => of.exec += passed,
            State::Blocked(reason) => *of.block.entry(reason.clone()).or_default() += passed,
            State::Call(None) => of.syscall += passed,
            State::Call(Some(lost)) => {
                of.syscall += lost - self.since;
                of.syscall_block += time - lost;
            }
            State::Ended => {}
        }
        self.since = time;
        // Go takes a goroutine that waits for ever as ended.
        self.state = match state {
            State::Blocked(reason) if reason == "forever" => State::Ended,
            state => state,
        };
    }
}

impl Model {
    fn to(&mut self, ult: i64, time: i64, state: State) {
        let goroutine = self.goroutines.get_mut(&ult);
        goroutine.expect("a known goroutine").go_on(time, state);
    }

    fn add(&mut self, event: &Plain, state: State) {
        let (ult, time) = (event.integers["ult"], event.time as i64);
        let summary = Summary {
            id: ult,
            name: event.texts["name"].clone(),
            ..Summary::default()
        };
        let goroutine = Goroutine {
            began_in_call: event.name.ends_with("state") && matches!(state, State::Call(..)),
            state,
            since: time,
            summary,
        };
        let known = self.goroutines.insert(ult, goroutine);
        // The goroutines of callbacks begin again; Go's summary is that of the last time.
        let has_ended = known.is_none_or(|known| known.state == State::Ended);
        assert!(has_ended, "goroutine {ult} begins twice");
    }

    /// A processor is idle from now on, which matters to a goroutine in a system call.
    fn lose(&mut self, processor: i64, time: i64) {
        let goroutine = self.calling.remove(&processor);
        let goroutine = goroutine.and_then(|ult| self.goroutines.get_mut(&ult));
        if let Some(State::Call(lost)) = goroutine.map(|of| &mut of.state) {
            *lost = Some(time);
        }
    }

    fn begin_call(&mut self, ult: i64, lwp: i64, time: i64) {
        self.to(ult, time, State::Call(None));
        if let Some(&processor) = self.processors.get(&lwp) {
            self.calling.insert(processor, ult);
            self.called_with.insert(ult, processor);
        }
    }

    fn end_call(&mut self, ult: i64) {
        if let Some(processor) = self.called_with.remove(&ult) {
            self.calling.remove(&processor);
        }
    }

    pub(crate) fn take(&mut self, event: &Plain) {
        let time = event.time as i64;
        let number = |name: &str| event.integers[name];
        let lwp = number("tid");
        match event.name.as_str() {
            "tracebraid:ult_create" => self.add(event, State::Ready),
            // At the first event of a thread, its state at the begin is repeated.
            "tracebraid:ult_state" if lwp >= 0 => {
                let (ult, state) = (number("ult"), number("state"));
                let known = &self.goroutines[&ult].state;
                let is_running = *known == State::Running;
                assert!(is_running && state == 1 || state == 3, "{known:?}");
                assert_eq!(number("lwp"), lwp);
            }
            "tracebraid:ult_state" => {
                let state = match number("state") {
                    0 => State::Ready,
                    1 => State::Running,
                    2 => State::Blocked(String::new()),
                    _ => State::Call(None),
                };
                self.add(event, state);
            }
            "tracebraid:ult_name" => {
                let goroutine = self.goroutines.get_mut(&number("ult"));
                goroutine.expect("known").summary.name = event.texts["name"].clone();
            }
            "tracebraid:ult_switch" => {
                let (from, to) = (number("prev_ult"), number("next_ult"));
                if from != 0 && self.goroutines[&from].state == State::Running {
                    self.to(from, time, State::Ready);
                }
                if to != 0 {
                    self.to(to, time, State::Running);
                }
            }
            "tracebraid:ult_block" => {
                let reason = event.texts["reason"].replace("coroutine", "");
                self.to(number("ult"), time, State::Blocked(reason));
            }
            "tracebraid:ult_wake" => self.to(number("ult"), time, State::Ready),
            "tracebraid:ult_exit" => {
                self.to(number("ult"), time, State::Ended);
                self.end_call(number("ult"));
            }
            "tracebraid:ult_call_begin" => self.begin_call(number("ult"), lwp, time),
            "tracebraid:ult_call_end" => {
                self.to(number("ult"), time, State::Running);
                self.end_call(number("ult"));
            }
            "tracebraid:lwp_processor" => {
                // Of a processor that was taken away, the LWP learns later.
                if let Some(lost) = self.processors.remove(&lwp) {
                    self.lose(lost, time);
                }
                if number("processor") >= 0 {
                    self.processors.insert(lwp, number("processor"));
                }
            }
            "go:processor_stolen" => {
                let victim = self.processors.remove(&number("lwp"));
                if victim.is_some() {
                    self.lose(number("processor"), time);
                }
            }
            _ => {}
        }
    }

    /// The summaries at the end, by id, and whether each began in a system call.
    pub(crate) fn finish(self, last: i64) -> BTreeMap<i64, (Summary, bool)> {
        let finished = self.goroutines.into_iter().map(|(ult, mut goroutine)| {
            let (state, since) = (goroutine.state.clone(), goroutine.since);
            goroutine.go_on(last, State::Ended);
            let of = &mut goroutine.summary;
            if let State::Call(Some(lost)) = state {
                // Of a system call at the end of the trace, Go counts the blocked time twice.
                of.syscall_block -= last - lost;
                of.syscall += last - lost;
                of.sched += last - lost;
                assert!(since <= lost);
            }
            of.block.retain(|_, time| *time > 0);
            (ult, (goroutine.summary, goroutine.began_in_call))
        });
        finished.collect()
    }
}
