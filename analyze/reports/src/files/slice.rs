//! Plays a slice of time without the state before it.
//!
//! Values of descriptors are relative to those at the start of the slice ([`Sliced`]). A call that
//! began before the slice is late: it is kept until the state before the slice is known, and so are
//! the effects that it may have on descriptors.

use std::sync::Arc;

use tracebraid_descriptors::{Ahead, Change, Dictionaries, Interned, Sliced, Texts, ValueId};
use tracebraid_kernel_model::Action;

use crate::files::FilesRules;
use crate::files::cache::Cache;
use crate::files::slice_steps::{Cell, Late, LateWhat, SliceFile, SliceStep};
use crate::files::tally::Tally;
use tracebraid_files::{
    Call, Entered, Exited, FileId, FileItem, Forked, Holds, Made, Parked, Side, connects, named_at,
};
use tracebraid_follow::{CallItem, CpuKey, LaterCalls, Table, ThreadKey, WholeCall};

/// Facts from the merge with which a slice is played.
pub(super) struct Beginning {
    pub(super) ahead: Ahead,
    pub(super) dictionaries: Arc<Dictionaries>,
    /// Start time of the slice.
    pub(super) time: i64,
}

/// A slice that is being played.
pub(super) struct Slice<'a> {
    rules: &'a FilesRules,
    begin: i64,
    dictionaries: Arc<Dictionaries>,
    pub(super) texts: Texts,
    pub(super) descriptors: Sliced<u32>,
    pub(super) files: Interned<SliceFile>,
    pub(super) threads: Table<Cell>,
    pub(super) tally: Tally,
    pub(super) steps: Vec<SliceStep>,
    /// Number of late steps.
    late: u32,
    /// Process, and number of earlier changes of working directories.
    pub(super) directories: Interned<(ThreadKey, u32)>,
    pub(super) moves: u32,
    pub(super) cache: Cache<FileId>,
    near: usize,
}

impl<'a> Slice<'a> {
    pub(super) fn new(rules: &'a FilesRules, beginning: Beginning) -> Slice<'a> {
        Slice {
            rules,
            begin: beginning.time,
            dictionaries: beginning.dictionaries,
            texts: Texts::default(),
            descriptors: Sliced::new(beginning.ahead),
            files: Interned::default(),
            threads: Table::default(),
            tally: Tally::default(),
            steps: Vec::new(),
            late: 0,
            directories: Interned::default(),
            moves: 0,
            cache: Cache::default(),
            near: 0,
        }
    }

    /// Processes the next item.
    #[inline(always)]
    pub(super) fn apply(&mut self, cpu: CpuKey, time: i64, item: FileItem) {
        match item {
            FileItem::Call(call) if named_at(Some(call.class), call.begin) >= self.begin => {
                self.call(cpu, &call, None);
            }
            FileItem::Enters(tid) => {
                let enters = CallItem::Enters(tid);
                let cell = self.cell(cpu, tid);
                let open = cell.open.get_or_insert_with(|| LaterCalls::since(time));
                open.play(cpu, time, &enters);
            }
            item => self.other(cpu, time, item),
        }
    }

    /// Ends the slice. Descriptors before the time `since` are no longer needed.
    pub(super) fn end(&mut self, since: i64) {
        let late = |step: &SliceStep| match step {
            SliceStep::Late(late) => Some(late.table),
            SliceStep::Fork(..) | SliceStep::Directory(_) => None,
        };
        let mut asked: Vec<ThreadKey> = self.steps.iter().filter_map(late).collect();
        asked.sort_unstable();
        self.descriptors.end(since, &asked);
    }

    #[inline(always)]
    fn cell(&mut self, cpu: CpuKey, tid: i32) -> &mut Cell {
        let trace = cpu.trace;
        self.threads
            .get_near(ThreadKey { trace, tid }, &mut self.near)
    }

    #[inline(never)]
    fn other(&mut self, cpu: CpuKey, time: i64, mut item: FileItem) {
        item.texts(|text| *text = self.dictionaries.known(*text, &mut self.texts));
        let trace = cpu.trace;
        let key = |tid| ThreadKey { trace, tid };
        match item {
            FileItem::Call(call) => {
                self.late((cpu, time), key(call.tid), LateWhat::Call(call), false)
            }
            FileItem::Made(made) => self.made_at(cpu, time, made),
            FileItem::Arrives(tid, exited) => self.arrives(cpu, time, tid, *exited),
            FileItem::Leaves(tid, entered) => self.leaves(cpu, time, tid, *entered),
            FileItem::Holds(holds) => self.holds(trace, time, &holds),
            FileItem::Born(tid) => {
                *self.cell(cpu, tid) = Cell {
                    open: Some(LaterCalls::made(time)),
                    ..Cell::default()
                };
            }
            FileItem::TakesOver(tid, old) => {
                for tid in [tid, old] {
                    self.forget((cpu, time), tid);
                }
                self.late((cpu, time), key(tid), LateWhat::TakesOver(tid, old), false);
            }
            FileItem::Change(tid, change) => {
                if change.act().is_some() {
                    self.descriptors.act(time);
                }
                self.descriptors
                    .change(key(tid), time, change.with(ValueId::default()));
                self.cache.clear();
            }
            FileItem::Fork(tid, forked) => self.fork(key(tid), time, forked),
            FileItem::Context { tid, pid } => {
                let is_news = self.descriptors.process(key(tid)).tid != pid;
                self.descriptors.act(time);
                if is_news {
                    self.cache.clear();
                }
            }
            FileItem::Exec(_) | FileItem::End(_) | FileItem::Member { .. } => {
                self.descriptors.act(time);
                self.cache.clear();
            }
            // Not needed: the report does not use descriptors at a point in time.
            FileItem::Stands(_) | FileItem::Enters(_) => {}
        }
    }

    fn fork(&mut self, parent: ThreadKey, time: i64, forked: Forked) {
        let from = self.descriptors.process(parent);
        self.descriptors.act(time);
        let process = parent.with(forked.process());
        if process != from {
            self.moves += 1;
            self.steps.push(SliceStep::Fork(from, process));
        }
        self.cache.clear();
    }

    fn holds(&mut self, trace: u32, time: i64, holds: &Holds) {
        let file = tracebraid_files::held(&mut self.texts, trace, holds.text);
        let file = self.file(SliceFile::File(file));
        let what = self.value(file);
        if let Some(table) = self.descriptors.act(time) {
            let held = (holds.fd, what, holds.cloexec);
            self.descriptors.holds(table, time, held);
        }
        self.cache.clear();
    }

    /// Adds a step for which the state before the slice must be known. With `changes` it may change
    /// the thread's descriptor table.
    fn late(
        &mut self,
        (cpu, time): (CpuKey, i64),
        thread: ThreadKey,
        what: LateWhat,
        changes: bool,
    ) {
        let late = Late {
            cpu,
            time,
            moment: self.descriptors.moment(),
            process: self.descriptors.process(thread),
            table: self.descriptors.table(thread),
            files: self.files.keys().len(),
            what,
        };
        self.steps.push(SliceStep::Late(Box::new(late)));
        if changes {
            self.descriptors.late(thread, time, self.late);
            self.cache.clear();
        }
        // The step may change the working directory.
        self.moves += 1;
        self.late += 1;
    }

    /// Hands a thread's call over to composing, ahead of a late step; from then on the slice does
    /// not know the call.
    fn forget(&mut self, (cpu, time): (CpuKey, i64), tid: i32) {
        let trace = cpu.trace;
        let thread = ThreadKey { trace, tid };
        let unknown = Cell {
            late: Some(time),
            ..Cell::default()
        };
        let cell = std::mem::replace(self.cell(cpu, tid), unknown);
        if cell.open.is_some() {
            self.late((cpu, time), thread, LateWhat::Known(thread, cell), false);
        }
    }

    fn arrives(&mut self, cpu: CpuKey, time: i64, tid: i32, exited: Exited) {
        let trace = cpu.trace;
        let cell = self.cell(cpu, tid);
        if let Some(open) = &mut cell.open {
            let whole = open.play(cpu, time, &CallItem::Arrives(tid, exited));
            return self.passed(time, tid, whole);
        }
        // A call that was open no longer is.
        *cell = Cell {
            open: Some(LaterCalls::since(exited.time)),
            late: Some(time.max(exited.time)),
        };
        let changes = exited.may_change();
        let what = LateWhat::Arrives(tid, exited);
        self.late((cpu, time), ThreadKey { trace, tid }, what, changes);
    }

    fn leaves(&mut self, cpu: CpuKey, time: i64, tid: i32, entered: Entered) {
        let trace = cpu.trace;
        let thread = ThreadKey { trace, tid };
        let is_before = entered.named_at() < self.begin;
        let held = (!is_before).then(|| self.held(thread, &entered));
        // A pending late exit may be the exit of this call.
        let late = self.cell(cpu, tid).late;
        let Some(held) = held.filter(|_| late < Some(entered.open.time)) else {
            self.forget((cpu, time), tid);
            let changes = entered.may_change();
            let what = LateWhat::Leaves(tid, entered, held);
            return self.late((cpu, time), thread, what, changes);
        };
        let leaves = CallItem::Leaves(tid, Parked { entered, held });
        let cell = self.cell(cpu, tid);
        // Pending exits are from before this call's entry.
        let begin = entered.open.time;
        let open = cell.open.get_or_insert_with(|| LaterCalls::since(begin));
        let whole = open.play(cpu, time, &leaves);
        self.passed(time, tid, whole);
    }

    /// A call that spans several stretches has ended.
    fn passed(&mut self, time: i64, tid: i32, whole: Option<WholeCall<Parked<ValueId>, Exited>>) {
        let Some((Parked { entered, held }, exited, cpu)) = whole else {
            return;
        };
        match self.rules.follow.ended(tid, &entered, &exited) {
            Some(FileItem::Call(call)) => self.call(cpu, &call, Some(held)),
            Some(FileItem::Made(made)) => self.made(cpu, time, &made, held),
            _ => {}
        }
    }

    fn made_at(&mut self, cpu: CpuKey, time: i64, made: Box<Made>) {
        let (trace, tid) = (cpu.trace, made.tid);
        let thread = ThreadKey { trace, tid };
        let (open, exit) = (&made.entered.open, &made.exited.exit);
        let change = Change::of(open, exit);
        if change.and_then(|change| change.act()).is_some() {
            self.descriptors.act(time);
            self.cache.clear();
        }
        if made.entered.named_at() < self.begin {
            let changes = change.is_some() || connects(open.call, exit.result);
            return self.late((cpu, time), thread, LateWhat::Made(made, None), changes);
        }
        let held = self.held(thread, &made.entered);
        self.made(cpu, time, &made, held);
    }

    /// The files of the descriptors that a call uses, at its start.
    fn held(&mut self, thread: ThreadKey, entered: &Entered) -> (ValueId, ValueId) {
        let (first, second) = entered.named();
        let mut held = |fd| match fd {
            0.. => self.descriptors.at(thread, fd, entered.named_at()).value,
            _ => ValueId::default(),
        };
        (held(first), held(second))
    }

    /// A call that makes or changes descriptors has ended.
    fn made(&mut self, cpu: CpuKey, time: i64, made: &Made, held: (ValueId, ValueId)) {
        let (trace, tid) = (cpu.trace, made.tid);
        let thread = ThreadKey { trace, tid };
        let (open, exit) = (&made.entered.open, &made.exited.exit);
        if open.call.action() == Action::ChangeDirectory {
            // The new directory may be relative to the old one.
            let what = LateWhat::Made(Box::new(*made), Some(held));
            return self.late((cpu, time), thread, what, false);
        }
        let file = self.what(thread, made, held.0);
        let value = self.value(file);
        if let Some(change) = Change::of(open, exit) {
            self.descriptors.change(thread, time, change.with(value));
            self.cache.clear();
        } else if connects(open.call, exit.result) {
            self.descriptors.rename(thread, open.fds.0, time, value);
            self.cache.clear();
        }
        if let Some(call) = made.call {
            let place = self.tally.place(thread);
            let used = Some((file, Side::From, true));
            self.tally
                .count(self.rules, place, (&call, made.fd()), (used, None));
        }
    }

    /// A call that makes no descriptors has ended.
    #[inline(always)]
    fn call(&mut self, cpu: CpuKey, call: &Call, held: Option<(ValueId, ValueId)>) {
        let (trace, tid) = (cpu.trace, call.tid);
        let thread = ThreadKey { trace, tid };
        let place = self.tally.place(thread);
        let time = named_at(Some(call.class), call.begin);
        let [first, second] = call.used().map(|used| {
            let (fd, side, is_second) = used?;
            let file = match held {
                Some(held) => self.known(trace, if is_second { held.1 } else { held.0 }),
                None => self.descriptor((place, thread), fd, time),
            };
            Some((file, side, true))
        });
        let of = (call, call.fds.0);
        self.tally.count(self.rules, place, of, (first, second));
    }
}
