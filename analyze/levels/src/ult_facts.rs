//! The survey's facts about user-level threads.
//!
//! Millions of threads are possible, and most threads are short-lived. So facts are appended to
//! lists, in which threads that are created in succession are adjacent. A hash map by thread and
//! window was rejected: it took most of the time of the survey. The lists of all workers are joined
//! by thread at the end, in parallel (`ults`). A thread or a window that occurs twice is joined
//! there, too.

use serde::{Deserialize, Serialize};
use tracebraid_engine::parallel;

use crate::by_number::ByNumber;
use crate::slabs::Slabs;
use crate::survey::{Map, Moment, UltKey};
use crate::words::Words;

/// Before all moments.
pub(crate) const NEVER: Moment = (i64::MIN, 0);

/// Stands for no entry of a list, and for no reason.
pub(crate) const NOTHING: u32 = u32::MAX;

/// Facts of a worker.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UltFacts {
    pub(crate) threads: Slabs<UltSight>,
    marks: Slabs<Marks>,
    names: Slabs<NameFact>,
    pub(crate) words: Words,
    /// Reasons of blocks.
    pub(crate) reasons: Words,
    #[serde(skip)]
    places: PlaceOfUlt,
}

/// The first sight of a user-level thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct UltSight {
    pub(crate) key: UltKey,
    pub(crate) first: Moment,
    /// The first sight is its creation.
    pub(crate) is_created: bool,
    /// Latest entries of the lists, or [`NOTHING`].
    marks: u32,
    name: u32,
}

/// The latest moments of a user-level thread in a window, or [`NEVER`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Marks {
    pub(crate) window: u32,
    /// The entry before this one of the same thread, or [`NOTHING`].
    earlier: u32,
    pub(crate) block: Moment,
    /// Woken, created, or seen ready.
    pub(crate) ready: Moment,
    pub(crate) switch_in: Moment,
    pub(crate) switch_out: Moment,
    pub(crate) end: Moment,
    /// The first record about it.
    pub(crate) first: Moment,
    /// Number of the reason of the block, and of the first record if that is a block.
    pub(crate) reason: u32,
    pub(crate) first_reason: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct NameFact {
    moment: Moment,
    word: u32,
    earlier: u32,
}

impl Marks {
    fn new(window: u32, earlier: u32, first: Moment) -> Marks {
        Marks {
            window,
            earlier,
            block: NEVER,
            ready: NEVER,
            switch_in: NEVER,
            switch_out: NEVER,
            end: NEVER,
            first,
            reason: NOTHING,
            first_reason: NOTHING,
        }
    }

    pub(crate) fn set_block(&mut self, moment: Moment, reason: u32) {
        if self.block <= moment {
            (self.block, self.reason) = (moment, reason);
        }
        if self.first == moment {
            self.first_reason = reason;
        }
    }

    /// Adds the marks of another stream, or of a later window.
    pub(crate) fn join(&mut self, other: &Marks) {
        if self.block <= other.block {
            (self.block, self.reason) = (other.block, other.reason);
        }
        self.ready = self.ready.max(other.ready);
        self.switch_in = self.switch_in.max(other.switch_in);
        self.switch_out = self.switch_out.max(other.switch_out);
        self.end = self.end.max(other.end);
        if other.first < self.first {
            (self.first, self.first_reason) = (other.first, other.first_reason);
        }
    }
}

impl UltFacts {
    /// Index of a thread in `threads`, added if it is new. `moment`: that of a record about it.
    #[inline]
    pub(crate) fn sees(&mut self, key: UltKey, moment: Moment, is_created: bool) -> u32 {
        let slot = self.places.slot(key);
        if let Some(place) = *slot
            && let Some(own) = self.threads.get_mut(place)
        {
            if moment < own.first {
                (own.first, own.is_created) = (moment, is_created);
            }
            return place;
        }
        let place = self.threads.push(UltSight {
            key,
            first: moment,
            is_created,
            marks: NOTHING,
            name: NOTHING,
        });
        *slot = Some(place);
        place
    }

    /// Marks of a thread in a window, added if they are new. `moment`: that of a record about it.
    #[inline]
    pub(crate) fn marks(&mut self, thread: u32, window: u32, moment: Moment) -> Option<&mut Marks> {
        let own = self.threads.get_mut(thread)?;
        let is_known = |marks: &Marks| marks.window == window;
        if !self.marks.get(own.marks).is_some_and(is_known) {
            own.marks = self.marks.push(Marks::new(window, own.marks, moment));
        }
        let marks = self.marks.get_mut(own.marks)?;
        if moment < marks.first {
            (marks.first, marks.first_reason) = (moment, NOTHING);
        }
        Some(marks)
    }

    /// Adds a name that the thread has from a moment on. Repeated names are dropped when the facts
    /// of all workers are joined, since only then the order of names is known.
    pub(crate) fn add_name(&mut self, thread: u32, moment: Moment, name: &[u8]) {
        let Some(own) = self.threads.get_mut(thread) else {
            return;
        };
        own.name = self.names.push(NameFact {
            moment,
            word: self.words.number(name),
            earlier: own.name,
        });
    }

    /// Frees the memory of all facts in parallel.
    pub(crate) fn drop_all(all: Vec<UltFacts>) {
        let (mut threads, mut marks, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for own in all {
            threads.extend(own.threads.into_slabs());
            marks.extend(own.marks.into_slabs());
            names.extend(own.names.into_slabs());
        }
        parallel::map(threads, drop);
        parallel::map(marks, drop);
        parallel::map(names, drop);
    }

    /// All marks of a thread, in any order.
    pub(crate) fn marks_of(&self, thread: &UltSight) -> impl Iterator<Item = Marks> {
        let marks = |place: u32| self.marks.get(place).copied();
        std::iter::successors(marks(thread.marks), move |own| marks(own.earlier))
    }

    /// All names of a thread, each with its first moment, in any order.
    pub(crate) fn names_of(&self, thread: &UltSight) -> impl Iterator<Item = (Moment, &[u8])> {
        let name = |place: u32| self.names.get(place).copied();
        let all = std::iter::successors(name(thread.name), move |own| name(own.earlier));
        all.map(|own| (own.moment, self.words.get(own.word)))
    }
}

/// The index in a list by process and id of a user-level thread.
#[derive(Debug, Default)]
pub(crate) struct PlaceOfUlt(Map<i32, ByNumber<u32>>);

impl PlaceOfUlt {
    #[inline]
    pub(crate) fn get(&self, (pid, ult): UltKey) -> Option<u32> {
        self.0.get(&pid)?.get(ult)
    }

    #[inline]
    pub(crate) fn slot(&mut self, (pid, ult): UltKey) -> &mut Option<u32> {
        self.0.entry(pid).or_default().slot(ult)
    }
}
