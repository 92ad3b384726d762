//! The state dump at the beginning of a recording, a chunk or a snapshot: threads, open files,
//! mappings.

use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

use super::{BUSY, Drain};
use crate::error::RecordError;
use crate::lane::AROUND_EVENT;
use crate::machine::now;
use crate::options::Options;
use crate::recorder::{Counters, SnapshotOrder};
use crate::shared::kinds;
use crate::stacks;
use crate::state;
use crate::tasks::{Proc, Task};
use crate::thread_priority::{USUAL, hurry};

/// An event of the state dump.
pub(super) struct Found {
    time: u64,
    id: u16,
    payload: Vec<u8>,
}

impl Drain<'_> {
    /// Starts the state dump.
    pub(crate) fn begin_dump(&mut self) {
        let mappings = self.meanings.map(|_| kinds::TRACEBRAID_MAP_LOAD);
        if !self.options.state_dump && mappings.is_none() {
            return;
        }
        // The threads are listed at once (a microsecond each); files and mappings take longer.
        let tasks = self.processes.list().unwrap_or_default();
        self.dump = Some(dump_state(self.options, mappings, tasks));
    }

    /// Repeats the state dump for a trace whose beginning has been dropped.
    pub(super) fn dump_again(&mut self) {
        if let (Some(meanings), Some(lane)) = (self.meanings, self.lanes.first()) {
            meanings.again(now(), &mut lane.borrow_mut());
        }
        self.begin_dump();
    }

    /// Repeats the state dump at the end of a recording whose beginning has been dropped, and waits
    /// for it.
    pub(super) fn last_dump(&mut self, counters: &Counters) -> Result<(), RecordError> {
        if !self.output.keeps() {
            return Ok(());
        }
        self.dump_again();
        while self.dump.is_some() {
            std::thread::sleep(BUSY);
            self.round()?;
            counters.set(self.output.progress());
        }
        Ok(())
    }

    /// Takes the events of the state dump that have arrived.
    pub(super) fn take_found(&mut self) {
        let (Some(dump), Some(lane)) = (&self.dump, self.lanes.first()) else {
            return;
        };
        let mut lane = lane.borrow_mut();
        loop {
            match dump.try_recv() {
                Ok(Found { time, id, payload }) => {
                    self.rotations.least_bytes += payload.len() as u64 + AROUND_EVENT;
                    lane.add(time, None, |to| {
                        to.extend_from_slice(&payload);
                        Some(id)
                    });
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => break,
            }
        }
        self.dump = None;
    }

    /// Writes the snapshots that waited for the state dump.
    pub(super) fn snapshot(&mut self) -> Result<(), RecordError> {
        while let Some(SnapshotOrder { directory, reply }) = self.snapshots.pop_front() {
            // All events that have been read and decided.
            let delay = self.undecided.delay_ns;
            let until = (delay > 0).then(|| self.settled.saturating_sub(delay));
            self.write(until)?;
            let _ = reply.send(self.output.snapshot(&directory).map_err(RecordError::from));
        }
        Ok(())
    }
}

/// Runs the state dump in a separate thread, since it takes long with ten thousand processes.
/// `mappings` is the event id for mappings of the followed processes, or of all; `None` leaves them
/// out.
fn dump_state(options: &Options, mappings: Option<u16>, tasks: Vec<Task>) -> Receiver<Found> {
    let unprivileged = options.unprivileged;
    struct Tell(Sender<Found>);
    impl state::Sink for Tell {
        fn event_at(&mut self, time: u64, id: u16, payload: &[u8]) {
            let payload = payload.to_vec();
            // The receiver is gone if the recording has been stopped.
            let _ = self.0.send(Found { time, id, payload });
        }
    }
    let (is_wanted, is_of_followed) = (options.state_dump, options.processes.is_some());
    let (tell, told) = mpsc::channel();
    // If the thread cannot be started, the dump is empty and complete.
    let _ = std::thread::Builder::new()
        .name("tracebraid-dump".into())
        .spawn(move || {
            hurry(USUAL);
            let mut tell = Tell(tell);
            let proc = Proc::mounted();
            if let Some(id) = mappings {
                let mut files = stacks::FilesBefore::default();
                let processes = match unprivileged {
                    Some(pid) => vec![state::Process { pid, number: pid }],
                    None => state::processes(&tasks, proc, is_of_followed),
                };
                stacks::dump(&processes, |mapping| {
                    state::Sink::event(&mut tell, id, &mapping.payload());
                    if let Some(payload) = files.payload(&mapping) {
                        state::Sink::event(&mut tell, kinds::TRACEBRAID_MAP_FILE, &payload);
                    }
                });
            }
            if is_wanted {
                state::dump(&tasks, proc, &mut tell);
            }
        });
    told
}
