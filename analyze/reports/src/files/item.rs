//! What must be looked at in the order of time: it needs to be known what descriptors are.

use serde::{Deserialize, Serialize};

use crate::files::call::{Call, Entered, Exited, Forked};
use crate::files::interned::Text;
use crate::io::change::Change;
use crate::io::item::Holder;

/// Something that happened to descriptors, or a call that names some. Threads are given by their
/// places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Item {
    /// A call that moves bytes, brings them to the disk, or closes.
    Call(Call),
    /// A call that makes descriptors or changes what they are.
    Made(Box<Made>),
    Change(u32, i64, Change),
    Fork(u32, i64, Forked),
    Exec(u32, i64),
    End(u32, i64),
    /// The thread belongs to that process, which has the table at that address.
    Member {
        place: u32,
        time: i64,
        pid: i32,
        table: Option<i64>,
    },
    Holds(Box<Holds>),
    /// Here an exit stands whose entry the chunks before know.
    Head(u32),
}

/// A call that makes descriptors or changes what they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) place: u32,
    pub(super) entered: Entered,
    pub(super) exited: Exited,
    /// It as one of those whose latency is told.
    pub(super) call: Option<Call>,
}

/// State dump: a process, or whoever has the table, has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Holds {
    pub(super) trace: u32,
    pub(super) time: i64,
    pub(super) holder: Holder,
    pub(super) fd: i32,
    pub(super) text: Text,
    pub(super) cloexec: bool,
}

impl Item {
    /// Threads have other places, and texts other numbers.
    pub(super) fn moved(&mut self, places: &[usize], texts: &[Text]) {
        let to = |place: &mut u32| {
            *place = places.get(*place as usize).map_or(*place, |&place| place as u32);
        };
        match self {
            Item::Call(call) => to(&mut call.place),
            Item::Made(made) => {
                to(&mut made.place);
                made.call.iter_mut().for_each(|call| to(&mut call.place));
                made.entered.text.moved(texts);
                made.exited.text.moved(texts);
            }
            Item::Change(place, ..)
            | Item::Fork(place, ..)
            | Item::Exec(place, _)
            | Item::End(place, _)
            | Item::Member { place, .. }
            | Item::Head(place) => to(place),
            Item::Holds(holds) => holds.text.moved(texts),
        }
    }
}
