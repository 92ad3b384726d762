//! Following descriptors in the order of time, and adding up what is done with them.
//!
//! What chunks see waits as [`Item`]s until all that came before is known.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Change, Deed, Descriptors, NO_FD, Text, Texts};
use tracebraid_kernel_model::{Action, Syscall};

use crate::files::FilesRules;
use crate::files::cache::Cache;
use crate::files::call::{Call, Entered, Exited, Parked, Stretch, named_at};
use crate::files::class::Class;
use crate::files::directories::Directories;
use crate::files::item::{Holds, Item, Made};
use crate::files::names::{self, File, FileId, Files};
use crate::files::naming::{Naming, Need};
use crate::files::stats::Side;
use crate::files::tally::{Tally, Used};
use crate::files::tell::AT_FDCWD;
use tracebraid_follow::{ByCpu, CallItem, CpuKey, OpenCall, Table, ThreadKey, WholeCall};

/// A thread's call that is not of one stretch.
pub(super) type Passing = OpenCall<Parked<FileId>, Exited>;

/// What is followed, and what was added up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) descriptors: Descriptors<FileId>,
    pub(super) directories: Directories,
    pub(super) files: Files,
    pub(super) threads: Table<Passing>,
    pub(super) tally: Tally,
    /// What was known of each CPU alone at the last marked time.
    pub(super) stands: ByCpu<Stretch>,
    #[serde(skip)]
    cache: Cache<FileId>,
    /// Where the thread that did something last is.
    #[serde(skip)]
    near: usize,
}

/// True if a call is open whose latency would be told.
pub(super) fn is_unfinished(open: &Passing) -> bool {
    open.parked.is_some_and(|parked| parked.entered.class.is_some())
}

/// How long ago it may be asked what a descriptor was, in nanoseconds, if it is another one by now, for whoever follows
/// descriptors: calls that take longer than that while it changes name a file that is not known.
const HORIZON: i64 = 60_000_000_000;

/// `connect` does not wait, and goes on without the program.
const EINPROGRESS: i64 = -115;

/// Whether a call with that result connects a socket.
pub(super) fn connects(call: Syscall, result: i64) -> bool {
    call.action() == Action::Connect && matches!(result, 0 | EINPROGRESS)
}

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
            Item::Call(call) => self.call(around, cpu, &call, None),
            Item::Enters(tid) => {
                let enters = CallItem::Enters(tid);
                self.thread(cpu, tid).play(cpu, time, &enters);
            }
            Item::Arrives(tid, exited) => self.arrives(around, (cpu, time), tid, *exited),
            Item::Leaves(tid, entered) => self.leaves(around, (cpu, time), tid, *entered),
            Item::Stands(stretch) => *self.stands.get(cpu) = *stretch,
            item => self.change(around, cpu, time, item),
        }
    }

    #[inline(always)]
    pub(super) fn thread(&mut self, cpu: CpuKey, tid: i32) -> &mut Passing {
        let trace = cpu.trace;
        self.threads.get_near(ThreadKey { trace, tid }, &mut self.near)
    }

    /// A thread ends a call that it began in another stretch.
    fn arrives(&mut self, around: &mut Around<'_>, (cpu, time): (CpuKey, i64), tid: i32, exited: Exited) {
        let arrives = CallItem::Arrives(tid, exited);
        let whole = self.thread(cpu, tid).play(cpu, time, &arrives);
        self.passed(around, time, tid, whole);
    }

    /// A thread leaves in a call.
    fn leaves(&mut self, around: &mut Around<'_>, (cpu, time): (CpuKey, i64), tid: i32, entered: Entered) {
        let trace = cpu.trace;
        let held = self.held(ThreadKey { trace, tid }, &entered);
        let leaves = CallItem::Leaves(tid, Parked { entered, held });
        let whole = self.thread(cpu, tid).play(cpu, time, &leaves);
        self.passed(around, time, tid, whole);
    }

    /// A call that a thread took from one stretch to another has ended.
    fn passed(
        &mut self,
        around: &mut Around<'_>,
        time: i64,
        tid: i32,
        whole: Option<WholeCall<Parked<FileId>, Exited>>,
    ) {
        let Some((Parked { entered, held }, exited, cpu)) = whole else {
            return;
        };
        match around.rules.ended(tid, &entered, &exited) {
            Some(Item::Call(call)) => self.call(around, cpu, &call, Some(held)),
            Some(Item::Made(made)) => self.made(around, (cpu, time), &made, held),
            _ => {}
        }
    }

    /// What the descriptors that a call names were when it began.
    pub(super) fn held(&self, thread: ThreadKey, entered: &Entered) -> (FileId, FileId) {
        let (first, second) = entered.named();
        let held = |fd| match fd {
            0.. => self.descriptors.kind(thread, fd, entered.named_at()).kind,
            _ => FileId::default(),
        };
        (held(first), held(second))
    }

    /// Something happens to descriptors.
    fn change(&mut self, around: &mut Around<'_>, cpu: CpuKey, time: i64, item: Item) {
        let trace = cpu.trace;
        let key = |tid| ThreadKey { trace, tid };
        match item {
            Item::Made(made) => {
                let held = self.held(key(made.tid), &made.entered);
                return self.made(around, (cpu, time), &made, held);
            }
            Item::Holds(holds) => return self.holds(around, cpu, time, &holds),
            Item::Born(tid) => {
                self.thread(cpu, tid).play(cpu, time, &CallItem::Made(tid));
                if let Some(done) = &mut around.done {
                    done.push(Done::Born(key(tid)));
                }
                return;
            }
            Item::TakesOver(tid, old) => return self.takes_over(cpu, tid, old),
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
                let process = key(forked.process());
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
        self.changed(around, time);
    }

    /// The call of a thread with another id is that of the thread from now on.
    pub(super) fn takes_over(&mut self, cpu: CpuKey, tid: i32, old: i32) {
        let open = std::mem::take(self.thread(cpu, old));
        *self.thread(cpu, tid) = open;
    }

    /// Whether a thread may get a table of its own when its call ends.
    pub(super) fn is_unclear(&self) -> bool {
        let mut threads = self.threads.entries();
        threads.any(|(_, open)| {
            open.parked
                .is_some_and(|parked| parked.entered.open.deed == Deed::Unshare)
        })
    }

    /// A slice of time has passed.
    pub(super) fn changed_by_slice(&mut self) {
        self.cache.clear();
    }

    fn changed(&mut self, around: &Around<'_>, time: i64) {
        self.cache.clear();
        if around.done.is_some() {
            self.descriptors.forget(time.saturating_sub(HORIZON));
        }
    }

    fn file(&mut self, around: &mut Around<'_>, file: File) -> FileId {
        self.files.file(around.texts, &around.rules.options.paths, file)
    }

    fn holds(&mut self, around: &mut Around<'_>, cpu: CpuKey, time: i64, holds: &Holds) {
        let trace = cpu.trace;
        let Holds {
            holder,
            fd,
            text,
            cloexec,
        } = *holds;
        let file = names::held(around.texts, trace, text);
        let file = self.file(around, file);
        let whose = ThreadKey { trace, tid: 0 };
        let act = Act::Holds(holder);
        self.descriptors.holds(whose, time, act, (fd, file, cloexec));
        self.changed(around, time);
    }

    /// A call that makes descriptors or changes what they are has ended.
    fn made(
        &mut self,
        around: &mut Around<'_>,
        (cpu, time): (CpuKey, i64),
        made: &Made,
        held: (FileId, FileId),
    ) {
        let (trace, tid) = (cpu.trace, made.tid);
        let thread = ThreadKey { trace, tid };
        let (open, exit) = (&made.entered.open, &made.exited.exit);
        let process = self.descriptors.process(thread);
        if open.call.action() == Action::ChangeDirectory {
            return self.goes_to(around, process, made, held.0);
        }
        let listener = match open.deed {
            Deed::Accept => self.descriptors.now(thread, open.fds.0),
            _ => FileId::default(),
        };
        let file = self.what(around, process, made, (held.0, listener));
        if let Some(change) = Change::of(open, exit) {
            self.descriptors.change(thread, time, change.with(file));
            self.changed(around, time);
        } else if connects(open.call, exit.result) {
            self.descriptors.rename(thread, open.fds.0, time, file);
            self.changed(around, time);
        }
        if around.done.is_none() {
            self.count_made(around, trace, made, file);
        }
    }

    /// Adds up a call that makes descriptors.
    pub(super) fn count_made(&mut self, around: &mut Around<'_>, trace: u32, made: &Made, file: FileId) {
        let Some(call) = made.call else { return };
        let place = self.tally.place(ThreadKey { trace, tid: call.tid });
        let used = (file, Side::From, self.files.shows(file));
        let of = (&call, made.fd());
        self.tally.count(around.rules, place, of, (Some(used), None));
    }

    /// A process changes its working directory, perhaps to what a descriptor was.
    pub(super) fn goes_to(&mut self, around: &mut Around<'_>, process: ThreadKey, made: &Made, held: FileId) {
        if made.exited.exit.result != 0 {
            return;
        }
        let path = made.entered.text.some().or(self.path_of(held));
        self.directories.change(around.texts, process, path);
    }

    /// The directory to which the name of what a call opens is relative, where a descriptor was that.
    fn directory(&self, process: ThreadKey, entered: &Entered, held: FileId) -> Option<Text> {
        match entered.dir {
            AT_FDCWD => self.directories.of(process),
            _ => self.path_of(held),
        }
    }

    /// The path of what a descriptor is.
    pub(super) fn path_of(&self, held: FileId) -> Option<Text> {
        let directory = self.files.get(held).filter(|file| file.kind.has_path());
        directory.map(|directory| directory.name)
    }

    /// What a call makes, where what it names was that when it began, and the listening socket is that.
    pub(super) fn what(
        &mut self,
        around: &mut Around<'_>,
        process: ThreadKey,
        made: &Made,
        (held, listener): (FileId, FileId),
    ) -> FileId {
        let trace = process.trace;
        let naming = Naming::new(trace, made);
        let (mut socket, mut directory) = (None, None);
        match naming.need(made.exited.exit.result) {
            Need::Nothing => {}
            Need::Same => return self.known(around, trace, held),
            Need::Listener => socket = Some(self.known(around, trace, listener)),
            Need::Socket => socket = Some(self.known(around, trace, held)),
            Need::Directory => directory = self.directory(process, &made.entered, held),
        }
        let socket = socket.and_then(|socket| self.files.get(socket));
        let file = naming.file(around.texts, socket, directory);
        self.file(around, file)
    }

    /// The file, or one that stands for what is not known on that machine.
    pub(super) fn known(&mut self, around: &mut Around<'_>, trace: u32, file: FileId) -> FileId {
        if file != FileId::default() {
            return file;
        }
        let unknown = names::unknown(around.texts, trace);
        self.file(around, unknown)
    }

    /// What a thread's descriptor was when a call began.
    #[inline(always)]
    fn descriptor(
        &mut self,
        around: &mut Around<'_>,
        (place, thread): (u32, ThreadKey),
        fd: i32,
        time: i64,
    ) -> FileId {
        if let Some(file) = self.cache.find(place, fd) {
            return file;
        }
        let answer = self.descriptors.kind(thread, fd, time);
        let file = self.known(around, thread.trace, answer.kind);
        // It was another one when the call began, if it has changed since.
        if answer.until.is_none() {
            self.cache.put(place, fd, file);
        }
        file
    }

    /// A call that makes no descriptors has ended, on that CPU; what its descriptors were when it began may be known.
    #[inline(always)]
    pub(super) fn call(
        &mut self,
        around: &mut Around<'_>,
        cpu: CpuKey,
        call: &Call,
        held: Option<(FileId, FileId)>,
    ) {
        let (trace, tid) = (cpu.trace, call.tid);
        let thread = ThreadKey { trace, tid };
        if around.done.is_some() {
            return self.tell(around, thread, call);
        }
        let place = self.tally.place(thread);
        let time = named_at(Some(call.class), call.begin);
        let used = call.used().map(|used| {
            let (fd, side, is_second) = used?;
            let file = match held {
                Some(held) => {
                    let held = if is_second { held.1 } else { held.0 };
                    self.known(around, trace, held)
                }
                None => self.descriptor(around, (place, thread), fd, time),
            };
            Some((file, side, self.files.shows(file)))
        });
        let [first, second]: [Option<Used>; 2] = used;
        let of = (call, call.fds.0);
        self.tally.count(around.rules, place, of, (first, second));
    }

    /// Tells what a call that makes no descriptors used.
    fn tell(&self, around: &mut Around<'_>, thread: ThreadKey, call: &Call) {
        let (from, to) = match call.class {
            Class::Close => return,
            Class::Write => (None, Some(call.fds.0)),
            Class::Copy => (Some(call.fds.0), Some(call.fds.1)),
            _ => (Some(call.fds.0), None),
        };
        let Some(done) = &mut around.done else { return };
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
}
