//! What a chunk tells of attributes: their changes, by CPU and slice.

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

/// What happens to an attribute, as it is kept: a code of a value, or this.
///
/// A thread that waits has been woken: it waits for a CPU. One that does not is left as it is.
pub(crate) const WAKE: u64 = u64::MAX;

/// Greater numbers have no code in [`Form::Any`].
const MOST_NUMBER: i64 = 1 << 60;

/// A change of an attribute.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) time: i64,
    pub(crate) attribute: u64,
    /// A code of a value; of a text its place in the piece; of a counter what is added; or
    /// [`WAKE`].
    pub(crate) code: u64,
}

/// The changes that events of one CPU tell, in one slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) slice: usize,
    /// In the order of time.
    pub(crate) changes: Vec<Change>,
    pub(crate) texts: Vec<String>,
    /// How often events were lost.
    pub(crate) losses: u64,
}

/// Pieces of a CPU. Those of one slice are in the order of time; but for steps that had to wait for
/// the chunk before, which stand in pieces of their own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Pieces {
    pub(crate) pieces: Vec<Piece>,
    /// The first and the latest event.
    seen: Option<(i64, i64)>,
    /// When the slice of the piece ends that changes are added to.
    #[serde(skip)]
    end: Option<i64>,
    /// Names of threads that it tells.
    #[serde(skip)]
    names: HashMap<i32, Comm, BuildHasherDefault<KeyHasher>>,
    /// Its texts: names, and others by number.
    #[serde(skip)]
    places: HashMap<Comm, u64>,
    #[serde(skip)]
    numbered: Vec<u32>,
    /// Its texts: those of which there are many.
    #[serde(skip)]
    strings: HashMap<String, u64>,
}

impl Pieces {
    /// Something happens: gives the time, held where the clock goes back.
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

    /// The latest that was seen.
    pub(crate) fn latest(&self) -> i64 {
        self.seen.map_or(i64::MIN, |(_, latest)| latest)
    }

    /// The piece that a time belongs to, where changes are added.
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
        // About as much happens in each slice.
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

    /// Events were lost.
    pub(crate) fn lose(&mut self, slices: &Slices, time: i64) {
        self.at(slices, time).losses += 1;
    }

    /// An attribute takes a value, by its code.
    #[inline(always)]
    pub(crate) fn set(&mut self, slices: &Slices, time: i64, attribute: Attribute, code: u64) {
        let attribute = attribute.bits();
        self.at(slices, time).changes.push(Change {
            time,
            attribute,
            code,
        });
    }

    /// An attribute takes a number as its value.
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

    /// That much is added to a counter.
    pub(crate) fn add(&mut self, slices: &Slices, time: i64, attribute: Attribute, more: i64) {
        self.set(slices, time, attribute, varint::fold(more));
    }

    /// A thread has that name.
    pub(crate) fn name(&mut self, slices: &Slices, time: i64, host: u32, tid: i32, name: Comm) {
        self.at(slices, time);
        // Each switch tells it again.
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

    /// What name a thread with that number has is told anew.
    pub(crate) fn forget_name(&mut self, tid: i32) {
        self.names.remove(&tid);
    }

    /// What names threads have is told anew: chunks begin here.
    pub(crate) fn forget_names(&mut self) {
        self.names.clear();
    }

    /// An attribute takes one of few texts as its value, which a number stands for.
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
        // One more than its place; 0 for one that has none.
        let place = &mut self.numbered[number];
        if *place == 0 {
            *place = push(texts, text()) as u32 + 1;
        }
        let code = u64::from(*place);
        self.set(slices, time, attribute, code);
    }

    /// An attribute takes whatever value. What is no whole number, or one of more than 60 bits, is
    /// kept as a text.
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

    /// An attribute takes a text as its value, one of many.
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

    /// The place of a text in the piece that a time belongs to.
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

    /// No changes are added for now: drops what only adding needs.
    pub(crate) fn end(&mut self) {
        self.end = None;
        self.names = HashMap::default();
        self.places = HashMap::new();
        self.numbered = Vec::new();
        self.strings = HashMap::new();
    }

    /// Adds what later chunks tell. Where the clock goes back between chunks, changes are held.
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

    /// Adds a piece of which some changes come too early.
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

    /// Takes the pieces of slices before that one.
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
