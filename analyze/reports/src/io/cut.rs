//! Items taken for playing: a slice of time over all CPUs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use tracebraid_descriptors::Shared;
use tracebraid_follow::CpuKey;

use crate::io::group::{Calls, Group};
use crate::io::item::IoItem;
use crate::io::items::{Cursor, Items, Position};
use crate::io::span::Span;

/// A part of the items of a CPU.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) cpu: CpuKey,
    pub(super) items: Shared<Items>,
    /// At or before the first item of the span.
    pub(super) at: Position,
    pub(super) calls: Shared<Calls>,
    pub(super) named: i32,
    pub(super) span: Span,
}

/// Pieces of all CPUs; those of one CPU are in order.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) pieces: Vec<Piece>,
}

impl Cut {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn take(&mut self) -> Cut {
        let pieces = std::mem::take(&mut self.pieces);
        Cut { pieces }
    }

    /// Takes the items before a time, and the calls that began before it.
    pub(super) fn split(&mut self, time: i64) -> Cut {
        let pieces = self.pieces.iter_mut().filter_map(|piece| piece.split(time));
        Cut {
            pieces: pieces.collect(),
        }
    }

    /// Visits the items by time and CPU; those of one CPU and one time in their order.
    pub(super) fn play(&self, mut to: impl FnMut(CpuKey, IoItem)) {
        let mut cursors: Vec<Cursor> = self.pieces.iter().map(Piece::cursor).collect();
        let heads = self.pieces.iter().zip(&cursors).enumerate();
        let heads = heads.filter_map(|(at, (piece, cursor))| {
            Some(Reverse((piece.next(cursor)?, piece.cpu, at)))
        });
        let mut heads: BinaryHeap<_> = heads.collect();
        // The next item is most often from the same piece, which then stays on top.
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((_, cpu, at)) = *head;
            let next = self.pieces.get(at).zip(cursors.get_mut(at));
            let next = next.and_then(|(piece, cursor)| {
                to(cpu, piece.items.take_next(cursor, piece.named)?);
                piece.next(cursor)
            });
            match next {
                Some(time) => *head = Reverse((time, cpu, at)),
                None => {
                    PeekMut::pop(head);
                }
            }
        }
    }

    /// Groups with calls that began in the slice, and the pieces that contain them.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&Piece, &Group)> {
        let pieces = self.pieces.iter();
        pieces.flat_map(|piece| piece.groups().map(move |group| (piece, group)))
    }
}

impl Piece {
    fn split(&mut self, time: i64) -> Option<Piece> {
        if time <= self.span.from {
            return None;
        }
        let earlier = Piece {
            span: Span {
                until: Some(self.span.until.map_or(time, |until| until.min(time))),
                ..self.span
            },
            ..self.clone()
        };
        self.at = self.items.seek(time);
        self.span.from = time;
        Some(earlier)
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        let span = self.span;
        let groups = self.calls.groups();
        groups.filter(move |group| span.meets((group.first, group.last())))
    }

    fn cursor(&self) -> Cursor {
        self.items.read_from(self.at, self.span.from)
    }

    /// Time of the next item, if it belongs to the piece.
    fn next(&self, cursor: &Cursor) -> Option<i64> {
        let until = self.span.until;
        let is_in = |time: &i64| until.is_none_or(|until| *time < until);
        cursor.next_time().filter(is_in)
    }
}
