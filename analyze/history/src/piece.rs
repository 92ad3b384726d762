//! Changes of attributes in a chunk, by CPU and slice.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};
use tracebraid_follow::KeyHasher;
use tracebraid_kernel_model::Comm;
use tracebraid_language::Datum;

use crate::attribute::{Attribute, AttributeKind, Form};
use crate::slices::Slices;
use crate::user::put;
use crate::varint;

/// Code of a wake-up, which is stored in place of the code of a value.
///
/// A waiting thread becomes woken, that is, it waits for a CPU. A thread that is not waiting keeps
/// its state.
pub(crate) const WAKE: u64 = u64::MAX;

/// Greater numbers have no code in [`Form::Any`].
const MOST_NUMBER: i64 = 1 << 60;

/// A change of an attribute.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) time: i64,
    pub(crate) attribute: u64,
    /// The code of a value; for a text its index in the piece, plus 1; for a counter the increment;
    /// or [`WAKE`].
    pub(crate) code: u64,
}

/// The changes by events of one CPU in one slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) slice: usize,
    /// In the order of time.
    pub(crate) changes: Vec<Change>,
    pub(crate) texts: Vec<String>,
    /// Number of losses of events.
    pub(crate) losses: u64,
}

/// Pieces of a CPU. The pieces of a slice are in the order of time, except for steps that depended
/// on an earlier chunk, which are in pieces of their own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pieces {
    pub(crate) pieces: Vec<Piece>,
    /// Times of the first and the latest event.
    seen: Option<(i64, i64)>,
    /// End of the slice of the current piece.
    #[serde(skip)]
    end: Option<i64>,
    /// Last names of threads in the current piece.
    #[serde(skip)]
    names: HashMap<i32, Comm, BuildHasherDefault<KeyHasher>>,
    /// Indexes of texts in the current piece: names of threads.
    #[serde(skip)]
    places: HashMap<Comm, u64>,
    #[serde(skip)]
    numbered: Vec<u32>,
    /// Indexes of texts in the current piece: arbitrary texts.
    #[serde(skip)]
    strings: HashMap<String, u64>,
}

impl Pieces {
    /// Records the time of an event. Returns the time, or the latest one if the clock went back.
    #[inline(always)]
    pub(crate) fn see(&mut self, time: i64) -> i64 {
        match &mut self.seen {
            Some((_, latest)) => {
                *latest = time.max(*latest);
                *latest
            }
            None => {
                self.seen = Some((time, time));
                time
            }
        }
    }

    /// The latest time of an event.
    pub(crate) fn latest(&self) -> i64 {
        self.seen.map_or(i64::MIN, |(_, latest)| latest)
    }

    /// The piece to which changes at a time are added.
    #[inline(always)]
    fn at(&mut self, slices: &Slices, time: i64) -> &mut Piece {
        if self.end.is_none_or(|end| time >= end) {
            self.next_piece(slices, time);
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    #[cold]
    fn next_piece(&mut self, slices: &Slices, time: i64) {
        let slice = slices.find(time);
        self.end = Some(slices.end(slice));
        // Slices contain about the same number of changes.
        let room = self.pieces.last().map_or(0, |last| last.changes.len());
        self.pieces.push(Piece {
            slice,
            changes: Vec::with_capacity(room),
            ..Piece::default()
        });
        self.names.clear();
        self.places.clear();
        self.numbered.clear();
        self.strings.clear();
    }

    /// Records a loss of events.
    pub(crate) fn lose(&mut self, slices: &Slices, time: i64) {
        self.at(slices, time).losses += 1;
    }

    /// Sets an attribute to the value with a code.
    #[inline(always)]
    pub(crate) fn set(&mut self, slices: &Slices, time: i64, attribute: Attribute, code: u64) {
        let attribute = attribute.bits();
        self.at(slices, time).changes.push(Change {
            time,
            attribute,
            code,
        });
    }

    /// Sets an attribute to a number.
    #[inline(always)]
    pub(crate) fn set_number(
        &mut self,
        slices: &Slices,
        time: i64,
        attribute: Attribute,
        number: i64,
    ) {
        self.set(slices, time, attribute, varint::code(number));
    }

    /// Adds to a counter.
    pub(crate) fn add(&mut self, slices: &Slices, time: i64, attribute: Attribute, more: i64) {
        self.set(slices, time, attribute, varint::fold(more));
    }

    /// Sets the name of a thread.
    pub(crate) fn name(&mut self, slices: &Slices, time: i64, host: u32, tid: i32, name: Comm) {
        self.at(slices, time);
        // Each switch contains the names again.
        if self.names.insert(tid, name) == Some(name) {
            return;
        }
        let last = self.pieces.len() - 1;
        let texts = &mut self.pieces[last].texts;
        let place = *self
            .places
            .entry(name)
            .or_insert_with(|| push(texts, name.text()));
        let attribute = Attribute::new(AttributeKind::ThreadName, host, tid as u32);
        self.set(slices, time, attribute, place + 1);
    }

    /// The next name of the thread is recorded again, even if it is equal.
    pub(crate) fn forget_name(&mut self, tid: i32) {
        self.names.remove(&tid);
    }

    /// The next name of each thread is recorded again, even if it is equal: a chunk may begin here.
    pub(crate) fn forget_names(&mut self) {
        self.names.clear();
    }

    /// Sets an attribute to one of a few texts, identified by number.
    #[inline]
    pub(crate) fn set_text(
        &mut self,
        slices: &Slices,
        time: i64,
        attribute: Attribute,
        number: u16,
        text: impl Fn() -> String,
    ) {
        self.at(slices, time);
        let last = self.pieces.len() - 1;
        let texts = &mut self.pieces[last].texts;
        let number = usize::from(number);
        if self.numbered.len() <= number {
            self.numbered.resize(number + 1, 0);
        }
        // Index plus 1; 0 if the text has none yet.
        let place = &mut self.numbered[number];
        if *place == 0 {
            *place = push(texts, text()) as u32 + 1;
        }
        let code = u64::from(*place);
        self.set(slices, time, attribute, code);
    }

    /// Sets an attribute to any value. Values other than whole numbers of at most 60 bits are
    /// stored as texts.
    pub(crate) fn set_any(
        &mut self,
        slices: &Slices,
        time: i64,
        attribute: Attribute,
        value: &Datum,
    ) {
        let small = match value {
            Datum::Integer(number) => i64::try_from(*number)
                .ok()
                .filter(|number| number.abs() < MOST_NUMBER),
            _ => None,
        };
        let code = match (small, value) {
            (Some(number), _) => varint::code(number) << 1,
            (None, Datum::Missing) => varint::NULL,
            (None, other) => {
                let mut text = String::new();
                let _ = put(&mut text, other);
                Form::Any.code_of_text(self.place(slices, time, &text) + 1)
            }
        };
        self.set(slices, time, attribute, code);
    }

    /// Sets an attribute to an arbitrary text.
    pub(crate) fn set_string(
        &mut self,
        slices: &Slices,
        time: i64,
        attribute: Attribute,
        text: &str,
    ) {
        let code = self.place(slices, time, text) + 1;
        self.set(slices, time, attribute, code);
    }

    /// The index of a text in the piece of a time.
    fn place(&mut self, slices: &Slices, time: i64, text: &str) -> u64 {
        self.at(slices, time);
        let last = self.pieces.len() - 1;
        let texts = &mut self.pieces[last].texts;
        if let Some(&place) = self.strings.get(text) {
            return place;
        }
        let place = push(texts, text.to_owned());
        self.strings.insert(text.to_owned(), place);
        place
    }

    /// Ends a chunk: drops the state that only adding changes needs.
    pub(crate) fn end(&mut self) {
        self.end = None;
        self.names = HashMap::default();
        self.places = HashMap::new();
        self.numbered = Vec::new();
        self.strings = HashMap::new();
    }

    /// Adds later chunks. If the clock goes back between chunks, the times of changes are held.
    pub(crate) fn append(&mut self, slices: &Slices, later: Pieces) {
        let latest = self.latest();
        match later.seen {
            Some((first, _)) if first < latest => later
                .pieces
                .into_iter()
                .for_each(|piece| self.hold(slices, piece)),
            _ => self.pieces.extend(later.pieces),
        }
        if let Some((first, until)) = later.seen {
            let (begin, end) = self.seen.unwrap_or((first, until));
            self.seen = Some((begin, end.max(until)));
        }
        self.end = None;
    }

    /// Adds a piece that begins before the latest event.
    fn hold(&mut self, slices: &Slices, piece: Piece) {
        let latest = self.latest();
        if piece.losses > 0 {
            self.at(slices, latest).losses += piece.losses;
        }
        for change in piece.changes {
            let time = change.time.max(latest);
            let to = self.at(slices, time);
            let form = Attribute::text_form(change.attribute);
            let code = match form.and_then(|form| Some((form, form.text_of(change.code)?))) {
                Some((form, place)) => {
                    let text = piece.texts.get(place as usize - 1).cloned();
                    form.code_of_text(push(&mut to.texts, text.unwrap_or_default()) + 1)
                }
                None => change.code,
            };
            to.changes.push(Change {
                time,
                code,
                ..change
            });
        }
        self.end = None;
    }

    /// Takes the pieces of earlier slices.
    pub(crate) fn take_before(&mut self, slice: usize) -> Vec<Piece> {
        let pieces = std::mem::take(&mut self.pieces);
        let (before, rest) = pieces.into_iter().partition(|piece| piece.slice < slice);
        self.pieces = rest;
        self.end = None;
        before
    }
}

fn push(texts: &mut Vec<String>, text: String) -> u64 {
    texts.push(text);
    texts.len() as u64 - 1
}
