//! Following descriptors in the order of time, and adding up what is done with them.
//!
//! What chunks see waits as [`Item`]s until all that came before is known.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Change, Deed, Descriptors, Interned, NO_FD, Text, Texts, descriptor};
use tracebraid_kernel_model::{Action, FdType};

use crate::files::FilesRules;
use crate::files::call::{Call, Entered, Exited, Stretch};
use crate::files::class::Class;
use crate::files::directories::Directories;
use crate::files::item::{Holds, Item, Made};
use crate::files::names::{self, File, FileId, Files};
use crate::files::stats::{ClassStats, Side, Told, Use};
use crate::files::tell::AT_FDCWD;
use crate::kernel::{ByCpu, CallItem, CpuKey, OpenCall, Table, ThreadKey};
use crate::report::View;

/// What is followed, and what was added up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) descriptors: Descriptors<FileId>,
    /// Counts changes of descriptors.
    changes: u32,
    pub(super) directories: Directories,
    pub(super) files: Files,
    pub(super) threads: Table<Thread>,
    /// Place of the thread, and file; `sums` goes with it.
    pub(super) uses: Interned<(u32, FileId)>,
    pub(super) sums: Vec<Use>,
    /// In the order of their ends.
    pub(super) log: Vec<Told>,
    /// What was known of each CPU alone at the last marked time.
    pub(super) stands: ByCpu<Stretch>,
    #[serde(skip)]
    cache: Vec<Cached>,
    /// Where the thread that did something last is.
    #[serde(skip)]
    near: usize,
}

/// What is known of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Thread {
    pub(super) open: OpenCall<Entered, Exited>,
    pub(super) classes: Vec<(Class, ClassStats)>,
}

impl Thread {
    /// True if a call is open whose latency would be told.
    pub(super) fn is_unfinished(&self) -> bool {
        self.open.parked.is_some_and(|entered| entered.class.is_some())
    }
}

/// What a thread's descriptor is, as long as nothing changes.
#[derive(Clone, Copy, Debug, Default)]
struct Cached {
    place: u32,
    fd: i32,
    /// One more than `changes` was; 0 for nothing.
    changes: u32,
    file: FileId,
}

/// Places in the cache.
const CACHED: usize = 256;

/// How long ago it may be asked what a descriptor was, in nanoseconds, if it is another one by now:
/// calls that take longer than that while it changes name a file that is not known.
const HORIZON: i64 = 60_000_000_000;

/// `connect` does not wait, and goes on without the program.
const EINPROGRESS: i64 = -115;

/// What the machine looks things up in.
pub(super) struct Around<'a> {
    pub(super) rules: &'a FilesRules,
    pub(super) texts: &'a mut Texts,
    /// Calls are told to whoever follows descriptors, and not added up.
    pub(super) done: Option<&'a mut Vec<Done>>,
}

/// What whoever follows descriptors is told of threads and their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// A call has ended that used a descriptor that is still the same.
    Used {
        /// Whoever holds it.
        table: ThreadKey,
        fd: i32,
        side: Side,
        bytes: u64,
    },
    /// A thread has read or written so much.
    Moved(ThreadKey, Side, u64),
    /// A thread is made: whoever had its id before is another one.
    Born(ThreadKey),
}

impl Machine {
    /// Does what comes next.
    #[inline(always)]
    pub(super) fn apply(&mut self, around: &mut Around<'_>, cpu: CpuKey, time: i64, item: Item) {
        match item {
            Item::Call(call) => {
                let place = self.place(cpu, call.tid);
                self.call(around, place, &call);
            }
            Item::Enters(tid) => {
                self.thread(cpu, tid).open.play(cpu, time, &CallItem::Enters(tid));
            }
            Item::Arrives(tid, exited) => {
                let arrives = CallItem::Arrives(tid, *exited);
                self.passes(around, cpu, time, &arrives);
            }
            Item::Leaves(tid, entered) => {
                let leaves = CallItem::Leaves(tid, *entered);
                self.passes(around, cpu, time, &leaves);
            }
            Item::Stands(stretch) => *self.stands.get(cpu) = *stretch,
            item => self.change(around, cpu, time, item),
        }
    }

    /// The place of a thread.
    #[inline(always)]
    fn place(&mut self, cpu: CpuKey, tid: i32) -> u32 {
        self.thread(cpu, tid);
        self.near as u32
    }

    #[inline(always)]
    fn thread(&mut self, cpu: CpuKey, tid: i32) -> &mut Thread {
        let trace = cpu.trace;
        self.threads.get_near(ThreadKey { trace, tid }, &mut self.near)
    }

    /// A thread takes a call from one stretch to another.
    fn passes(&mut self, around: &mut Around<'_>, cpu: CpuKey, time: i64, item: &CallItem<Entered, Exited>) {
        let tid = item.tid();
        let Some((entered, exited, cpu)) = self.thread(cpu, tid).open.play(cpu, time, item) else {
            return;
        };
        match around.rules.ended(tid, &entered, &exited) {
            Some(Item::Call(call)) => {
                let place = self.place(cpu, tid);
                self.call(around, place, &call);
            }
            Some(Item::Made(made)) => self.made(around, cpu, &made),
            _ => {}
        }
    }

    /// Something happens to descriptors.
    fn change(&mut self, around: &mut Around<'_>, cpu: CpuKey, time: i64, item: Item) {
        let trace = cpu.trace;
        let key = |tid| ThreadKey { trace, tid };
        match item {
            Item::Made(made) => return self.made(around, cpu, &made),
            Item::Holds(holds) => return self.holds(around, cpu, time, &holds),
            Item::Born(tid) => {
                let thread = self.thread(cpu, tid);
                thread.open.play(cpu, time, &CallItem::Made(tid));
                if let Some(done) = &mut around.done {
                    done.push(Done::Born(key(tid)));
                }
                return;
            }
            Item::TakesOver(tid, old) => {
                let open = std::mem::take(&mut self.thread(cpu, old).open);
                self.thread(cpu, tid).open = open;
                return;
            }
            Item::Context { tid, pid } => {
                if self.descriptors.process(key(tid)).tid == pid {
                    return;
                }
                let member = Act::Member { pid, table: None };
                self.descriptors.act(key(tid), time, member);
            }
            Item::Change(tid, change) => {
                let change = change.with(FileId::default());
                self.descriptors.change(key(tid), time, change);
            }
            Item::Fork(tid, forked) => {
                let from = self.descriptors.process(key(tid));
                self.descriptors.act(key(tid), time, forked.act());
                let process = key(forked.child_pid.unwrap_or(forked.child));
                if process != from {
                    self.directories.fork(from, process);
                }
            }
            Item::Exec(tid) => self.descriptors.act(key(tid), time, Act::Exec),
            Item::End(tid) => self.descriptors.act(key(tid), time, Act::End),
            Item::Member { tid, pid, table } => {
                let member = Act::Member { pid, table };
                self.descriptors.act(key(tid), time, member);
            }
            _ => return,
        }
        self.changed(time);
    }

    fn changed(&mut self, time: i64) {
        self.changes = self.changes.wrapping_add(1);
        self.descriptors.forget(time.saturating_sub(HORIZON));
    }

    fn file(&mut self, around: &mut Around<'_>, file: File) -> FileId {
        self.files.file(around.texts, &around.rules.selection.paths, file)
    }

    fn holds(&mut self, around: &mut Around<'_>, cpu: CpuKey, time: i64, holds: &Holds) {
        let trace = cpu.trace;
        let Holds {
            holder,
            fd,
            text,
            cloexec,
        } = *holds;
        let file = match text.some() {
            Some(text) => names::dumped(around.texts, trace, text),
            None => names::unknown(around.texts, trace),
        };
        let file = self.file(around, file);
        let whose = ThreadKey { trace, tid: 0 };
        let act = Act::Holds(holder);
        self.descriptors.holds(whose, time, act, (fd, file, cloexec));
        self.changed(time);
    }

    /// A call that makes descriptors or changes what they are has ended.
    fn made(&mut self, around: &mut Around<'_>, cpu: CpuKey, made: &Made) {
        let (trace, tid) = (cpu.trace, made.tid);
        let thread = ThreadKey { trace, tid };
        let (open, exit, time) = (&made.entered.open, &made.exited.exit, made.exited.time);
        if open.call.action() == Action::ChangeDirectory {
            return self.goes_to(around, thread, made);
        }
        let file = self.what(around, thread, made);
        if let Some(change) = Change::of(open, exit) {
            self.descriptors.change(thread, time, change.with(file));
            self.changed(time);
        } else if made.entered.class.is_none() && matches!(exit.result, 0 | EINPROGRESS) {
            self.descriptors.rename(thread, open.fds.0, time, file);
            self.changed(time);
        }
        if let Some(call) = made.call.filter(|_| around.done.is_none()) {
            let fd = match open.deed {
                _ if exit.result < 0 => NO_FD,
                Deed::MakePair => exit.pair.0,
                _ => descriptor(exit.result),
            };
            let place = self.place(cpu, tid);
            self.count(around, place, (&call, fd), (Some((file, Side::From)), None));
        }
    }

    /// A process changes its working directory.
    fn goes_to(&mut self, around: &mut Around<'_>, thread: ThreadKey, made: &Made) {
        if made.exited.exit.result != 0 {
            return;
        }
        let open = &made.entered.open;
        let held = self.held_directory(thread, open.fds.0, open.time);
        let path = made.entered.text.some().or(held);
        let process = self.descriptors.process(thread);
        self.directories.change(around.texts, process, path);
    }

    /// The directory to which the name of what a call opens is relative.
    fn directory(&self, thread: ThreadKey, entered: &Entered) -> Option<Text> {
        if entered.dir == AT_FDCWD {
            return self.directories.of(self.descriptors.process(thread));
        }
        self.held_directory(thread, entered.dir, entered.open.time)
    }

    /// The path of the directory that a thread's descriptor was at a time.
    fn held_directory(&self, thread: ThreadKey, fd: i32, time: i64) -> Option<Text> {
        let held = self.descriptors.kind(thread, fd, time).kind;
        let directory = self.files.get(held).filter(|file| file.kind.has_path());
        directory.map(|directory| directory.name)
    }

    /// What a call makes.
    fn what(&mut self, around: &mut Around<'_>, thread: ThreadKey, made: &Made) -> FileId {
        let open = &made.entered.open;
        let mut held = |around: &mut Around<'_>, fd, time| {
            let file = self.descriptors.kind(thread, fd, time).kind;
            self.known(around, thread.trace, file)
        };
        let begin = open.time;
        let (name, kind) = match open.deed {
            Deed::Duplicate | Deed::DuplicateTo => return held(around, open.fds.0, begin),
            Deed::Accept => {
                if made.exited.exit.result < 0 {
                    return held(around, open.fds.0, begin);
                }
                let listener = held(around, open.fds.0, made.exited.time);
                let listener = self.files.get(listener).map_or(FdType::Unknown, |file| file.kind);
                let usual = if listener == FdType::Unknown {
                    FdType::Socket
                } else {
                    listener
                };
                (made.exited.text, made.exited.exit.peer.unwrap_or(usual))
            }
            Deed::Make if made.entered.text != Text::NONE => {
                let directory = self.directory(thread, &made.entered);
                let path = around.texts.get(made.entered.text).unwrap_or_default();
                let kind = match open.kind {
                    FdType::Disk => FdType::of_opened(path.as_bytes()),
                    kind => kind,
                };
                (names::of_path(around.texts, made.entered.text, directory), kind)
            }
            Deed::Make | Deed::MakePair => (Text::NONE, open.kind),
            // A socket is connected.
            _ => {
                let socket = held(around, open.fds.0, begin);
                match (made.entered.text.some(), self.files.get(socket)) {
                    (Some(address), _) => (address, FdType::Network),
                    (None, Some(socket)) => (socket.name, socket.kind),
                    (None, None) => (Text::NONE, FdType::Socket),
                }
            }
        };
        let name = name
            .some()
            .unwrap_or_else(|| around.texts.number(names::of_call(open.call, kind)));
        let trace = thread.trace;
        self.file(around, File { trace, name, kind })
    }

    /// The file, or one that stands for what is not known on that machine.
    fn known(&mut self, around: &mut Around<'_>, trace: u32, file: FileId) -> FileId {
        if file != FileId::default() {
            return file;
        }
        let unknown = names::unknown(around.texts, trace);
        self.file(around, unknown)
    }

    /// What a thread's descriptor was when a call began.
    #[inline(always)]
    fn descriptor(&mut self, around: &mut Around<'_>, place: u32, fd: i32, time: i64) -> FileId {
        if self.cache.is_empty() {
            self.cache.resize(CACHED, Cached::default());
        }
        let at = (place as usize).wrapping_mul(31).wrapping_add(fd as usize) % CACHED;
        let changes = self.changes.wrapping_add(1);
        let cached = self.cache[at];
        if (cached.place, cached.fd, cached.changes) == (place, fd, changes) {
            return cached.file;
        }
        let thread = self.threads.key(place as usize).unwrap_or_default();
        let answer = self.descriptors.kind(thread, fd, time);
        let file = self.known(around, thread.trace, answer.kind);
        // It was another one when the call began, if it has changed since.
        if answer.until.is_none() {
            self.cache[at] = Cached {
                place,
                fd,
                changes,
                file,
            };
        }
        file
    }

    /// A call that makes no descriptors has ended.
    #[inline(always)]
    fn call(&mut self, around: &mut Around<'_>, place: u32, call: &Call) {
        if around.done.is_some() {
            return self.tell(around, place, call);
        }
        let (from, to) = call.fds;
        // What it closes was closed when it began.
        let time = match call.class {
            Class::Close => call.begin.saturating_sub(1),
            _ => call.begin,
        };
        let mut file = |fd, side| {
            let is_of_file = fd != NO_FD || call.class != Class::Sync;
            is_of_file.then(|| (self.descriptor(around, place, fd, time), side))
        };
        let side = match call.class {
            Class::Write => Side::To,
            _ => Side::From,
        };
        let first = file(from, side);
        let second = match call.class {
            Class::Copy => file(to, Side::To),
            _ => None,
        };
        self.count(around, place, (call, from), (first, second));
    }

    /// Tells what a call that makes no descriptors used.
    fn tell(&self, around: &mut Around<'_>, place: u32, call: &Call) {
        let (from, to) = match call.class {
            Class::Close => return,
            Class::Write => (None, Some(call.fds.0)),
            Class::Copy => (Some(call.fds.0), Some(call.fds.1)),
            _ => (Some(call.fds.0), None),
        };
        let Some(done) = &mut around.done else { return };
        let thread = self.threads.key(place as usize).unwrap_or_default();
        let bytes = call.bytes().unwrap_or(0);
        for (fd, side) in [(from, Side::From), (to, Side::To)] {
            let Some(fd) = fd else { continue };
            if bytes > 0 {
                done.push(Done::Moved(thread, side, bytes));
            }
            let holder = self.descriptors.holder(thread, fd, call.begin);
            if let Some(table) = holder.filter(|_| fd != NO_FD) {
                done.push(Done::Used {
                    table,
                    fd,
                    side,
                    bytes,
                });
            }
        }
    }

    /// Adds up a call that is asked for.
    #[inline(always)]
    fn count(
        &mut self,
        around: &mut Around<'_>,
        place: u32,
        (call, fd): (&Call, i32),
        (first, second): (Option<(FileId, Side)>, Option<(FileId, Side)>),
    ) {
        let rules = around.rules;
        if !rules.selection.paths.is_empty() {
            let mut files = first.iter().chain(&second);
            if !files.any(|(file, _)| self.files.shows(*file)) {
                return;
            }
        }
        let told = Told {
            duration: call.duration,
            begin: call.begin,
            call: call.call,
            class: call.class,
            result: call.result,
            fd,
            file: first.map(|(file, _)| file),
            place,
        };
        let top = rules.selection.top();
        let Some(stats) = self.class(place, call.class) else {
            return;
        };
        if let Some(ranges) = &rules.ranges {
            if let Some((_, range)) = ranges.iter().find(|(class, _)| *class == call.class) {
                stats.bins.get_or_insert_default().add(*range, call.duration);
            }
            return;
        }
        stats.durations.add(call.duration);
        stats.errors += u64::from(call.failed());
        stats.bytes += call.bytes().unwrap_or(0);
        stats.top.add(told, top);
        if rules.selection.shows(View::Log) {
            self.log.push(told);
        }
        for (file, side) in first.into_iter().chain(second) {
            if self.files.shows(file) {
                self.of(place, file).add(call, side);
            }
        }
    }

    fn class(&mut self, place: u32, class: Class) -> Option<&mut ClassStats> {
        let classes = &mut self.threads.at(place as usize)?.classes;
        let at = classes.iter().position(|(of, _)| *of == class);
        let at = at.unwrap_or_else(|| {
            classes.push((class, ClassStats::default()));
            classes.len() - 1
        });
        Some(&mut classes[at].1)
    }

    fn of(&mut self, place: u32, file: FileId) -> &mut Use {
        let at = self.uses.number((place, file)) as usize;
        if at >= self.sums.len() {
            self.sums.resize_with(at + 1, Use::default);
        }
        &mut self.sums[at]
    }
}
