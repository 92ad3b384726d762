//! The fields of an event record, in order.
//!
//! The walk over the event class is that of the reader ([`crate::walk`]), but the values come from
//! the caller: the length of a sequence or the selector of a variant is an earlier value.

mod values;

use super::bits::{align_up, put};
use super::error::FieldProblem;
use super::plan::{EventPlan, Leaf};
use crate::bits::FixedRead;
use crate::layout::node::{Length, Node, NodeKind};
use crate::layout::skip;
use crate::layout::tree::{Part, Parts};
use crate::schema::Name;
use crate::stack::Stack;

/// The bytes of a packet while it is being filled. Bytes that are not written yet are zero.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) data: Box<[u8]>,
    /// Position in bits.
    pub(super) pos: u64,
    /// Byte order of the last fixed-length field.
    pub(super) big: bool,
    /// Number of array elements of zero bits.
    pub(super) empty: u64,
}

/// Readers treat more elements of zero bits as damage, since these could be repeated for ever.
const MOST_EMPTY: u64 = 1 << 19;

/// The reason why an event record is not written.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// The packet has no room for it.
    Full,
    Field(Name, FieldProblem),
}

/// A field whose parts are being written.
#[derive(Debug)]
enum Open<'p> {
    Parts(Parts<'p>),
    /// The element, the number of remaining elements, and the start of the previous element if it
    /// may have zero bits.
    Elements(Part<'p>, u64, u64),
}

/// A walk over nested fields.
#[derive(Debug)]
struct Deep<'p> {
    roots: [Option<Part<'p>>; 3],
    /// Index of the next root.
    root: usize,
    open: Stack<Open<'p>>,
}

/// Receives the values of an event record's fields, in the order of the event class: common
/// context, specific context, payload. Structures, arrays, variants and optionals have no value of
/// their own; the values of their parts follow.
///
/// The first invalid value causes the whole event record to be rejected. Later values are ignored,
/// so the caller need not check the result of each call.
#[derive(Debug)]
pub struct Fields<'p> {
    out: &'p mut Buffer,
    slots: &'p mut [u64],
    /// Fields after the next field, if there are only plain fields and structures.
    flat: std::slice::Iter<'p, Leaf>,
    /// State of the walk in an event class with other kinds of fields.
    deep: Option<&'p mut Deep<'p>>,
    /// The field that the next value is for.
    next: Option<&'p Node>,
    /// Nodes within the next field, if it is an array of bytes. A separate field: loading both at
    /// once, just after they were stored separately, would stall the processor.
    inside: &'p [Node],
    stop: Option<Stop>,
}

impl<'p> Fields<'p> {
    /// Writes the event record whose values `give` passes.
    #[inline(always)]
    pub(super) fn run(
        plan: &EventPlan,
        out: &mut Buffer,
        slots: &mut [u64],
        give: &mut impl FnMut(&mut Fields<'_>),
    ) -> Result<(), Stop> {
        match &plan.flat {
            Some(flat) => Fields {
                out,
                slots,
                flat: flat.iter(),
                deep: None,
                next: None,
                inside: &[],
                stop: None,
            }
            .all(give),
            None => Self::run_deep(plan, out, slots, give),
        }
    }

    /// Separate, since the walk is large: other event classes need no room for it.
    #[inline(never)]
    fn run_deep(
        plan: &EventPlan,
        out: &mut Buffer,
        slots: &mut [u64],
        give: &mut impl FnMut(&mut Fields<'_>),
    ) -> Result<(), Stop> {
        let mut deep = Deep {
            roots: plan.roots(),
            root: 0,
            open: Stack::new(),
        };
        Fields {
            out,
            slots,
            flat: [].iter(),
            deep: Some(&mut deep),
            next: None,
            inside: &[],
            stop: None,
        }
        .all(give)
    }

    #[inline(always)]
    fn all(mut self, give: &mut impl FnMut(&mut Fields<'_>)) -> Result<(), Stop> {
        self.go_on();
        give(&mut self);
        if let Some(missing) = self.next {
            self.fail(missing, FieldProblem::Missing);
        }
        match self.stop {
            None => Ok(()),
            Some(stop) => Err(stop),
        }
    }

    #[cold]
    fn fail(&mut self, node: &Node, problem: FieldProblem) {
        self.stop
            .get_or_insert_with(|| Stop::Field(node.name.clone(), problem));
        self.next = None;
    }

    #[cold]
    fn full(&mut self) {
        self.stop.get_or_insert(Stop::Full);
        self.next = None;
    }

    #[cold]
    fn too_many(&mut self) {
        let problem = FieldProblem::TooMany;
        self.stop
            .get_or_insert_with(|| Stop::Field(Name::default(), problem));
    }

    /// Advances to the next field that has a value of its own.
    #[inline(always)]
    fn go_on(&mut self) {
        if self.deep.is_some() {
            return self.go_deeper();
        }
        self.next = match self.flat.next() {
            Some(leaf) => {
                self.align(leaf.align);
                Some(&leaf.node)
            }
            None => None,
        };
    }

    /// Like `go_on`, within fields that have parts.
    #[inline(never)]
    fn go_deeper(&mut self) {
        self.next = None;
        loop {
            let Some(deep) = &mut self.deep else { return };
            let part = match deep.open.last_mut() {
                Some(Open::Parts(parts)) => parts.next(),
                Some(Open::Elements(element, left, before)) => match left.checked_sub(1) {
                    Some(less) => {
                        *left = less;
                        if element.minimum_bits == 0 {
                            let is_empty = std::mem::replace(before, self.out.pos) == self.out.pos;
                            self.out.empty += u64::from(is_empty);
                            if self.out.empty > MOST_EMPTY {
                                return self.full();
                            }
                        }
                        Some(*element)
                    }
                    None => None,
                },
                None => {
                    let Some(root) = deep.roots.get(deep.root).copied() else {
                        return;
                    };
                    deep.root += 1;
                    match root {
                        Some(root) => Some(root),
                        None => continue,
                    }
                }
            };
            match part {
                Some(part) => {
                    if self.enter(part) {
                        return;
                    }
                }
                None => self.close(),
            }
        }
    }

    fn close(&mut self) {
        if let Some(deep) = &mut self.deep {
            deep.open.pop();
        }
    }

    fn open(&mut self, open: Open<'p>) {
        if let Some(deep) = &mut self.deep {
            deep.open.push(open);
        }
    }

    /// Begins a field; true if it has a value of its own, or if no field can follow.
    fn enter(&mut self, part: Part<'p>) -> bool {
        self.align(part.align);
        match &part.kind {
            NodeKind::Struct(_) => {
                self.open(Open::Parts(part.parts()));
                false
            }
            NodeKind::Array(_) | NodeKind::Variant(_) | NodeKind::Optional(_) => {
                self.enter_rare(part)
            }
            _ => {
                self.next = Some(part.node());
                true
            }
        }
    }

    /// The kinds that depend on earlier values.
    fn enter_rare(&mut self, part: Part<'p>) -> bool {
        match &part.kind {
            // The caller may pass all elements at once.
            NodeKind::Array(_) if is_bytes(part) => {
                (self.next, self.inside) = (Some(part.node()), part.inside());
                return true;
            }
            NodeKind::Array(length) => return self.enter_array(part, *length),
            NodeKind::Variant(choice) => {
                let raw = skip::get(self.slots, choice.selector.slot);
                let option = choice.selector.select(raw);
                let Some(chosen) = option.and_then(|option| part.option(option as usize)) else {
                    self.fail(part.node(), FieldProblem::NoOption);
                    return true;
                };
                return self.enter_chosen(chosen);
            }
            NodeKind::Optional(selector) => {
                let is_there = selector
                    .select(skip::get(self.slots, selector.slot))
                    .is_some();
                if let Some(element) = part.element().filter(|_| is_there) {
                    return self.enter_chosen(element);
                }
            }
            _ => {}
        }
        false
    }

    /// Enters a selected option like a single element.
    fn enter_chosen(&mut self, chosen: Part<'p>) -> bool {
        // Selected options may be variants, nested to any depth, so they are processed from the
        // list.
        self.open(Open::Elements(chosen, 1, u64::MAX));
        false
    }

    fn enter_array(&mut self, part: Part<'p>, length: Length) -> bool {
        let Some(element) = part.element() else {
            return false;
        };
        let length = self.count(length);
        let rest = (self.out.data.len() as u64 * 8).saturating_sub(self.out.pos);
        if element.minimum_bits > 0 && length > rest / element.minimum_bits {
            self.full();
            return true;
        }
        self.open(Open::Elements(element, length, u64::MAX));
        false
    }

    fn count(&self, length: Length) -> u64 {
        match length {
            Length::Static(count) => count,
            Length::Slot(slot) => skip::get(self.slots, slot),
        }
    }

    /// The field that a value is for. For a single byte of an array of bytes: its element.
    #[inline(always)]
    fn take(&mut self) -> Option<&'p Node> {
        let Some(node) = self.next else {
            self.too_many();
            return None;
        };
        match &node.kind {
            NodeKind::Array(length) => self.take_element(node, *length),
            _ => Some(node),
        }
    }

    /// Enters an array of bytes element by element.
    #[cold]
    fn take_element(&mut self, node: &'p Node, length: Length) -> Option<&'p Node> {
        self.next = None;
        if !self.enter_array(Part::new(node, self.inside), length) {
            self.go_on();
        }
        match self.next {
            Some(next) if matches!(next.kind, NodeKind::Array(_)) => self.take(),
            Some(next) => Some(next),
            None => {
                self.too_many();
                None
            }
        }
    }

    #[inline(always)]
    fn align(&mut self, align: u32) {
        self.out.pos = align_up(self.out.pos, align);
    }

    #[inline(always)]
    fn save(&mut self, node: &Node, raw: u64) {
        for &slot in &node.saves {
            skip::set(self.slots, slot, raw);
        }
    }

    /// Writes a fixed-length field.
    #[inline(always)]
    fn fixed(&mut self, node: &Node, how: FixedRead, raw: u64) -> bool {
        if self.out.pos & 7 != 0 && how.big != self.out.big {
            self.fail(node, FieldProblem::ByteOrder);
            return false;
        }
        if !put(&mut self.out.data, self.out.pos, how, raw) {
            self.full();
            return false;
        }
        self.out.big = how.big;
        self.out.pos += u64::from(how.length);
        true
    }
}

/// True for an array whose elements are bytes that no other field depends on.
fn is_bytes(part: Part<'_>) -> bool {
    let Some(element) = part.element() else {
        return false;
    };
    let is_byte = |how: &FixedRead| how.length == 8 && !how.signed && !how.reversed;
    element.align == 8
        && element.saves.is_empty()
        && matches!(&element.kind, NodeKind::Int(how, _) if is_byte(how))
}
