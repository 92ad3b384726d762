//! Follows descriptors in time order, and passes each call with its files to an analysis.
//!
//! [`FileItem`]s from chunks wait until all earlier items are known.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Change, Deed, Descriptors, Text, Texts};
use tracebraid_kernel_model::Action;

use crate::call::{Call, Entered, Exited, Parked, Stretch, connects};
use crate::directories::Directories;
use crate::item::{FileItem, Holds, Made};
use crate::names::{self, AT_FDCWD, File, FileId, Files};
use crate::naming::{Naming, Need};
use crate::rules::FileRules;
use tracebraid_follow::{ByCpu, CallItem, CpuKey, OpenCall, Table, ThreadKey};

/// The open call of a thread, if it spans several stretches.
pub type Passing = OpenCall<Parked<FileId>, Exited>;

/// State of descriptors, names and open calls at a time.
///
/// The size is bounded by the number of threads, of descriptors that are open or have changed since
/// the first open call began, and of known files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileMachine {
    /// Descriptors of all processes.
    pub descriptors: Descriptors<FileId>,
    /// Working directories of processes.
    pub directories: Directories,
    /// All known files.
    pub files: Files,
    /// Calls that span several stretches, by thread.
    pub threads: Table<Passing>,
    /// State of each CPU alone at the last marked time.
    pub(crate) stands: ByCpu<Stretch>,
    /// Position of the thread of the last item in `threads`, for a faster lookup.
    #[serde(skip)]
    near: usize,
}

/// True if a call is open whose latency would be counted.
pub fn is_unfinished(open: &Passing) -> bool {
    open.parked
        .is_some_and(|parked| parked.entered.class.is_some())
}

/// Tables for looking up names and rules.
#[derive(Debug)]
pub struct Around<'a> {
    /// Requested files and calls.
    pub rules: &'a FileRules,
    /// Names of files.
    pub texts: &'a mut Texts,
}

/// An analysis of calls on files.
pub trait CallSink {
    /// A call has ended that creates no descriptors. `held` are the files of its descriptors at its
    /// beginning, if the call spans several stretches.
    fn call(
        &mut self,
        machine: &mut FileMachine,
        around: &mut Around<'_>,
        thread: ThreadKey,
        call: &Call,
        held: Option<(FileId, FileId)>,
    );

    /// A call on a trace has ended that creates `file`, or makes a descriptor refer to it.
    fn made(&mut self, machine: &FileMachine, trace: u32, made: &Made, file: FileId);

    /// Descriptors have changed at `time`, in nanoseconds from the origin.
    fn changed(&mut self, machine: &mut FileMachine, time: i64);

    /// A thread is created; an earlier thread with its id was another one.
    fn born(&mut self, thread: ThreadKey) {
        let _ = thread;
    }
}

impl FileMachine {
    /// Plays the next item.
    #[inline(always)]
    pub fn apply<S: CallSink>(
        &mut self,
        sink: &mut S,
        around: &mut Around<'_>,
        cpu: CpuKey,
        time: i64,
        item: FileItem,
    ) {
        match item {
            FileItem::Call(call) => {
                let (trace, tid) = (cpu.trace, call.tid);
                sink.call(self, around, ThreadKey { trace, tid }, &call, None);
            }
            FileItem::Enters(tid) => {
                let enters = CallItem::Enters(tid);
                self.thread(cpu, tid).play(cpu, time, &enters);
            }
            FileItem::Arrives(tid, exited) => self.arrives(sink, around, (cpu, time), tid, *exited),
            FileItem::Leaves(tid, entered) => self.leaves(sink, around, (cpu, time), tid, *entered),
            FileItem::Stands(stretch) => *self.stands.get(cpu) = *stretch,
            item => self.change(sink, around, cpu, time, item),
        }
    }

    /// The open call of a thread, if it spans several stretches.
    #[inline(always)]
    pub fn thread(&mut self, cpu: CpuKey, tid: i32) -> &mut Passing {
        let trace = cpu.trace;
        self.threads
            .get_near(ThreadKey { trace, tid }, &mut self.near)
    }

    /// Ends a call that the thread began in another stretch.
    fn arrives<S: CallSink>(
        &mut self,
        sink: &mut S,
        around: &mut Around<'_>,
        (cpu, time): (CpuKey, i64),
        tid: i32,
        exited: Exited,
    ) {
        self.passes(sink, around, (cpu, time), CallItem::Arrives(tid, exited));
    }

    /// Keeps the call in which a thread leaves its CPU.
    fn leaves<S: CallSink>(
        &mut self,
        sink: &mut S,
        around: &mut Around<'_>,
        (cpu, time): (CpuKey, i64),
        tid: i32,
        entered: Entered,
    ) {
        let trace = cpu.trace;
        let held = self.held(ThreadKey { trace, tid }, &entered);
        let leaves = CallItem::Leaves(tid, Parked { entered, held });
        self.passes(sink, around, (cpu, time), leaves);
    }

    /// Ends a call of another stretch, or carries a call into another stretch. If entry and exit
    /// were recorded in the wrong order, the later of the two items ends the call.
    fn passes<S: CallSink>(
        &mut self,
        sink: &mut S,
        around: &mut Around<'_>,
        (cpu, time): (CpuKey, i64),
        item: CallItem<Parked<FileId>, Exited>,
    ) {
        let tid = item.tid();
        let whole = self.thread(cpu, tid).play(cpu, time, &item);
        let Some((Parked { entered, held }, exited, cpu)) = whole else {
            return;
        };
        match around.rules.ended(tid, &entered, &exited) {
            Some(FileItem::Call(call)) => {
                let (trace, tid) = (cpu.trace, call.tid);
                sink.call(self, around, ThreadKey { trace, tid }, &call, Some(held));
            }
            Some(FileItem::Made(made)) => self.made(sink, around, (cpu, time), &made, held),
            _ => {}
        }
    }

    /// Files of the descriptors of a call at its beginning.
    pub fn held(&self, thread: ThreadKey, entered: &Entered) -> (FileId, FileId) {
        let (first, second) = entered.named();
        let held = |fd| match fd {
            0.. => self.descriptors.kind(thread, fd, entered.named_at()).kind,
            _ => FileId::default(),
        };
        (held(first), held(second))
    }

    /// Plays an item that changes descriptors or threads.
    fn change<S: CallSink>(
        &mut self,
        sink: &mut S,
        around: &mut Around<'_>,
        cpu: CpuKey,
        time: i64,
        item: FileItem,
    ) {
        let trace = cpu.trace;
        let key = |tid| ThreadKey { trace, tid };
        match item {
            FileItem::Made(made) => {
                let held = self.held(key(made.tid), &made.entered);
                return self.made(sink, around, (cpu, time), &made, held);
            }
            FileItem::Holds(holds) => return self.holds(sink, around, cpu, time, &holds),
            FileItem::Born(tid) => {
                self.thread(cpu, tid).play(cpu, time, &CallItem::Made(tid));
                return sink.born(key(tid));
            }
            FileItem::TakesOver(tid, old) => return self.takes_over(cpu, tid, old),
            FileItem::Context { tid, pid } => {
                if self.descriptors.process(key(tid)).tid == pid {
                    return;
                }
                let member = Act::Member { pid, table: None };
                self.descriptors.act(key(tid), time, member);
            }
            FileItem::Change(tid, change) => {
                let change = change.with(FileId::default());
                self.descriptors.change(key(tid), time, change);
            }
            FileItem::Fork(tid, forked) => {
                let from = self.descriptors.process(key(tid));
                self.descriptors.act(key(tid), time, forked.act());
                let process = key(forked.process());
                if process != from {
                    self.directories.fork(from, process);
                }
            }
            FileItem::Exec(tid) => self.descriptors.act(key(tid), time, Act::Exec),
            FileItem::End(tid) => self.descriptors.act(key(tid), time, Act::End),
            FileItem::Member { tid, pid, table } => {
                let member = Act::Member { pid, table };
                self.descriptors.act(key(tid), time, member);
            }
            _ => return,
        }
        sink.changed(self, time);
    }

    /// Transfers the open call of a thread to its new id.
    pub fn takes_over(&mut self, cpu: CpuKey, tid: i32, old: i32) {
        let open = std::mem::take(self.thread(cpu, old));
        *self.thread(cpu, tid) = open;
    }

    /// Whether a thread may get a table of its own when its call ends.
    pub fn is_unclear(&self) -> bool {
        let mut threads = self.threads.entries();
        threads.any(|(_, open)| {
            open.parked
                .is_some_and(|parked| parked.entered.open.deed == Deed::Unshare)
        })
    }

    fn file(&mut self, around: &mut Around<'_>, file: File) -> FileId {
        self.files.file(around.texts, &around.rules.files, file)
    }

    fn holds<S: CallSink>(
        &mut self,
        sink: &mut S,
        around: &mut Around<'_>,
        cpu: CpuKey,
        time: i64,
        holds: &Holds,
    ) {
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
        self.descriptors
            .holds(whose, time, act, (fd, file, cloexec));
        sink.changed(self, time);
    }

    /// Ends a call that creates or changes descriptors.
    fn made<S: CallSink>(
        &mut self,
        sink: &mut S,
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
            sink.changed(self, time);
        } else if connects(open.call, exit.result) {
            self.descriptors.rename(thread, open.fds.0, time, file);
            sink.changed(self, time);
        }
        sink.made(self, trace, made, file);
    }

    /// Changes the working directory of a process, perhaps to the file of a descriptor.
    pub fn goes_to(
        &mut self,
        around: &mut Around<'_>,
        process: ThreadKey,
        made: &Made,
        held: FileId,
    ) {
        if made.exited.exit.result != 0 {
            return;
        }
        let path = made.entered.text.some().or(self.path_of(held));
        self.directories.change(around.texts, process, path);
    }

    /// The directory that the path of a call is relative to; `held` is the file of its directory
    /// descriptor.
    fn directory(&self, process: ThreadKey, entered: &Entered, held: FileId) -> Option<Text> {
        match entered.dir {
            AT_FDCWD => self.directories.of(process),
            _ => self.path_of(held),
        }
    }

    /// Path of a file, if it has one.
    pub fn path_of(&self, held: FileId) -> Option<Text> {
        let directory = self.files.get(held).filter(|file| file.kind.has_path());
        directory.map(|directory| directory.name)
    }

    /// The file that a call creates. `held` is the file of the call's descriptor at its beginning,
    /// `listener` the listening socket.
    pub fn what(
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

    /// The file itself if it is known, else the file that stands for all unknown files of the
    /// trace.
    #[inline]
    pub fn known(&mut self, around: &mut Around<'_>, trace: u32, file: FileId) -> FileId {
        if file != FileId::default() {
            return file;
        }
        let unknown = names::unknown(around.texts, trace);
        self.file(around, unknown)
    }
}
