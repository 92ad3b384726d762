//! Playing a slice of time without knowledge of what was before it.
//!
//! What descriptors are is known by what they were when the slice began ([`Sliced`]). A call whose beginning is not in the
//! slice is late: it is kept until it is known what came before, and what it may have changed is what it turns out to have been.

use std::sync::Arc;

use tracebraid_descriptors::{
    Ahead, Change, Dictionaries, Interned, Moment, OfBefore, Sliced, Texts, ValueId,
};
use tracebraid_kernel_model::Action;

use crate::files::FilesRules;
use crate::files::cache::Cache;
use crate::files::tally::Tally;
use tracebraid_files::{
    AT_FDCWD, Call, Entered, Exited, File, FileId, Forked, Holds, Item, Made, Naming, Need, Parked, Side,
    connects, named_at,
};
use tracebraid_follow::{CallItem, CpuKey, OpenCall, Table, ThreadKey, WholeCall};

/// A file in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SliceFile {
    /// It is known.
    File(File),
    /// What a descriptor is, of that trace, known or not.
    Held(ValueId, u32),
    /// It is called by what a descriptor is, or by a working directory.
    Named(Naming, Input),
}

/// What must be known to say how a file is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Input {
    /// A descriptor.
    Held(ValueId),
    /// A working directory, by its number among those that are asked for.
    Directory(u32),
}

/// A thread's call that is not of one stretch, in a slice.
pub(super) type Passing = OpenCall<Parked<ValueId>, Exited>;

/// What is known in a slice of a thread's call.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// If it is known whether one is open.
    pub(super) open: Option<Passing>,
    /// How many of the ends of calls that waited may still wait.
    pub(super) waiting: usize,
    /// Up to that time ends of calls may wait that are late.
    late: Option<i64>,
}

/// More than can wait.
const ALL_WAIT: usize = usize::MAX;

/// What composing does, in this order.
#[derive(Debug)]
pub(super) enum Step {
    /// A process is made by another one.
    Fork(ThreadKey, ThreadKey),
    /// The working directory of a process is asked for.
    Directory(ThreadKey),
    Late(Box<Late>),
}

/// Something of which it is not known what it ends.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) cpu: CpuKey,
    pub(super) time: i64,
    pub(super) moment: Moment,
    pub(super) process: ThreadKey,
    pub(super) table: ThreadKey,
    /// Files that were met before.
    pub(super) files: usize,
    pub(super) what: LateWhat,
}

#[derive(Debug)]
pub(super) enum LateWhat {
    Call(Call),
    /// What the descriptors that it names were when it began, if that is in the slice.
    Made(Box<Made>, Option<(ValueId, ValueId)>),
    Arrives(i32, Exited),
    /// What the descriptors that it names were when it began, if that is in the slice.
    Leaves(i32, Entered, Option<(ValueId, ValueId)>),
    TakesOver(i32, i32),
    /// What is known of a thread's call.
    Known(ThreadKey, Cell),
}

/// What a slice is played with.
pub(super) struct Beginning {
    pub(super) ahead: Ahead,
    pub(super) dictionaries: Arc<Dictionaries>,
    /// When it begins.
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
    pub(super) steps: Vec<Step>,
    /// How many of the steps are late.
    late: u32,
    /// Process, and how many changes of working directories were before.
    directories: Interned<(ThreadKey, u32)>,
    moves: u32,
    cache: Cache<FileId>,
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

    /// Does what comes next.
    #[inline(always)]
    pub(super) fn apply(&mut self, cpu: CpuKey, time: i64, item: Item) {
        match item {
            Item::Call(call) if named_at(Some(call.class), call.begin) >= self.begin => {
                self.call(cpu, &call, None);
            }
            Item::Enters(tid) => {
                let enters = CallItem::Enters(tid);
                let cell = self.cell(cpu, tid);
                let open = cell.open.get_or_insert_with(|| {
                    cell.waiting = ALL_WAIT;
                    OpenCall::default()
                });
                open.play(cpu, time, &enters);
            }
            item => self.other(cpu, time, item),
        }
    }

    #[inline(always)]
    fn cell(&mut self, cpu: CpuKey, tid: i32) -> &mut Cell {
        let trace = cpu.trace;
        self.threads.get_near(ThreadKey { trace, tid }, &mut self.near)
    }

    #[inline(never)]
    fn other(&mut self, cpu: CpuKey, time: i64, mut item: Item) {
        item.texts(|text| *text = self.dictionaries.known(*text, &mut self.texts));
        let trace = cpu.trace;
        let key = |tid| ThreadKey { trace, tid };
        match item {
            Item::Call(call) => self.late((cpu, time), key(call.tid), LateWhat::Call(call), false),
            Item::Made(made) => self.made_at(cpu, time, made),
            Item::Arrives(tid, exited) => self.arrives(cpu, time, tid, *exited),
            Item::Leaves(tid, entered) => self.leaves(cpu, time, tid, *entered),
            Item::Holds(holds) => self.holds(trace, time, &holds),
            Item::Born(tid) => {
                let mut open = OpenCall::default();
                open.play(cpu, time, &CallItem::Made(tid));
                let open = Some(open);
                *self.cell(cpu, tid) = Cell {
                    open,
                    ..Cell::default()
                };
            }
            Item::TakesOver(tid, old) => {
                for tid in [tid, old] {
                    self.forget((cpu, time), tid);
                }
                self.late((cpu, time), key(tid), LateWhat::TakesOver(tid, old), false);
            }
            Item::Change(tid, change) => {
                if change.act().is_some() {
                    self.descriptors.act(time);
                }
                self.descriptors
                    .change(key(tid), time, change.with(ValueId::default()));
                self.cache.clear();
            }
            Item::Fork(tid, forked) => self.fork(key(tid), time, forked),
            Item::Context { tid, pid } => {
                let is_news = self.descriptors.process(key(tid)).tid != pid;
                self.descriptors.act(time);
                if is_news {
                    self.cache.clear();
                }
            }
            Item::Exec(_) | Item::End(_) | Item::Member { .. } => {
                self.descriptors.act(time);
                self.cache.clear();
            }
            // Nobody asks how it stood who gets a report.
            Item::Stands(_) | Item::Enters(_) => {}
        }
    }

    fn fork(&mut self, parent: ThreadKey, time: i64, forked: Forked) {
        let from = self.descriptors.process(parent);
        self.descriptors.act(time);
        let process = parent.with(forked.process());
        if process != from {
            self.moves += 1;
            self.steps.push(Step::Fork(from, process));
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

    /// Something is done when it is known what was before the slice; it may change a thread's table.
    fn late(&mut self, (cpu, time): (CpuKey, i64), thread: ThreadKey, what: LateWhat, changes: bool) {
        let late = Late {
            cpu,
            time,
            moment: self.descriptors.moment(),
            process: self.descriptors.process(thread),
            table: self.descriptors.table(thread),
            files: self.files.keys().len(),
            what,
        };
        self.steps.push(Step::Late(Box::new(late)));
        if changes {
            self.descriptors.late(thread, time, self.late);
            self.cache.clear();
        }
        // It may change the working directory.
        self.moves += 1;
        self.late += 1;
    }

    /// What is known of a thread's call is so for something that is late, after which it is not known any more.
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
            cell.waiting = cell.waiting.min(open.room());
            return self.passed(time, tid, whole);
        }
        // Whatever was open is not any more.
        let mut open = OpenCall::default();
        open.play(cpu, exited.time, &CallItem::Enters(tid));
        *cell = Cell {
            open: Some(open),
            waiting: ALL_WAIT,
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
        // An end that waits and is late may be that of the call.
        let late = self.cell(cpu, tid).late;
        let Some(held) = held.filter(|_| late < Some(entered.open.time)) else {
            self.forget((cpu, time), tid);
            let changes = entered.may_change();
            let what = LateWhat::Leaves(tid, entered, held);
            return self.late((cpu, time), thread, what, changes);
        };
        let leaves = CallItem::Leaves(tid, Parked { entered, held });
        let cell = self.cell(cpu, tid);
        let open = cell.open.get_or_insert_with(|| {
            // What waits ended before it began.
            cell.waiting = ALL_WAIT;
            OpenCall::default()
        });
        let whole = open.play(cpu, time, &leaves);
        self.passed(time, tid, whole);
    }

    /// A call that a thread took from one stretch to another has ended.
    fn passed(&mut self, time: i64, tid: i32, whole: Option<WholeCall<Parked<ValueId>, Exited>>) {
        let Some((Parked { entered, held }, exited, cpu)) = whole else {
            return;
        };
        match self.rules.follow.ended(tid, &entered, &exited) {
            Some(Item::Call(call)) => self.call(cpu, &call, Some(held)),
            Some(Item::Made(made)) => self.made(cpu, time, &made, held),
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

    /// What the descriptors that a call names were when it began.
    fn held(&mut self, thread: ThreadKey, entered: &Entered) -> (ValueId, ValueId) {
        let (first, second) = entered.named();
        let mut held = |fd| match fd {
            0.. => self.descriptors.at(thread, fd, entered.named_at()).value,
            _ => ValueId::default(),
        };
        (held(first), held(second))
    }

    /// A call that makes descriptors or changes what they are has ended.
    fn made(&mut self, cpu: CpuKey, time: i64, made: &Made, held: (ValueId, ValueId)) {
        let (trace, tid) = (cpu.trace, made.tid);
        let thread = ThreadKey { trace, tid };
        let (open, exit) = (&made.entered.open, &made.exited.exit);
        if open.call.action() == Action::ChangeDirectory {
            // Where it goes may depend on where it was.
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

    /// What a call makes, where what it names was that when it began.
    fn what(&mut self, thread: ThreadKey, made: &Made, held: ValueId) -> FileId {
        let trace = thread.trace;
        let naming = Naming::new(trace, made);
        let input = match naming.need(made.exited.exit.result) {
            Need::Nothing => None,
            Need::Same => return self.known(trace, held),
            Need::Listener => {
                let table = self.descriptors.table(thread);
                Some(self.descriptors.now(table, made.entered.open.fds.0, None))
            }
            Need::Socket => Some(held),
            Need::Directory => return self.opened(thread, naming, &made.entered, held),
        };
        let Some(input) = input else {
            let file = naming.file(&mut self.texts, None, None);
            return self.file(SliceFile::File(file));
        };
        let socket = self.known(trace, input);
        match self.files.keys().get((socket.0 as usize).wrapping_sub(1)) {
            Some(&SliceFile::File(socket)) => {
                let file = naming.file(&mut self.texts, Some(socket), None);
                self.file(SliceFile::File(file))
            }
            _ => self.file(SliceFile::Named(naming, Input::Held(input))),
        }
    }

    /// What a call opens, by a path that may be relative to a directory.
    fn opened(&mut self, thread: ThreadKey, naming: Naming, entered: &Entered, held: ValueId) -> FileId {
        let path = self.texts.get(naming.text).unwrap_or_default();
        let directory = if path.starts_with('/') {
            None
        } else if entered.dir == AT_FDCWD {
            let number = self.working_directory(self.descriptors.process(thread));
            return self.file(SliceFile::Named(naming, Input::Directory(number)));
        } else {
            match self.descriptors.known(held) {
                Ok(None) => None,
                Ok(Some(file)) => match self.files.keys().get(file as usize) {
                    Some(SliceFile::File(file)) => Some(file.name).filter(|_| file.kind.has_path()),
                    _ => return self.file(SliceFile::Named(naming, Input::Held(held))),
                },
                Err(OfBefore) => return self.file(SliceFile::Named(naming, Input::Held(held))),
            }
        };
        let file = naming.file(&mut self.texts, None, directory);
        self.file(SliceFile::File(file))
    }

    /// The number of the working directory of a process.
    fn working_directory(&mut self, process: ThreadKey) -> u32 {
        let known = self.directories.keys().len();
        let number = self.directories.number((process, self.moves));
        if number as usize == known {
            self.steps.push(Step::Directory(process));
        }
        number
    }

    fn file(&mut self, file: SliceFile) -> FileId {
        FileId(self.files.number(file) + 1)
    }

    /// A file as what a descriptor is.
    fn value(&mut self, file: FileId) -> ValueId {
        match file.0.checked_sub(1) {
            Some(file) => self.descriptors.is(file),
            None => ValueId::default(),
        }
    }

    /// What a descriptor is, or what stands for what is not known.
    fn known(&mut self, trace: u32, held: ValueId) -> FileId {
        match self.descriptors.known(held) {
            Ok(Some(file)) => FileId(file + 1),
            Ok(None) => {
                let unknown = tracebraid_files::unknown(&mut self.texts, trace);
                self.file(SliceFile::File(unknown))
            }
            Err(OfBefore) => self.file(SliceFile::Held(held, trace)),
        }
    }

    /// What a thread's descriptor was when a call began.
    #[inline(always)]
    fn descriptor(&mut self, (place, thread): (u32, ThreadKey), fd: i32, time: i64) -> FileId {
        if let Some(file) = self.cache.find(place, fd) {
            return file;
        }
        let answer = self.descriptors.at(thread, fd, time);
        let file = self.known(thread.trace, answer.value);
        if answer.until.is_none() {
            self.cache.put(place, fd, file);
        }
        file
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
