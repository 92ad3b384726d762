//! Facts about the latest CPU, LWP and user-level threads of a chunk, before they go to the tables of
//! the survey. Most records are about those of the record before, so that they need no table.

use crate::survey::{
    Edges, Ends, Known, LwpSight, Marks, Moment, Sight, Tables, UltKey, join_ends, latest, state_of,
};
use crate::vocabulary::{Step, StepValues, UNKNOWN_ULT, snapshot};

/// User-level threads that are remembered, by the low bits of their ids.
const THREADS: usize = 64;

/// A step of user-level scheduling, with its moment, window and thread.
pub(crate) struct StepPlace<'a> {
    pub(crate) moment: Moment,
    pub(crate) window: u32,
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    pub(crate) values: StepValues<'a>,
}

/// The latest CPU, LWP and user-level threads.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    cpu: Option<RecentCpu>,
    /// Thread id, window and content of an LWP.
    lwp: Option<(i32, u32, Ends<UltKey>)>,
    /// The latest LWP and its process, with the earliest moment at which it was seen.
    seen: Option<(i32, Moment)>,
    threads: Vec<Option<RecentThread>>,
}

/// A CPU in a window.
#[derive(Debug)]
pub(crate) struct RecentCpu {
    cpu: u32,
    window: u32,
    ends: Option<Ends<i32>>,
    pub(crate) edges: Edges,
}

/// A user-level thread in a window.
#[derive(Debug)]
struct RecentThread {
    key: UltKey,
    window: u32,
    marks: Option<Marks>,
    sight: Option<Sight>,
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

impl RecentThread {
    fn keep(self, tables: &mut Tables) {
        if let Some(marks) = self.marks {
            let key = (self.key.0, self.key.1, self.window);
            tables.marks.entry(key).or_default().join(marks);
        }
        if let Some(sight) = self.sight {
            tables.sight(self.key, sight);
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
        let threads = self.threads.drain(..).flatten();
        threads.for_each(|thread| thread.keep(tables));
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

    /// A user-level thread in a window.
    #[inline]
    fn thread(&mut self, tables: &mut Tables, key: UltKey, window: u32) -> &mut RecentThread {
        if self.threads.is_empty() {
            self.threads.resize_with(THREADS, || None);
        }
        let slot = &mut self.threads[key.1 as usize % THREADS];
        let is_known = |own: &RecentThread| own.key == key && own.window == window;
        if let Some(before) = slot.take_if(|own| !is_known(own)) {
            before.keep(tables);
        }
        slot.get_or_insert_with(|| RecentThread {
            key,
            window,
            marks: None,
            sight: None,
        })
    }

    /// Adds a step of an LWP and of a user-level thread.
    pub(crate) fn step(&mut self, tables: &mut Tables, at: &StepPlace<'_>) {
        let StepPlace {
            moment, ref values, ..
        } = *at;
        self.lwp_is_seen(tables, at.tid, at);
        let name = match values.step {
            Step::Create | Step::Name | Step::State => values.name,
            _ => &[],
        };
        let is_thread = !matches!(values.step, Step::LwpBegin | Step::LwpEnd);
        if is_thread {
            self.sees(tables, at, values.ult, name);
        }
        match values.step {
            Step::Switch => {
                self.sees(tables, at, values.next, &[]);
                self.holds(tables, at, values.ult, values.next);
                self.mark(tables, at, values.ult, |marks| {
                    marks.switch_out = Some(moment);
                });
                self.mark(tables, at, values.next, |marks| {
                    marks.switch_in = Some(moment);
                });
            }
            Step::LwpBegin => {
                self.holds(tables, at, 0, 0);
                let runtime = Some((moment, values.name.to_vec()));
                let own = tables.lwp_sights.entry(at.tid).or_default();
                own.join(LwpSight {
                    first: None,
                    runtime,
                });
            }
            Step::LwpEnd => self.holds(tables, at, UNKNOWN_ULT, 0),
            Step::State => self.state(tables, at),
            Step::Create | Step::Wake => self.mark(tables, at, values.ult, |marks| {
                marks.ready = Some(moment);
            }),
            Step::Block => self.blocks(tables, at),
            Step::Exit => self.mark(tables, at, values.ult, |marks| marks.end = Some(moment)),
            Step::Name => {}
        }
    }

    /// An LWP is seen for the first time, perhaps.
    #[inline]
    fn lwp_is_seen(&mut self, tables: &mut Tables, tid: i32, at: &StepPlace<'_>) {
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

    /// A user-level thread is seen.
    fn sees(&mut self, tables: &mut Tables, at: &StepPlace<'_>, ult: u64, name: &[u8]) {
        if ult == 0 || ult == UNKNOWN_ULT {
            return;
        }
        let thread = self.thread(tables, (at.pid, ult), at.window);
        let is_created = at.values.step == Step::Create;
        let sight = thread.sight.get_or_insert_with(|| Sight {
            first: at.moment,
            is_created,
            names: Vec::new(),
        });
        if at.moment < sight.first {
            (sight.first, sight.is_created) = (at.moment, is_created);
        }
        // Which names follow each other is known only when all are.
        if !name.is_empty() {
            sight.names.push((at.moment, name.to_vec()));
        }
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

    #[inline]
    fn mark(
        &mut self,
        tables: &mut Tables,
        at: &StepPlace<'_>,
        ult: u64,
        set: impl FnOnce(&mut Marks),
    ) {
        if ult == 0 || ult == UNKNOWN_ULT {
            return;
        }
        let thread = self.thread(tables, (at.pid, ult), at.window);
        let mut one = Marks::default();
        set(&mut one);
        let own = thread.marks.get_or_insert_with(Marks::default);
        let is_first = own.first.as_ref().is_none_or(|first| at.moment < first.0);
        if is_first {
            let block = one.block.as_ref().map(|(_, reason)| reason.clone());
            own.first = Some((at.moment, block));
        }
        latest(&mut own.block, one.block);
        own.ready = own.ready.max(one.ready);
        own.switch_in = own.switch_in.max(one.switch_in);
        own.switch_out = own.switch_out.max(one.switch_out);
        own.end = own.end.max(one.end);
    }

    fn blocks(&mut self, tables: &mut Tables, at: &StepPlace<'_>) {
        if !tables.reasons.contains(at.values.reason) {
            tables.reasons.insert(at.values.reason.to_vec());
        }
        let block = Some((at.moment, at.values.reason.to_vec()));
        self.mark(tables, at, at.values.ult, |marks| marks.block = block);
    }

    fn state(&mut self, tables: &mut Tables, at: &StepPlace<'_>) {
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
                self.mark(tables, at, values.ult, |marks| {
                    marks.switch_in = Some(moment);
                });
                self.lwp_is_seen(tables, values.lwp, at);
            }
            snapshot::BLOCKED => self.blocks(tables, at),
            _ => self.mark(tables, at, values.ult, |marks| marks.ready = Some(moment)),
        }
    }
}
