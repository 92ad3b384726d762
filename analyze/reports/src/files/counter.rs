//! Counts calls whose descriptors are known.

use tracebraid_files::{Around, Call, CallSink, FileId, FileMachine, Made, Side, named_at};
use tracebraid_follow::ThreadKey;

use crate::files::FilesRules;
use crate::files::cache::Cache;
use crate::files::tally::{Tally, Used};

/// Counts calls in the order of time.
pub(super) struct Counter<'a> {
    pub(super) rules: &'a FilesRules,
    pub(super) tally: &'a mut Tally,
    /// Files of descriptors, by index of the thread in the tally.
    pub(super) cache: &'a mut Cache<FileId>,
}

impl Counter<'_> {
    /// The file of a thread's descriptor at the start of a call.
    #[inline(always)]
    fn descriptor(
        &mut self,
        (machine, around): (&mut FileMachine, &mut Around<'_>),
        (place, thread): (u32, ThreadKey),
        fd: i32,
        time: i64,
    ) -> FileId {
        if let Some(file) = self.cache.find(place, fd) {
            return file;
        }
        let answer = machine.descriptors.kind(thread, fd, time);
        let file = machine.known(around, thread.trace, answer.kind);
        // If the descriptor has changed since, the answer holds for the past only and is not
        // cached.
        if answer.until.is_none() {
            self.cache.put(place, fd, file);
        }
        file
    }
}

impl CallSink for Counter<'_> {
    #[inline(always)]
    fn call(
        &mut self,
        machine: &mut FileMachine,
        around: &mut Around<'_>,
        thread: ThreadKey,
        call: &Call,
        held: Option<(FileId, FileId)>,
    ) {
        let place = self.tally.place(thread);
        let time = named_at(Some(call.class), call.begin);
        let used = call.used().map(|used| {
            let (fd, side, is_second) = used?;
            let file = match held {
                Some(held) => {
                    let held = if is_second { held.1 } else { held.0 };
                    machine.known(around, thread.trace, held)
                }
                None => self.descriptor((machine, around), (place, thread), fd, time),
            };
            Some((file, side, machine.files.shows(file)))
        });
        let [first, second]: [Option<Used>; 2] = used;
        let of = (call, call.fds.0);
        self.tally.count(self.rules, place, of, (first, second));
    }

    fn made(&mut self, machine: &FileMachine, trace: u32, made: &Made, file: FileId) {
        let Some(call) = made.call else { return };
        let place = self.tally.place(ThreadKey {
            trace,
            tid: call.tid,
        });
        let used = (file, Side::From, machine.files.shows(file));
        let of = (&call, made.fd());
        self.tally.count(self.rules, place, of, (Some(used), None));
    }

    fn changed(&mut self, _: &mut FileMachine, _: i64) {
        self.cache.clear();
    }
}
