//! The state of descriptors at a marked time, from which an analysis can resume without the earlier
//! events.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Descriptors, Text, Texts};

use crate::call::Stretch;
use crate::directories::Directories;
use crate::follow::FollowedFiles;
use crate::machine::{FileMachine, Passing};
use crate::names::{FileId, Files};
use crate::seen::Seen;
use tracebraid_follow::{CpuKey, Lane, Table};

/// Descriptors and open calls at a marked time, with all earlier items played. Independent of how
/// the trace was cut into chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FilesKept {
    descriptors: Descriptors<FileId>,
    directories: Directories,
    files: Files,
    threads: Table<Passing>,
    texts: Texts,
    stands: Vec<(CpuKey, Stretch)>,
}

impl FollowedFiles {
    /// Returns the state at the marked time `time`. All items before it must have been played, and
    /// none after it.
    pub fn keep(&mut self, time: i64) -> FilesKept {
        let FollowedFiles {
            seen,
            machine,
            known: texts,
        } = self;
        let Seen {
            lanes,
            dictionaries,
            texts: chunk,
            ..
        } = seen;
        let mut stands: Vec<(CpuKey, Stretch)> = Vec::new();
        for (cpu, lane) in lanes.iter_mut() {
            // A CPU without later events is still in its last state.
            let now = lane.now().filter(|now| now.until <= time).copied();
            let before = || machine.stands.iter().find(|(other, _)| *other == cpu);
            let stands_so = now.or_else(|| before().map(|(_, stretch)| *stretch));
            stands.extend(stands_so.map(|stretch| (cpu, stretch)));
        }
        for (_, stretch) in &mut stands {
            stretch.until = i64::MIN;
            if let Some(open) = stretch.calls.open_mut() {
                // The text of a marked stretch is already one of the machine's.
                open.text = match chunk.0.of(open.text) {
                    Some(text) => texts.number(text),
                    None => dictionaries.known(open.text, texts),
                };
            }
        }
        let mut kept = FilesKept {
            descriptors: machine.descriptors.clone(),
            directories: machine.directories.clone(),
            files: machine.files.clone(),
            threads: machine.threads.clone(),
            texts: Texts::default(),
            stands,
        };
        // Texts of chunks after that time are numbered too, and which ones depends on where chunks
        // end, so texts are numbered anew.
        let mut known = Texts::default();
        kept.each_text(&mut |text| {
            if let Some(name) = texts.get(*text) {
                *text = known.number(name);
            }
        });
        kept.texts = known;
        kept
    }

    /// The state for resuming after a marked time.
    pub fn behind(kept: FilesKept) -> FollowedFiles {
        let FilesKept {
            descriptors,
            directories,
            files,
            threads,
            texts,
            stands,
        } = kept;
        let lane = |(cpu, stretch): &(CpuKey, Stretch)| {
            let mut lane = Lane::default();
            lane.goes_over(i64::MIN, *stretch);
            (*cpu, lane)
        };
        let lanes = stands.iter().map(lane).collect();
        let mut machine = FileMachine::default();
        (machine.descriptors, machine.directories) = (descriptors, directories);
        (machine.files, machine.threads) = (files, threads);
        machine.stands = stands.into_iter().collect();
        let seen = Seen {
            lanes,
            ..Seen::first()
        };
        FollowedFiles {
            seen,
            machine,
            known: texts,
        }
    }
}

impl FilesKept {
    /// Whether [`FollowedFiles::keep`] can have produced this state. Resuming from a sound state
    /// exceeds no bound.
    pub fn is_sound(&self) -> bool {
        let mut threads = self.threads.entries();
        let are_few = threads.all(|(_, thread)| thread.is_sound());
        let is_after = |pair: &[(CpuKey, Stretch)]| {
            pair.first().map(|cpu| cpu.0) < pair.last().map(|cpu| cpu.0)
        };
        are_few
            && self.descriptors.is_sound()
            && self.directories.is_sound()
            && self.files.is_sound()
            && self.threads.is_sound()
            && self.texts.is_sound()
            && self.stands.windows(2).all(is_after)
    }

    /// Passes each text to `to`, in an order that depends only on the played items.
    fn each_text(&mut self, to: &mut impl FnMut(&mut Text)) {
        self.files.rename(&mut *to);
        self.directories.paths().for_each(&mut *to);
        for thread in self.threads.values() {
            let (parked, missed) = thread.parts();
            parked
                .into_iter()
                .for_each(|parked| to(&mut parked.entered.text));
            missed.for_each(|exited| to(&mut exited.text));
        }
        for (_, stretch) in &mut self.stands {
            stretch
                .calls
                .open_mut()
                .into_iter()
                .for_each(|open| to(&mut open.text));
        }
    }
}
