//! Sums of calls, by thread and by file.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::Interned;
use tracebraid_files::{Call, Class, FileId, Side};

use crate::files::FilesRules;
use crate::files::stats::{ClassStats, Told, Use};
use tracebraid_follow::{Table, ThreadKey};
use tracebraid_tables::View;

/// Sums of calls. Their size is bounded by the number of threads and of files that each uses; with
/// `--view log` also by that of calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) threads: Table<Vec<(Class, ClassStats)>>,
    /// Index of the thread, and file; parallel to `sums`.
    pub(super) uses: Interned<(u32, FileId)>,
    pub(super) sums: Vec<Use>,
    /// In the order of their ends.
    pub(super) log: Vec<Told>,
    /// Index of the last thread.
    #[serde(skip)]
    near: usize,
}

/// A file that a call uses, the side of its use, and whether the file is selected.
pub(super) type Used = (FileId, Side, bool);

impl Tally {
    /// The index of a thread.
    #[inline(always)]
    pub(super) fn place(&mut self, thread: ThreadKey) -> u32 {
        self.threads.get_near(thread, &mut self.near);
        self.near as u32
    }

    /// Counts a call if one of its files is selected. `fd` is the call's descriptor.
    #[inline(always)]
    pub(super) fn count(
        &mut self,
        rules: &FilesRules,
        place: u32,
        (call, fd): (&Call, i32),
        (first, second): (Option<Used>, Option<Used>),
    ) {
        if !rules.options.files.is_all() {
            let mut files = first.iter().chain(&second);
            if !files.any(|(_, _, is_shown)| *is_shown) {
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
            file: first.map(|(file, ..)| file),
            place,
        };
        let top = rules.options.views.top();
        let Some(stats) = self.class(place, call.class) else {
            return;
        };
        if let Some(ranges) = &rules.ranges {
            if let Some((_, range)) = ranges.iter().find(|(class, _)| *class == call.class) {
                stats
                    .bins
                    .get_or_insert_default()
                    .add(*range, call.duration);
            }
            return;
        }
        stats.durations.add(call.duration);
        stats.errors += u64::from(call.failed());
        stats.bytes += call.bytes().unwrap_or(0);
        stats.top.add(told, top);
        if rules.options.views.shows(View::Log) {
            self.log.push(told);
        }
        for (file, side, is_shown) in first.into_iter().chain(second) {
            if is_shown {
                self.of(place, file).add(call, side);
            }
        }
    }

    /// Takes the log, with the threads to which it refers.
    pub(super) fn take_log(&mut self) -> Tally {
        let mut taken = Tally::default();
        if !self.log.is_empty() {
            taken.log = std::mem::take(&mut self.log);
            for (thread, _) in self.threads.entries() {
                taken.place(thread);
            }
        }
        taken
    }

    /// Adds sums with the same numbers of files.
    pub(super) fn join(&mut self, mut others: Tally, top: usize) {
        if others.sums.len() > self.sums.len() && self.log.is_empty() {
            std::mem::swap(self, &mut others);
        }
        self.merge(others, top, |file| file);
    }

    fn class(&mut self, place: u32, class: Class) -> Option<&mut ClassStats> {
        let classes = self.threads.at(place as usize)?;
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

    /// Adds sums of later calls; `file` translates their numbers of files. New sums are moved.
    pub(super) fn merge(&mut self, later: Tally, top: usize, file: impl Fn(FileId) -> FileId) {
        let mut places = Vec::new();
        for (thread, classes) in later.threads.into_entries() {
            let place = self.place(thread);
            places.push(place);
            let change = |told: &mut Told| {
                told.place = place;
                told.file = told.file.map(&file);
            };
            let Some(own) = self.threads.at(place as usize) else {
                continue;
            };
            for (class, mut stats) in classes {
                let tops = std::mem::take(&mut stats.top);
                let at = own.iter().position(|(of, _)| *of == class);
                let stats = match at.and_then(|at| own.get_mut(at)) {
                    Some((_, own)) => {
                        own.merge_all(&stats);
                        own
                    }
                    None => {
                        own.push((class, stats));
                        match own.last_mut() {
                            Some((_, stats)) => stats,
                            None => continue,
                        }
                    }
                };
                stats.top.merge(tops, top, change);
            }
        }
        let place = |at: u32| places.get(at as usize).copied().unwrap_or(u32::MAX);
        for (&(at, of), sums) in later.uses.keys().iter().zip(later.sums) {
            let number = self.uses.number((place(at), file(of))) as usize;
            match self.sums.get_mut(number) {
                Some(own) => own.merge(&sums),
                None => self.sums.push(sums),
            }
        }
        self.log.extend(later.log.into_iter().map(|told| Told {
            place: place(told.place),
            file: told.file.map(&file),
            ..told
        }));
    }
}
