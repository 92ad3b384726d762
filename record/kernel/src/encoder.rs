//! Converts records to events: the id of the event class, and the payload.

use std::sync::atomic::{AtomicBool, Ordering};

use tracebraid_ctf::schema::TraceClass;

use crate::calls::{Call, Calls, Field};
use crate::chosen::ChosenEvents;
use crate::raw::{ENTRY, Head, RawCall};
use crate::recipe::Recipe;
use crate::schema::{COMPAT_CALL, UNKNOWN_CALL, call_ids};
use crate::shared::{ARGUMENTS, CALL_COMPAT};
use crate::stacks::is_copy;

#[derive(Debug)]
pub(crate) struct Encoder {
    /// Recipes by kind.
    recipes: Vec<Recipe>,
    chosen: ChosenEvents,
    own: Table,
    compat: Table,
    /// True once a system call has been recorded.
    has_calls: AtomicBool,
}

/// System calls that can be looked up by number.
#[derive(Debug)]
struct Table {
    calls: Vec<Call>,
    /// By number: the index of the call plus one; 0 if there is no such call.
    places: Vec<u16>,
}

/// Marks the number of a call by a 32-bit program.
const COMPAT: u16 = CALL_COMPAT as u16;
/// Smaller ids are kinds.
const MOST_KINDS: usize = 256;

impl Encoder {
    /// For a schema that was built with `calls` and `chosen`.
    pub(crate) fn new(class: &TraceClass, calls: Calls, chosen: ChosenEvents) -> Encoder {
        let mut recipes = vec![Recipe::default(); MOST_KINDS];
        for event in class.streams.iter().flat_map(|stream| &stream.events) {
            if let Some(place) = recipes.get_mut(event.id as usize) {
                *place = Recipe::new(event);
            }
        }
        Encoder {
            recipes,
            chosen,
            own: Table::new(calls.own),
            compat: Table::new(calls.compat),
            has_calls: AtomicBool::new(false),
        }
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.has_calls.load(Ordering::Relaxed)
    }

    /// Writes the payload of a record's event and returns the id of its class; `None` if the record
    /// is malformed. A copy of a stack is not converted, since it is unwound later.
    pub(crate) fn encode(&self, head: &Head, record: &[u8], to: &mut Vec<u8>) -> Option<u16> {
        if let Some(recipe) = self.recipes.get(usize::from(head.kind)) {
            recipe.write(record, to)?;
            return Some(head.kind);
        }
        if is_copy(head.kind) {
            to.extend_from_slice(record);
            return Some(head.kind);
        }
        if head.kind < ENTRY {
            return self.chosen.encode(head.kind, record, to);
        }
        let mut call = RawCall::new(head.kind, record)?;
        // A load is cheaper than a store to a cache line that each call would dirty.
        if !self.has_calls() {
            self.has_calls.store(true, Ordering::Relaxed);
        }
        Some(self.call(head.more, &mut call, to))
    }

    fn call(&self, number: u16, raw: &mut RawCall<'_>, to: &mut Vec<u8>) -> u16 {
        let is_compat = number & COMPAT != 0;
        let table = if is_compat { &self.compat } else { &self.own };
        let Some((place, call)) = table.find(number & !COMPAT) else {
            return unknown(number, raw, to);
        };
        let [entry, exit] = call_ids(is_compat, place);
        let (id, fields) = if raw.is_exit {
            to.extend_from_slice(&raw.result.to_le_bytes());
            (exit, &call.exit)
        } else {
            (entry, &call.entry)
        };
        for field in fields {
            write(field, raw, to);
        }
        id
    }
}

impl Table {
    fn new(calls: Vec<Call>) -> Table {
        let most = calls.iter().map(|call| call.number).max().unwrap_or(0);
        let mut places = vec![0; usize::from(most) + 1];
        for (place, call) in (1..).zip(&calls) {
            if let Some(slot) = places.get_mut(usize::from(call.number)) {
                *slot = place;
            }
        }
        Table { calls, places }
    }

    /// The call with a number, and its index.
    fn find(&self, number: u16) -> Option<(usize, &Call)> {
        let place = self.places.get(usize::from(number)).copied().unwrap_or(0);
        let place = usize::from(place).wrapping_sub(1);
        Some((place, self.calls.get(place)?))
    }
}

fn write(field: &Field, raw: &mut RawCall<'_>, to: &mut Vec<u8>) {
    match *field {
        Field::Value {
            argument, bytes, ..
        } => {
            let value = raw.argument(usize::from(argument));
            // Sizes known to the compiler become single stores.
            match bytes {
                8 => to.extend_from_slice(&value.to_le_bytes()),
                4 => to.extend_from_slice(&(value as u32).to_le_bytes()),
                2 => to.extend_from_slice(&(value as u16).to_le_bytes()),
                _ => to.push(value as u8),
            }
        }
        Field::Text { .. } => {
            let text = raw.next_part().split(|&byte| byte == 0).next();
            to.extend_from_slice(text.unwrap_or_default());
            to.push(0);
        }
        Field::Shape { shape, argument } => {
            let value = raw.argument(usize::from(argument));
            let part = match shape.part() {
                Some(_) => raw.next_part(),
                None => &[],
            };
            shape.write(value, part, to);
        }
    }
}

fn unknown(number: u16, raw: &RawCall<'_>, to: &mut Vec<u8>) -> u16 {
    let [entry, exit] = if number & COMPAT != 0 {
        COMPAT_CALL
    } else {
        UNKNOWN_CALL
    };
    to.extend_from_slice(&i32::from(number & !COMPAT).to_le_bytes());
    if raw.is_exit {
        to.extend_from_slice(&raw.result.to_le_bytes());
    }
    for number in 0..ARGUMENTS {
        to.extend_from_slice(&raw.argument(number).to_le_bytes());
    }
    if raw.is_exit { exit } else { entry }
}
