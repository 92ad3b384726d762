//! Conditions that trigger writing a recording in memory (`--when`).
//!
//! They are evaluated on the events on their way to the trace and, for the load of the machine,
//! once a second. That needs no additional BPF programs, and costs nothing without conditions.
//! Events arrive in the order of time for each CPU, in batches of a few milliseconds: system calls
//! are sorted at the end of a batch, since a thread may enter a call on one CPU and leave it on
//! another.

mod machine_load;

use std::collections::HashMap;
use std::time::Duration;

use tracebraid_ctf::schema::TraceClass;

use crate::lane::Event;
use crate::raw::u32_at;
use crate::shared::kinds;
use crate::state::Payload;

use machine_load::MachineLoad;

/// The value that a condition compares with its limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    /// Duration of system calls with one of the names, or of any call if empty, in nanoseconds.
    Call(Vec<String>),
    /// Nanoseconds from the wake-up of a thread until it runs.
    Latency,
    /// Number of events of a class per second. The name may end with `*`.
    Rate(String),
    /// Load average of the last minute.
    Load,
    /// Number of running and runnable threads.
    Runnable,
    /// Share of the time of all CPUs in the last second that was used, in percent.
    Cpu,
}

/// A condition: it holds when the watched value exceeds the limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The condition as written by the user.
    pub text: String,
    /// The watched value.
    pub watched: Watched,
    /// The limit, in the unit of the watched value.
    pub limit: f64,
}

/// Conditions, and how often they may trigger.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triggering {
    /// Any condition suffices.
    pub any: Vec<Condition>,
    /// After a trigger, conditions are ignored for this time.
    pub interval: Duration,
    /// Maximum number of triggers.
    pub most: u32,
}

/// A condition that held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The condition as written by the user.
    pub condition: String,
    /// Description of the value that exceeded the limit, for example the system call, the thread
    /// and the duration.
    pub value: String,
}

/// The meaning of an event class for the conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    #[default]
    Other,
    Switch,
    Wakeup,
    /// Entry of a call, with the index of the call's name.
    Entry(u16),
    Exit(u16),
}

/// The entry or exit of a system call.
#[derive(Clone, Copy, Debug)]
struct CallEvent {
    time: u64,
    tid: i32,
    call: u16,
    is_exit: bool,
}

pub(crate) struct Triggers {
    conditions: Triggering,
    /// Roles by class id.
    roles: Vec<Role>,
    /// By class id, a mask of the conditions that count the class.
    counted: Vec<u32>,
    /// Names of calls.
    calls: Vec<String>,
    /// By condition, whether it selects a call, by index.
    chosen: Vec<Vec<bool>>,
    /// By CPU, the running thread.
    running: Vec<Option<i32>>,
    batch: Vec<CallEvent>,
    /// Calls that have not returned, by thread.
    entered: HashMap<i32, (u64, u16)>,
    woken: HashMap<i32, u64>,
    rates: Vec<Rate>,
    machine: MachineLoad,
    /// Nanoseconds of CLOCK_MONOTONIC.
    silent_until: u64,
    held: u32,
    found: Option<(u64, Held)>,
}

/// Maximum number of conditions: a class has a bit for each condition that counts it.
pub const MOST_CONDITIONS: usize = 32;

/// Maximum number of threads in a table, which is then cleared, since ended threads are not
/// removed.
const MOST_THREADS: usize = 1 << 17;

impl Triggers {
    pub(crate) fn new(
        conditions: &Triggering,
        class: &TraceClass,
        cpus: usize,
    ) -> Option<Triggers> {
        if conditions.any.is_empty() {
            return None;
        }
        let mut triggers = Triggers {
            roles: Vec::new(),
            counted: Vec::new(),
            calls: Vec::new(),
            chosen: Vec::new(),
            running: vec![None; cpus],
            batch: Vec::new(),
            entered: HashMap::new(),
            woken: HashMap::new(),
            rates: vec![Rate::default(); conditions.any.len()],
            machine: MachineLoad::new(),
            silent_until: 0,
            held: 0,
            found: None,
            conditions: conditions.clone(),
        };
        for event in class.streams.iter().flat_map(|stream| &stream.events) {
            let name = &*event.name;
            triggers.add_class(event.id as usize, name);
        }
        let (conditions, calls) = (&triggers.conditions, &triggers.calls);
        let chosen = conditions
            .any
            .iter()
            .map(|condition| match &condition.watched {
                Watched::Call(names) if names.is_empty() => vec![true; calls.len()],
                Watched::Call(names) => calls.iter().map(|call| names.contains(call)).collect(),
                _ => Vec::new(),
            });
        triggers.chosen = chosen.collect();
        Some(triggers)
    }

    fn add_class(&mut self, id: usize, name: &str) {
        let plain = name.strip_prefix("compat_").unwrap_or(name);
        let role = match (
            plain.strip_prefix("syscall_entry_"),
            plain.strip_prefix("syscall_exit_"),
        ) {
            (Some(call), _) => Role::Entry(self.call(call)),
            (_, Some(call)) => Role::Exit(self.call(call)),
            _ if id == usize::from(kinds::SCHED_SWITCH) => Role::Switch,
            _ if [kinds::SCHED_WAKEUP, kinds::SCHED_WAKEUP_NEW]
                .map(usize::from)
                .contains(&id) =>
            {
                Role::Wakeup
            }
            _ => Role::Other,
        };
        if id >= self.roles.len() {
            self.roles.resize(id + 1, Role::Other);
            self.counted.resize(id + 1, 0);
        }
        self.roles[id] = role;
        for (at, condition) in self.conditions.any.iter().enumerate().take(MOST_CONDITIONS) {
            let Watched::Rate(pattern) = &condition.watched else {
                continue;
            };
            let is_counted = match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == pattern,
            };
            self.counted[id] |= u32::from(is_counted) << at;
        }
    }

    /// The index of a call's name.
    fn call(&mut self, name: &str) -> u16 {
        let at = self.calls.iter().position(|call| call == name);
        let at = at.unwrap_or_else(|| {
            self.calls.push(name.to_owned());
            self.calls.len() - 1
        });
        at as u16
    }

    /// Evaluates an event that is about to be written.
    pub(crate) fn event(&mut self, cpu: usize, event: &Event<'_>) {
        let id = usize::from(event.id);
        let (Some(&role), Some(&counted)) = (self.roles.get(id), self.counted.get(id)) else {
            return;
        };
        if counted != 0 {
            self.count(counted, event.time);
        }
        let running = self.running.get(cpu).copied().flatten();
        match role {
            Role::Other => {}
            Role::Switch => self.switch(cpu, event),
            Role::Wakeup => {
                if let Some(tid) = u32_at(event.payload, TID) {
                    self.woken.insert(tid as i32, event.time);
                }
            }
            Role::Entry(call) | Role::Exit(call) => {
                self.batch.extend(running.map(|tid| CallEvent {
                    time: event.time,
                    tid,
                    call,
                    is_exit: matches!(role, Role::Exit(_)),
                }))
            }
        }
    }

    fn switch(&mut self, cpu: usize, event: &Event<'_>) {
        let next = u32_at(event.payload, NEXT_TID).map(|tid| tid as i32);
        if let Some(running) = self.running.get_mut(cpu) {
            *running = next;
        }
        let woken = next.and_then(|tid| Some((tid, self.woken.remove(&tid)?)));
        let Some((tid, woken)) = woken.filter(|(tid, _)| *tid != 0) else {
            return;
        };
        let waited = event.time.saturating_sub(woken);
        self.compare(
            event.time,
            waited as f64,
            |watched| *watched == Watched::Latency,
            |_| format!("thread {tid} waited {} for a CPU", length(waited)),
        );
    }

    fn count(&mut self, counted: u32, time: u64) {
        for at in 0..self.rates.len().min(MOST_CONDITIONS) {
            if counted >> at & 1 == 0 {
                continue;
            }
            let (Some(rate), Some(condition)) =
                (self.rates.get_mut(at), self.conditions.any.get(at))
            else {
                continue;
            };
            let count = rate.add(time);
            if f64::from(count) > condition.limit {
                let text = condition.text.clone();
                rate.clear();
                self.hold(time, text, format!("{count} events in a second"));
            }
        }
    }

    /// Compares a value with the limits of some conditions.
    fn compare(
        &mut self,
        time: u64,
        value: f64,
        is_chosen: impl Fn(&Watched) -> bool,
        text: impl Fn(&Condition) -> String,
    ) {
        let mut all = self.conditions.any.iter();
        let exceeded =
            all.find(|condition| is_chosen(&condition.watched) && value > condition.limit);
        if let Some(condition) = exceeded {
            let (condition, value) = (condition.text.clone(), text(condition));
            self.hold(time, condition, value);
        }
    }

    fn hold(&mut self, time: u64, condition: String, value: String) {
        if self.found.is_some() || time < self.silent_until || self.held >= self.conditions.most {
            return;
        }
        self.silent_until = time + self.conditions.interval.as_nanos() as u64;
        self.held += 1;
        self.found = Some((time, Held { condition, value }));
    }

    /// Call when all events up to `now` have been taken; returns a condition that held, and the
    /// time.
    pub(crate) fn settle(&mut self, now: u64) -> Option<(u64, Held)> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.sort_by_key(|event| event.time);
        for event in batch.drain(..) {
            self.call_event(event);
        }
        self.batch = batch;
        if self.entered.len() > MOST_THREADS || self.woken.len() > MOST_THREADS {
            self.entered.clear();
            self.woken.clear();
        }
        if let Some([load, runnable, cpu]) = self.machine.look() {
            for (kind, value) in [
                (Watched::Load, load),
                (Watched::Runnable, runnable),
                (Watched::Cpu, cpu),
            ] {
                self.compare(
                    now,
                    value,
                    |watched| *watched == kind,
                    |_| match kind {
                        Watched::Cpu => format!("{value:.0} % of all CPUs are used"),
                        Watched::Load => format!("the load average is {value:.2}"),
                        _ => format!("{value:.0} threads run or are runnable"),
                    },
                );
            }
        }
        self.found.take()
    }

    fn call_event(&mut self, event: CallEvent) {
        let CallEvent {
            time,
            tid,
            call,
            is_exit,
        } = event;
        if !is_exit {
            self.entered.insert(tid, (time, call));
            return;
        }
        let entered = self
            .entered
            .remove(&tid)
            .filter(|(_, entered)| *entered == call);
        let Some((since, _)) = entered else { return };
        let took = time.saturating_sub(since);
        let is_chosen = |chosen: &Vec<bool>| chosen.get(usize::from(call)) == Some(&true);
        let chosen = self.chosen.iter().map(is_chosen);
        let mut all = self.conditions.any.iter().zip(chosen);
        let exceeded =
            all.find(|(condition, is_chosen)| *is_chosen && took as f64 > condition.limit);
        if let Some((condition, _)) = exceeded {
            let name = self.calls.get(usize::from(call)).map_or("", String::as_str);
            let value = format!("{name} of thread {tid} took {}", length(took));
            let condition = condition.text.clone();
            self.hold(time, condition, value);
        }
    }
}

/// Payload of the event that records a condition that held.
pub(crate) fn payload(held: &Held) -> Vec<u8> {
    let payload = Payload::default().text(held.condition.as_bytes());
    payload.text(held.value.as_bytes()).bytes_of()
}

/// Offsets of `_tid` and `_next_tid` in the payloads of scheduling events: see `events.tsdl`.
const TID: usize = 16;
const NEXT_TID: usize = 48;

fn length(nanoseconds: u64) -> String {
    match nanoseconds {
        0..10_000_000 => format!("{} us", nanoseconds / 1000),
        10_000_000..10_000_000_000 => format!("{} ms", nanoseconds / 1_000_000),
        _ => format!("{} s", nanoseconds / 1_000_000_000),
    }
}

/// Number of events in the last second, in slots of a tenth.
#[derive(Clone, Debug, Default)]
struct Rate {
    slots: [u32; SLOTS as usize],
    /// Index of the newest slot since the zero of the clock.
    newest: u64,
}

const SLOTS: u64 = 10;
const SLOT_NS: u64 = 100_000_000;

impl Rate {
    /// Counts an event; returns the number of events in the last second.
    fn add(&mut self, time: u64) -> u32 {
        let slot = time / SLOT_NS;
        if slot > self.newest {
            let passed = (slot - self.newest).min(SLOTS);
            for number in slot + 1 - passed..=slot {
                self.slots[(number % SLOTS) as usize] = 0;
            }
            self.newest = slot;
        }
        self.slots[(slot % SLOTS) as usize] += 1;
        self.slots.iter().sum()
    }

    fn clear(&mut self) {
        self.slots = [0; SLOTS as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::schema;

    fn triggers(watched: Watched, limit: f64, most: u32) -> Triggers {
        let condition = Condition {
            text: "it".to_owned(),
            watched,
            limit,
        };
        let conditions = Triggering {
            any: vec![condition],
            interval: Duration::from_secs(1),
            most,
        };
        let class = schema(&crate::calls::calls());
        Triggers::new(&conditions, &class, 2).unwrap()
    }

    fn id(triggers: &Triggers, call: &str, is_exit: bool) -> u16 {
        let number = triggers.calls.iter().position(|name| name == call).unwrap() as u16;
        let role = if is_exit {
            Role::Exit(number)
        } else {
            Role::Entry(number)
        };
        triggers
            .roles
            .iter()
            .position(|other| *other == role)
            .unwrap() as u16
    }

    fn switch(next: i32) -> Vec<u8> {
        let mut payload = vec![0; 56];
        payload[NEXT_TID..NEXT_TID + 4].copy_from_slice(&next.to_le_bytes());
        payload
    }

    fn put(triggers: &mut Triggers, cpu: usize, time: u64, id: u16, payload: &[u8]) {
        let event = Event {
            time,
            lost: 0,
            id,
            payload,
        };
        triggers.event(cpu, &event);
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn a_call_may_end_on_another_cpu() {
        let mut triggers = triggers(Watched::Call(vec!["read".into()]), 100e6, 2);
        let [entry, exit] = [false, true].map(|is_exit| id(&triggers, "read", is_exit));
        let other = [false, true].map(|is_exit| id(&triggers, "write", is_exit));
        // The events of CPU 0 come first, although the call began on CPU 1.
        for round in 0..3u64 {
            let start = round * 2000 * MS;
            put(
                &mut triggers,
                0,
                start + 200 * MS,
                kinds::SCHED_SWITCH,
                &switch(7),
            );
            put(&mut triggers, 0, start + 250 * MS, exit, &[]);
            put(&mut triggers, 0, start + 251 * MS, other[0], &[]);
            put(&mut triggers, 0, start + 900 * MS, other[1], &[]);
            put(&mut triggers, 1, start, kinds::SCHED_SWITCH, &switch(7));
            put(&mut triggers, 1, start + 10 * MS, entry, &[]);
            let held = triggers.settle(0);
            let value = held.map(|(time, held)| (time - start, held.value));
            let expected = (250 * MS, "read of thread 7 took 240 ms".to_owned());
            // At most two triggers.
            assert_eq!(value, (round < 2).then_some(expected));
        }
    }

    #[test]
    fn conditions_rest_for_a_while() {
        let mut triggers = triggers(Watched::Latency, 5e6, 9);
        let mut woken = vec![0; 20];
        woken[TID] = 7;
        let mut held = Vec::new();
        for time in [0u64, 500, 1100, 1500, 2300] {
            put(&mut triggers, 1, time * MS, kinds::SCHED_WAKEUP, &woken);
            put(
                &mut triggers,
                0,
                (time + 6) * MS,
                kinds::SCHED_SWITCH,
                &switch(7),
            );
            held.extend(triggers.settle(0).map(|_| time));
        }
        assert_eq!(held, [0, 1100, 2300]);
    }

    #[test]
    fn rates_are_those_of_a_second() {
        let mut triggers = triggers(Watched::Rate("syscall_entry_*".into()), 10.0, 9);
        let entry = id(&triggers, "read", false);
        let exit = id(&triggers, "read", true);
        for number in 0..20 {
            put(&mut triggers, 0, number * 101 * MS, entry, &[]);
            put(&mut triggers, 0, number * 101 * MS, exit, &[]);
        }
        assert_eq!(triggers.settle(0), None);
        (0..11).for_each(|number| put(&mut triggers, 0, 10_000 * MS + number, entry, &[]));
        let (_, held) = triggers.settle(0).unwrap();
        assert_eq!(held.value, "11 events in a second");
    }
}
