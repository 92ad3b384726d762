//! Appends a played slice of time to the state before it.

use tracebraid_descriptors::{Change, Deed, LateChange, Resolved, Text, Texts, ValueId};

use crate::files::counter::Counter;
use crate::files::slice::Slice;
use crate::files::slice_steps::{Cell, Input, Late, LateWhat, SliceFile, SliceStep};
use crate::files::unmerged::{Unmerged, numbered};
use crate::files::{FilesRules, Played};
use tracebraid_files::{
    Around, Call, CallSink, Entered, Exited, File, FileId, FileItem, FileMachine, Made, Naming,
    Need, Parked, connects,
};
use tracebraid_follow::{CallItem, CpuKey, ThreadKey};

/// The outcome of a late call.
type Outcome = LateChange<FileId>;

/// A slice that is being appended to the state before it.
struct Composer<'a, 's> {
    rules: &'a FilesRules,
    machine: &'a mut FileMachine,
    texts: &'a mut Texts,
    counter: Counter<'a>,
    slice: Slice<'s>,
    known: Resolved<FileId>,
    /// By number in the slice.
    files: Vec<FileId>,
    directories: Vec<Option<Text>>,
    outcomes: Vec<Outcome>,
}

/// Appends a slice to the state before it. Descriptors before the time `since` are no longer
/// needed. Returns the sums to add.
pub(super) fn compose(
    rules: &FilesRules,
    played: &mut Played,
    mut slice: Slice<'_>,
    since: i64,
) -> Unmerged {
    let steps = std::mem::take(&mut slice.steps);
    let Played {
        machine,
        texts,
        tally,
        cache,
    } = played;
    let mut composer = Composer {
        rules,
        machine,
        texts,
        counter: Counter {
            rules,
            tally,
            cache,
        },
        slice,
        known: Resolved::default(),
        files: Vec::new(),
        directories: Vec::new(),
        outcomes: Vec::new(),
    };
    for step in steps {
        composer.step(step);
    }
    composer.end(since)
}

impl Composer<'_, '_> {
    fn step(&mut self, step: SliceStep) {
        match step {
            SliceStep::Fork(from, process) => {
                if !self.machine.directories.is_empty() {
                    self.machine.directories.fork(from, process);
                }
            }
            SliceStep::Directory(process) => {
                let directory = self.machine.directories.of(process);
                self.directories.push(directory);
            }
            SliceStep::Late(late) => {
                self.resolve(late.files);
                let outcome = self.late(*late);
                self.outcomes.push(outcome);
            }
        }
    }

    /// Resolves the slice's first `files` files, in the order of their first use.
    fn resolve(&mut self, files: usize) {
        while self.files.len() < files {
            let Some(&file) = self.slice.files.keys().get(self.files.len()) else {
                break;
            };
            let file = self.file(file);
            self.files.push(file);
        }
    }

    /// The file that a value stands for.
    fn held(&mut self, value: ValueId) -> FileId {
        let (files, outcomes) = (&self.files, &self.outcomes);
        let what = |file: u32| files.get(file as usize).copied().unwrap_or_default();
        let of_late = |call: u32, fd, before| match outcomes.get(call as usize) {
            Some(outcome) => outcome.of(fd, before),
            None => before,
        };
        let start = &self.machine.descriptors;
        let sliced = &self.slice.descriptors;
        sliced.resolve_one(&mut self.known, value, start, &what, &of_late)
    }

    /// The file of a descriptor in a late call's table at the end of the call.
    fn now(&mut self, late: &LateEnd, fd: i32) -> FileId {
        let value = self
            .slice
            .descriptors
            .now(late.table, fd, Some(late.moment));
        self.held(value)
    }

    /// The number of a text of the slice among all texts.
    fn text(&mut self, text: Text) -> Text {
        match self.slice.texts.get(text) {
            Some(text) => self.texts.number(text),
            None => Text::NONE,
        }
    }

    fn around(&mut self) -> (&mut FileMachine, Around<'_>) {
        let around = Around {
            rules: &self.rules.follow,
            texts: self.texts,
        };
        (self.machine, around)
    }

    /// Counts a call that makes no descriptors.
    fn count(&mut self, trace: u32, call: &Call, held: (FileId, FileId)) {
        let mut around = Around {
            rules: &self.rules.follow,
            texts: self.texts,
        };
        let thread = ThreadKey {
            trace,
            tid: call.tid,
        };
        self.counter
            .call(self.machine, &mut around, thread, call, Some(held));
    }

    /// The number of a file of the slice among all files.
    fn file(&mut self, file: SliceFile) -> FileId {
        let file = match file {
            SliceFile::File(file) => File {
                name: self.text(file.name),
                ..file
            },
            SliceFile::Held(value, trace) => {
                let held = self.held(value);
                let (machine, mut around) = self.around();
                return machine.known(&mut around, trace, held);
            }
            SliceFile::Named(naming, input) => self.named(naming, input),
        };
        let choice = &self.rules.follow.files;
        self.machine.files.file(self.texts, choice, file)
    }

    fn named(&mut self, mut naming: Naming, input: Input) -> File {
        naming.text = self.text(naming.text);
        naming.peer_text = self.text(naming.peer_text);
        let (mut socket, directory) = match input {
            Input::Directory(number) => {
                let directory = self.directories.get(number as usize);
                (None, directory.copied().flatten())
            }
            Input::Held(value) => {
                let held = self.held(value);
                (self.machine.files.get(held), self.machine.path_of(held))
            }
        };
        // An unknown file has no name that matters here, but a type.
        if naming.need(0) != Need::Directory && socket.is_none() {
            let trace = naming.trace;
            socket = Some(tracebraid_files::unknown(self.texts, trace));
        }
        naming.file(self.texts, socket, directory)
    }

    /// Processes a step that depended on the state before the slice.
    fn late(&mut self, late: Late) -> Outcome {
        let Late {
            cpu,
            time,
            moment,
            process,
            table,
            what,
            ..
        } = late;
        let end = LateEnd {
            moment,
            process,
            table,
        };
        match what {
            LateWhat::Call(call) => {
                let at = tracebraid_files::named_at(Some(call.class), call.begin);
                let (trace, tid) = (cpu.trace, call.tid);
                let thread = ThreadKey { trace, tid };
                let held = |fd| self.machine.descriptors.kind(thread, fd, at).kind;
                let held = (held(call.fds.0), held(call.fds.1));
                self.count(trace, &call, held);
                LateChange::Nothing
            }
            LateWhat::Made(mut made, held) => {
                made.entered.text = self.text(made.entered.text);
                made.exited.text = self.text(made.exited.text);
                let (trace, tid) = (cpu.trace, made.tid);
                let held = self.held_at_entry(ThreadKey { trace, tid }, &made.entered, held);
                self.made(&end, cpu, &made, held)
            }
            LateWhat::Arrives(tid, mut exited) => {
                exited.text = self.text(exited.text);
                let arrives = CallItem::Arrives(tid, exited);
                let whole = self.machine.thread(cpu, tid).play(cpu, time, &arrives);
                whole.map_or(LateChange::Nothing, |whole| self.whole(&end, tid, whole))
            }
            LateWhat::Leaves(tid, mut entered, held) => {
                entered.text = self.text(entered.text);
                let trace = cpu.trace;
                let held = self.held_at_entry(ThreadKey { trace, tid }, &entered, held);
                let leaves = CallItem::Leaves(tid, Parked { entered, held });
                let whole = self.machine.thread(cpu, tid).play(cpu, time, &leaves);
                whole.map_or(LateChange::Nothing, |whole| self.whole(&end, tid, whole))
            }
            LateWhat::TakesOver(tid, old) => {
                self.machine.takes_over(cpu, tid, old);
                LateChange::Nothing
            }
            LateWhat::Known(thread, cell) => {
                self.install(thread, cell);
                LateChange::Nothing
            }
        }
    }

    /// Files of the descriptors that a call uses, at its entry. `held` is set if the entry is in
    /// the slice.
    fn held_at_entry(
        &mut self,
        thread: ThreadKey,
        entered: &Entered,
        held: Option<(ValueId, ValueId)>,
    ) -> (FileId, FileId) {
        match held {
            Some((first, second)) => (self.held(first), self.held(second)),
            None => self.machine.held(thread, entered),
        }
    }

    fn whole(&mut self, end: &LateEnd, tid: i32, whole: Whole) -> Outcome {
        let (Parked { entered, held }, exited, cpu) = whole;
        match self.rules.follow.ended(tid, &entered, &exited) {
            Some(FileItem::Call(call)) => {
                self.count(cpu.trace, &call, held);
                LateChange::Nothing
            }
            Some(FileItem::Made(made)) => self.made(end, cpu, &made, held),
            _ => LateChange::Nothing,
        }
    }

    fn made(&mut self, end: &LateEnd, cpu: CpuKey, made: &Made, held: (FileId, FileId)) -> Outcome {
        let (open, exit) = (&made.entered.open, &made.exited.exit);
        if open.call.action() == tracebraid_kernel_model::Action::ChangeDirectory {
            let (machine, mut around) = self.around();
            machine.goes_to(&mut around, end.process, made, held.0);
            return LateChange::Nothing;
        }
        let listener = match open.deed {
            Deed::Accept => self.now(end, open.fds.0),
            _ => FileId::default(),
        };
        let (machine, mut around) = self.around();
        let file = machine.what(&mut around, end.process, made, (held.0, listener));
        self.counter.made(self.machine, cpu.trace, made, file);
        match Change::of(open, exit) {
            Some(change) => {
                let copied = match change {
                    Change::Duplicated { from, .. } => self.now(end, from),
                    _ => FileId::default(),
                };
                LateChange::Change {
                    change: change.with(file),
                    copied,
                }
            }
            None if connects(open.call, exit.result) => LateChange::Rename(open.fds.0, file),
            None => LateChange::Nothing,
        }
    }

    /// Sets a thread's open call to that at the end of the slice.
    fn install(&mut self, thread: ThreadKey, cell: Cell) {
        let Some(open) = cell.open else { return };
        let begin = |Parked { mut entered, held }: Parked<ValueId>| {
            entered.text = self.text(entered.text);
            let held = (self.held(held.0), self.held(held.1));
            Parked { entered, held }
        };
        let mut open = open.map(begin);
        open.ends()
            .for_each(|exited| exited.text = self.text(exited.text));
        self.machine.threads.get(thread).append(open);
    }

    /// Installs the state at the end of the slice.
    fn end(mut self, since: i64) -> Unmerged {
        self.resolve(usize::MAX);
        for (thread, cell) in std::mem::take(&mut self.slice.threads).into_entries() {
            self.install(thread, cell);
        }
        let Composer {
            rules,
            machine,
            counter,
            mut slice,
            mut known,
            files,
            outcomes,
            ..
        } = self;
        let what = |file: u32| files.get(file as usize).copied().unwrap_or_default();
        let late = |call: u32, fd, before| match outcomes.get(call as usize) {
            Some(outcome) => outcome.of(fd, before),
            None => before,
        };
        let targets: Vec<i32> = outcomes.iter().flat_map(LateChange::fds).collect();
        let descriptors = &mut machine.descriptors;
        let sliced = &mut slice.descriptors;
        sliced.install(&mut known, descriptors, since, &what, &late, &targets);
        descriptors.forget(since);
        let top = rules.options.views.top();
        let log = slice.tally.take_log();
        counter.tally.merge(log, top, |file| numbered(&files, file));
        counter.cache.clear();
        let garbage = (slice.descriptors, slice.files, slice.texts, known);
        Unmerged::new(slice.tally, files, garbage)
    }
}

/// The end of a late call.
struct LateEnd {
    moment: tracebraid_descriptors::Moment,
    process: ThreadKey,
    table: ThreadKey,
}

/// A call that spans several stretches of its thread.
type Whole = tracebraid_follow::WholeCall<Parked<FileId>, Exited>;
