//! Lifetimes of processes: from creation, or first sight, to the end of the first thread.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Table, ThreadKey};
use tracebraid_kernel_model::Comm;
use tracebraid_language::Datum;

use crate::delimit::kernel::LifeEvent;
use crate::delimit::log::{Log, bound};
use crate::delimit::{Patterns, fitting};

/// Lifetimes of threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Processes {
    threads: Table<Option<Life>>,
    pub(crate) log: Log,
}

/// Lifetime of a thread, which may be the first thread of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Life {
    begin: i64,
    cpu: u32,
    number: u64,
    pid: Option<i32>,
    name: Option<Comm>,
    /// Definitions that match a program that it executed.
    kinds: Vec<usize>,
    /// Time and CPU of its end.
    end: Option<(i64, u32)>,
    /// True if it begins in the window and its end has not been recorded yet.
    is_asked_for: bool,
}

impl Life {
    /// True if its end has been recorded.
    fn is_over(&self) -> bool {
        self.end.is_some() && !self.is_asked_for
    }

    /// Matching definitions, if it is the first thread of a process.
    fn kinds(&self, patterns: &Patterns, tid: i32) -> Vec<usize> {
        if self.pid != Some(tid) || !self.is_asked_for {
            return Vec::new();
        }
        let mut kinds = self.kinds.clone();
        if let Some(name) = &self.name {
            kinds.extend(fitting(patterns, name.text().as_bytes()));
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

impl Processes {
    /// Applies an event of a thread.
    pub(crate) fn play(
        &mut self,
        patterns: &Patterns,
        from: i64,
        at: (CpuKey, i64),
        item: &LifeEvent,
    ) {
        match *item {
            LifeEvent::Call(..) => {}
            LifeEvent::Made(tid, pid, name) => {
                self.close(patterns, at, tid);
                let life = self.born(from, at, tid);
                (life.pid, life.name) = (pid, name);
            }
            LifeEvent::IsThere(tid, pid, name) => {
                let life = self.life(from, at, tid);
                life.pid = pid.or(life.pid);
                life.name = life.name.or(name);
            }
            LifeEvent::Leaves(tid, pid, name) => {
                let life = self.life(from, at, tid);
                if life.is_over() {
                    return;
                }
                life.pid = pid.or(life.pid);
                life.name = name.or(life.name);
                // Its last name is known only now.
                if life.end.is_some() {
                    self.close(patterns, at, tid);
                }
            }
            LifeEvent::Executes(tid, old, name) => {
                if old != tid {
                    *self.slot(at.0, old) = None;
                }
                // The end of the process's first thread was recorded when its id was taken over.
                if self.life(from, at, tid).end.is_some() {
                    self.close(patterns, at, tid);
                    self.born(from, at, tid);
                }
                let life = self.life(from, at, tid);
                life.pid = Some(tid);
                life.name = name.or(life.name);
                if let Some(name) = name {
                    life.kinds.extend(fitting(patterns, name.text().as_bytes()));
                    life.kinds.sort_unstable();
                    life.kinds.dedup();
                }
            }
            LifeEvent::Named(tid, name) => self.life(from, at, tid).name = Some(name),
            LifeEvent::Ends(tid) => {
                let (cpu, time) = at;
                let life = self.life(from, at, tid);
                life.end = life.end.or(Some((time, cpu.cpu)));
            }
        }
    }

    fn slot(&mut self, cpu: CpuKey, tid: i32) -> &mut Option<Life> {
        let trace = cpu.trace;
        self.threads.get(ThreadKey { trace, tid })
    }

    /// The lifetime of a thread; begins now if the thread is new.
    fn life(&mut self, from: i64, at: (CpuKey, i64), tid: i32) -> &mut Life {
        if self.slot(at.0, tid).is_none() {
            return self.born(from, at, tid);
        }
        self.slot(at.0, tid)
            .get_or_insert_with(|| Life::new(from, at, 0))
    }

    fn born(&mut self, from: i64, at: (CpuKey, i64), tid: i32) -> &mut Life {
        let number = self.log.number();
        self.slot(at.0, tid).insert(Life::new(from, at, number))
    }

    /// Closes the lifetime of the thread with that id: the thread ended, or its end was lost.
    fn close(&mut self, patterns: &Patterns, (cpu, told): (CpuKey, i64), tid: i32) {
        let Some(life) = self.slot(cpu, tid) else {
            return;
        };
        let kinds = life.kinds(patterns, tid);
        life.is_asked_for = false;
        let life = life.clone();
        let (trace, tid) = (cpu.trace, i64::from(tid));
        for kind in kinds {
            self.log.begins(kind);
            let Some((end, end_cpu)) = life.end else {
                continue;
            };
            let pid = Datum::Integer(tid.into());
            let begin = bound(life.begin, (trace, Some(life.cpu)), Some(tid), vec![pid]);
            let name = life
                .name
                .map_or(Datum::Missing, |name| Datum::text(name.text().as_bytes()));
            let end = bound(end, (trace, Some(end_cpu)), Some(tid), vec![name]);
            self.log
                .ends_as_told(told, kind, vec![life.number], [begin, end]);
        }
    }

    /// Closes all lifetimes at the end of the traces.
    pub(crate) fn close_all(&mut self, patterns: &Patterns) {
        let keys: Vec<ThreadKey> = self.threads.entries().map(|(key, _)| key).collect();
        for ThreadKey { trace, tid } in keys {
            self.close(patterns, (CpuKey { trace, cpu: 0 }, i64::MAX), tid);
        }
    }

    /// Begins of lifetimes that may belong to requested processes, depending on their last names.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        let lives = self.threads.entries();
        let lives = lives.filter_map(|(key, life)| Some((key, life.as_ref()?)));
        let is_open = |(key, life): &(ThreadKey, &Life)| {
            life.is_asked_for && life.pid.is_none_or(|pid| pid == key.tid)
        };
        lives.filter(is_open).map(|(_, life)| life.begin)
    }
}

impl Life {
    fn new(from: i64, (cpu, time): (CpuKey, i64), number: u64) -> Life {
        Life {
            begin: time,
            cpu: cpu.cpu,
            number,
            pid: None,
            name: None,
            kinds: Vec::new(),
            end: None,
            is_asked_for: from <= time,
        }
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_language::glob::Glob;

    use super::*;

    const CPU: CpuKey = CpuKey { trace: 0, cpu: 1 };

    fn comm(name: &str) -> Option<Comm> {
        Some(Comm::new(name.as_bytes()))
    }

    /// Begins and ends of the processes with a name, and the number of those without an end.
    fn found(name: &str, items: &[(i64, LifeEvent)]) -> (Vec<(i64, i64)>, u64) {
        let patterns = vec![(0, Glob::new(name))];
        let mut processes = Processes::default();
        for (time, item) in items {
            processes.play(&patterns, 0, (CPU, *time), item);
        }
        processes.close_all(&patterns);
        let log = processes.log;
        let times = |(_, period): &(i64, tracebraid_periods::EndedPeriod)| {
            (period.begin.time, period.end.time)
        };
        (
            log.ended.iter().map(times).collect(),
            log.unfinished().next().expect("a definition"),
        )
    }

    #[test]
    fn what_it_executed_and_what_it_is_called_in_the_end_count() {
        let items = [
            (1, LifeEvent::Made(7, Some(7), comm("bash"))),
            (2, LifeEvent::Executes(7, 7, comm("server"))),
            (3, LifeEvent::Leaves(7, None, comm("worker"))),
            // Another thread of the process is not an execution.
            (4, LifeEvent::Made(8, Some(7), comm("worker"))),
            (5, LifeEvent::Ends(8)),
            (6, LifeEvent::Ends(7)),
            (7, LifeEvent::Leaves(7, None, comm("last"))),
            (8, LifeEvent::Leaves(7, None, comm("later"))),
        ];
        for (name, count) in [
            ("server", 1),
            ("last", 1),
            ("*", 1),
            ("bash", 0),
            ("worker", 0),
            ("later", 0),
        ] {
            let expected = vec![(1, 6); count];
            assert_eq!(found(name, &items), (expected, 0), "{name}");
        }
        assert_eq!(found("server", &items[..5]), (vec![], 1));
    }

    #[test]
    fn ids_are_used_again() {
        let items = [
            (1, LifeEvent::IsThere(7, Some(7), comm("a"))),
            (2, LifeEvent::Ends(7)),
            (3, LifeEvent::Made(7, Some(7), comm("a"))),
            (4, LifeEvent::IsThere(7, None, comm("b"))),
            // The end of the thread was lost.
            (5, LifeEvent::Made(7, Some(7), comm("a"))),
            (6, LifeEvent::Ends(7)),
        ];
        assert_eq!(found("a", &items), (vec![(1, 2), (5, 6)], 1));
    }

    #[test]
    fn a_thread_that_executes_takes_over_its_process() {
        let items = [
            (1, LifeEvent::Made(7, Some(7), comm("a"))),
            (2, LifeEvent::Made(8, Some(7), comm("a"))),
            (3, LifeEvent::Ends(7)),
            (4, LifeEvent::Executes(7, 8, comm("b"))),
            (5, LifeEvent::Ends(7)),
        ];
        assert_eq!(found("a", &items), (vec![(1, 3)], 0));
        assert_eq!(found("b", &items), (vec![(4, 5)], 0));
    }
}
