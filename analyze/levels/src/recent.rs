//! Facts about the latest CPU and LWP of a chunk, before they go to the tables of the survey. Most
//! records are about those of the record before, so that they need no table.

use crate::survey::{Edges, Ends, Known, LwpSight, Moment, Tables, UltKey, join_ends, state_of};
use crate::ult_facts::Marks;
use crate::vocabulary::{Step, StepValues, UNKNOWN_ULT, snapshot};

/// A step of user-level scheduling, with its moment, window and thread.
pub(crate) struct StepPlace<'a> {
    pub(crate) moment: Moment,
    pub(crate) window: u32,
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    pub(crate) values: StepValues<'a>,
}

/// The latest CPU and LWP.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    cpu: Option<RecentCpu>,
    /// Thread id, window and content of an LWP.
    lwp: Option<(i32, u32, Ends<UltKey>)>,
    /// The latest LWP and its process, with the earliest moment at which it was seen.
    seen: Option<(i32, Moment)>,
}

/// A CPU in a window.
#[derive(Debug)]
pub(crate) struct RecentCpu {
    cpu: u32,
    window: u32,
    ends: Option<Ends<i32>>,
    pub(crate) edges: Edges,
}

impl RecentCpu {
    pub(crate) fn switched(&mut self, moment: Moment, ends: Ends<i32>) {
        match &mut self.ends {
            Some(own) => own.join(ends),
            None => self.ends = Some(ends),
        }
        self.edges.end(moment);
    }

    fn keep(self, tables: &mut Tables) {
        let key = (self.cpu, self.window);
        if let Some(ends) = self.ends {
            join_ends(&mut tables.cpus, key, ends);
        }
        if self.edges != Edges::default() {
            tables.edges.entry(key).or_default().join(self.edges);
        }
    }
}

impl Recent {
    /// Puts all facts into the tables.
    pub(crate) fn keep(&mut self, tables: &mut Tables) {
        if let Some(cpu) = self.cpu.take() {
            cpu.keep(tables);
        }
        self.keep_lwp(tables);
        self.seen = None;
    }

    fn keep_lwp(&mut self, tables: &mut Tables) {
        if let Some((tid, window, ends)) = self.lwp.take() {
            join_ends(&mut tables.lwps, (tid, window), ends);
        }
    }

    /// A CPU in a window.
    #[inline]
    pub(crate) fn cpu(&mut self, tables: &mut Tables, cpu: u32, window: u32) -> &mut RecentCpu {
        let is_known = |own: &RecentCpu| own.cpu == cpu && own.window == window;
        if let Some(before) = self.cpu.take_if(|own| !is_known(own)) {
            before.keep(tables);
        }
        self.cpu.get_or_insert_with(|| RecentCpu {
            cpu,
            window,
            ends: None,
            edges: Edges::default(),
        })
    }

    /// Adds a step of an LWP and of a user-level thread.
    pub(crate) fn step(&mut self, tables: &mut Tables, at: &StepPlace<'_>) {
        let StepPlace {
            moment, ref values, ..
        } = *at;
        self.see_lwp(tables, at.tid, at);
        if values.step == Step::LwpBegin {
            self.holds(tables, at, 0, 0);
            let runtime = Some((moment, values.name.to_vec()));
            let own = tables.lwp_sights.entry(at.tid).or_default();
            own.join(LwpSight {
                first: None,
                runtime,
            });
            return;
        }
        if values.step == Step::LwpEnd {
            self.holds(tables, at, UNKNOWN_ULT, 0);
            return;
        }
        let thread = sees(tables, at, values.ult);
        match values.step {
            Step::Switch => {
                self.holds(tables, at, values.ult, values.next);
                mark(tables, at, thread, |marks| {
                    marks.switch_out = marks.switch_out.max(moment);
                });
                let next = sees(tables, at, values.next);
                mark(tables, at, next, |marks| {
                    marks.switch_in = marks.switch_in.max(moment);
                });
            }
            Step::State => self.state(tables, at, thread),
            Step::Create | Step::Wake => mark_ready(tables, at, thread),
            Step::Block => blocks(tables, at, thread),
            Step::Exit => mark(tables, at, thread, |marks| {
                marks.end = marks.end.max(moment);
            }),
            Step::Name | Step::LwpBegin | Step::LwpEnd => {}
        }
        if let (Step::Create | Step::Name | Step::State, Some(thread)) = (values.step, thread)
            && !values.name.is_empty()
        {
            tables.ults().add_name(thread, moment, values.name);
        }
    }

    /// An LWP is seen for the first time, perhaps.
    #[inline]
    fn see_lwp(&mut self, tables: &mut Tables, tid: i32, at: &StepPlace<'_>) {
        if self
            .seen
            .is_some_and(|(seen, moment)| seen == tid && moment <= at.moment)
        {
            return;
        }
        self.seen = Some((tid, at.moment));
        let own = tables.lwp_sights.entry(tid).or_default();
        own.join(LwpSight {
            first: Some((at.moment, at.pid)),
            runtime: None,
        });
    }

    /// The LWP holds `before` before this step, and `after` from then on.
    fn holds(&mut self, tables: &mut Tables, at: &StepPlace<'_>, before: u64, after: u64) {
        let known = |ult: u64| match ult {
            UNKNOWN_ULT => Known::Lost,
            ult => Known::Is((at.pid, ult)),
        };
        let new = state_of(at.moment, known(before), known(after));
        match &mut self.lwp {
            Some((tid, window, ends)) if (*tid, *window) == (at.tid, at.window) => ends.join(new),
            _ => {
                self.keep_lwp(tables);
                self.lwp = Some((at.tid, at.window, new));
            }
        }
    }

    fn state(&mut self, tables: &mut Tables, at: &StepPlace<'_>, thread: Option<u32>) {
        let StepPlace {
            moment, ref values, ..
        } = *at;
        match values.state {
            snapshot::RUNNING | snapshot::IN_CALL if values.lwp > 0 => {
                let on = StepPlace {
                    tid: values.lwp,
                    values: *values,
                    ..*at
                };
                self.holds(tables, &on, values.ult, values.ult);
                mark(tables, at, thread, |marks| {
                    marks.switch_in = marks.switch_in.max(moment);
                });
                self.see_lwp(tables, values.lwp, at);
            }
            snapshot::BLOCKED => blocks(tables, at, thread),
            _ => mark_ready(tables, at, thread),
        }
    }
}

/// Index in the facts of a user-level thread that a step mentions; `None` for none or unknown.
#[inline]
fn sees(tables: &mut Tables, at: &StepPlace<'_>, ult: u64) -> Option<u32> {
    if ult == 0 || ult == UNKNOWN_ULT {
        return None;
    }
    let is_created = at.values.step == Step::Create;
    Some(tables.ults().sees((at.pid, ult), at.moment, is_created))
}

#[inline]
fn mark(
    tables: &mut Tables,
    at: &StepPlace<'_>,
    thread: Option<u32>,
    set: impl FnOnce(&mut Marks),
) {
    if let Some(thread) = thread
        && let Some(marks) = tables.ults().marks(thread, at.window, at.moment)
    {
        set(marks);
    }
}

fn mark_ready(tables: &mut Tables, at: &StepPlace<'_>, thread: Option<u32>) {
    mark(tables, at, thread, |marks| {
        marks.ready = marks.ready.max(at.moment);
    });
}

fn blocks(tables: &mut Tables, at: &StepPlace<'_>, thread: Option<u32>) {
    let reason = tables.ults().reasons.number(at.values.reason);
    mark(tables, at, thread, |marks| {
        marks.set_block(at.moment, reason);
    });
}
