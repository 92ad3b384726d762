//! The fields of one event record, given one after the other.
//!
//! The walk over the event class is that of the reader ([`crate::walk`]), with the values coming
//! from outside: what a sequence's length or a variant's selector is, was given before.

use super::bits::{align_up, fits_signed, fits_unsigned, put};
use super::error::FieldProblem;
use super::plan::{EventPlan, Leaf};
use crate::bits::FixedRead;
use crate::layout::node::{Length, Node, NodeKind};
use crate::layout::skip;
use crate::layout::tree::{Part, Parts};
use crate::schema::{Encoding, IntClass, Name};
use crate::stack::Stack;

/// A packet's bytes while it is being filled. What is not written yet is zero.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) data: Box<[u8]>,
    /// In bits.
    pub(super) pos: u64,
    /// Byte order of the last fixed-length field.
    pub(super) big: bool,
    /// Elements of arrays that took no bits.
    pub(super) empty: u64,
}

/// Readers take so many elements without a bit for damage: they could be repeated for ever.
const MOST_EMPTY: u64 = 1 << 19;

/// Why an event record is not written.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// There is no room for it in the packet.
    Full,
    Field(Name, FieldProblem),
}

/// A field whose parts are being written.
#[derive(Debug)]
enum Open<'p> {
    Parts(Parts<'p>),
    /// So many times the element; where the one before began, if it may take no bits.
    Elements(Part<'p>, u64, u64),
}

/// A walk over fields within each other.
#[derive(Debug)]
struct Deep<'p> {
    roots: [Option<Part<'p>>; 3],
    /// The root that comes next.
    root: usize,
    open: Stack<Open<'p>>,
}

/// Takes the values of an event record's fields, in the order of the event class: those of the
/// common context, of the specific context, and of the payload. Structures, arrays, variants and
/// optionals have no value of their own: what is within follows.
///
/// The first value that is not right makes the whole event record be refused; those behind it are
/// ignored, so that no result of a single call needs to be looked at.
#[derive(Debug)]
pub struct Fields<'p> {
    out: &'p mut Buffer,
    slots: &'p mut [u64],
    /// Those that come behind the next one, if there are only plain fields and structures.
    flat: std::slice::Iter<'p, Leaf>,
    /// Where the walk is in an event class that has others.
    deep: Option<&'p mut Deep<'p>>,
    /// The field whose value comes next.
    next: Option<&'p Node>,
    /// What is within it, of an array of bytes. It stands apart: to copy at once what was written in
    /// two parts just before would make the processor wait.
    inside: &'p [Node],
    stop: Option<Stop>,
}

impl<'p> Fields<'p> {
    /// What became of the event record whose fields `give` gives.
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

    /// The walk is large: others need not make room for it.
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

    /// Goes to the next field that has a value of its own.
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

    /// The same within fields that have parts.
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

    /// Begins with a field; true if it has a value of its own, or if nothing can follow.
    fn enter(&mut self, part: Part<'p>) -> bool {
        self.align(part.align);
        match &part.kind {
            NodeKind::Struct(_) => {
                self.open(Open::Parts(part.parts()));
                false
            }
            NodeKind::Array(_) | NodeKind::Variant(_) | NodeKind::Optional(_) => self.enter_rare(part),
            _ => {
                self.next = Some(part.node());
                true
            }
        }
    }

    /// The kinds that depend on what was given before.
    fn enter_rare(&mut self, part: Part<'p>) -> bool {
        match &part.kind {
            // All of its elements may be given at once.
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
                let is_there = selector.select(skip::get(self.slots, selector.slot)).is_some();
                if let Some(element) = part.element().filter(|_| is_there) {
                    return self.enter_chosen(element);
                }
            }
            _ => {}
        }
        false
    }

    /// An option is as a member of nothing.
    fn enter_chosen(&mut self, chosen: Part<'p>) -> bool {
        // Selected options may be variants, as deep as they like: they come off the list.
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

    /// The field that a value is for. One byte of an array of bytes: its element.
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

    /// Looks at an array of bytes element by element.
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

    /// An integer that is not negative; also a boolean (0 or 1), a bit array, a bit map.
    #[inline(always)]
    pub fn uint(&mut self, value: u64) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Int(how, _) if fits_unsigned(*how, value) => self.integer(node, *how, value),
            kind => self.other_uint(node, kind, value),
        }
        self
    }

    /// An integer.
    #[inline(always)]
    pub fn int(&mut self, value: i64) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Int(how, _) if fits_signed(*how, value) => {
                self.integer(node, *how, value as u64);
            }
            NodeKind::VarInt(class) if class.signed || value >= 0 => {
                self.variable(node, class, i128::from(value));
            }
            _ if value >= 0 => self.other_uint(node, &node.kind, value as u64),
            kind => {
                let is_number = matches!(kind, NodeKind::Int(..) | NodeKind::VarInt(_));
                self.fail(
                    node,
                    if is_number {
                        FieldProblem::Range
                    } else {
                        FieldProblem::Kind
                    },
                );
            }
        }
        self
    }

    #[inline(always)]
    fn integer(&mut self, node: &Node, how: FixedRead, raw: u64) {
        if self.fixed(node, how, raw) {
            self.save(node, raw);
            self.go_on();
        }
    }

    #[cold]
    fn other_uint(&mut self, node: &Node, kind: &NodeKind, value: u64) {
        match kind {
            NodeKind::Bool(how) if value <= 1 => self.integer(node, *how, value),
            NodeKind::BitArray(how, _) | NodeKind::BitMap(how, _) if fits_unsigned(*how, value) => {
                self.integer(node, *how, value);
            }
            NodeKind::VarInt(class) if !class.signed || i64::try_from(value).is_ok() => {
                self.variable(node, class, i128::from(value));
            }
            NodeKind::Int(..)
            | NodeKind::Bool(_)
            | NodeKind::BitArray(..)
            | NodeKind::BitMap(..)
            | NodeKind::VarInt(_) => self.fail(node, FieldProblem::Range),
            _ => self.fail(node, FieldProblem::Kind),
        }
    }

    /// LEB128, in as few bytes as it needs.
    fn variable(&mut self, node: &Node, class: &IntClass, value: i128) {
        let mut rest = value;
        let mut bytes = [0u8; 10];
        let mut used = 0;
        for byte in &mut bytes {
            *byte = (rest & 0x7f) as u8;
            rest >>= 7;
            used += 1;
            let is_last = match class.signed {
                true => rest == -i128::from(*byte >> 6),
                false => rest == 0,
            };
            if is_last {
                break;
            }
            *byte |= 0x80;
        }
        self.save(node, value as u64);
        self.put_bytes(bytes.get(..used).unwrap_or_default());
    }

    /// A floating point number of 32 or 64 bits; for 32 the nearest that there is.
    pub fn float(&mut self, value: f64) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Float(how) if how.length == 64 => self.plain(node, *how, value.to_bits()),
            NodeKind::Float(how) if how.length == 32 => {
                self.plain(node, *how, u64::from((value as f32).to_bits()));
            }
            _ => self.fail(node, FieldProblem::Kind),
        }
        self
    }

    /// A floating point number of any length, as its raw IEEE 754 bits.
    pub fn float_bits(&mut self, bits: u128) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Float(how) if bits >> how.length == 0 => self.plain(node, *how, bits as u64),
            NodeKind::Float(_) => self.fail(node, FieldProblem::Range),
            NodeKind::WideFloat(half) => {
                let is_first_high = half.big != half.reversed;
                let halves = [(bits >> 64) as u64, bits as u64];
                let [first, second] = if is_first_high {
                    halves
                } else {
                    [halves[1], halves[0]]
                };
                if self.fixed(node, *half, first) {
                    self.plain(node, *half, second);
                }
            }
            _ => self.fail(node, FieldProblem::Kind),
        }
        self
    }

    fn plain(&mut self, node: &Node, how: FixedRead, raw: u64) {
        if self.fixed(node, how, raw) {
            self.go_on();
        }
    }

    /// An integer of more than 64 bits: its bytes, the least significant one first.
    pub fn wide(&mut self, bytes: &[u8]) -> &mut Self {
        let Some(node) = self.take() else { return self };
        let NodeKind::WideInt(class) = &node.kind else {
            self.fail(node, FieldProblem::Kind);
            return self;
        };
        let bit = |index: u32| {
            bytes
                .get((index / 8) as usize)
                .map_or(0, |byte| byte >> (index % 8) & 1)
        };
        let bits = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_mul(8);
        if (class.length..bits).any(|index| bit(index) != 0) {
            self.fail(node, FieldProblem::Range);
            return self;
        }
        let how = FixedRead::new(1, class.byte_order, false, false);
        for index in 0..class.length {
            let is_high_first = how.big != class.reversed_bits;
            let index = if is_high_first {
                class.length - 1 - index
            } else {
                index
            };
            if !self.fixed(node, how, u64::from(bit(index))) {
                return self;
            }
        }
        self.go_on();
        self
    }

    /// A string, or an array of characters, which is filled up with null characters.
    pub fn string(&mut self, text: &str) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Str(Encoding::Utf8) | NodeKind::SizedStr(_, Encoding::Utf8) => {
                self.bytes(text.as_bytes())
            }
            NodeKind::Str(encoding) | NodeKind::SizedStr(_, encoding) => {
                let encoded = encode(text, *encoding);
                self.bytes(&encoded)
            }
            _ => {
                self.fail(node, FieldProblem::Kind);
                self
            }
        }
    }

    /// The bytes of a string or BLOB, or of an array of 8-bit integers. Strings are not checked to be
    /// valid in their encoding; those of a fixed length are filled up with null bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let Some(node) = self.next else {
            self.too_many();
            return self;
        };
        match &node.kind {
            NodeKind::Str(encoding) => self.terminated(node, bytes, encoding.unit_bytes()),
            NodeKind::SizedStr(length, encoding) => {
                let length = self.count(*length);
                self.sized(node, bytes, length, encoding.unit_bytes());
            }
            NodeKind::Blob(length) | NodeKind::Array(length) => {
                if self.count(*length) == bytes.len() as u64 {
                    self.put_bytes(bytes);
                } else {
                    self.fail(node, FieldProblem::Range);
                }
            }
            _ => self.fail(node, FieldProblem::Kind),
        }
        self
    }

    /// A string with a null code unit behind it.
    fn terminated(&mut self, node: &Node, bytes: &[u8], unit: usize) {
        if bytes.len() % unit != 0 {
            return self.fail(node, FieldProblem::Units);
        }
        let has_null = match unit {
            1 => memchr::memchr(0, bytes).is_some(),
            unit => bytes.chunks(unit).any(|code| code.iter().all(|&byte| byte == 0)),
        };
        if has_null {
            return self.fail(node, FieldProblem::Null);
        }
        let start = (self.out.pos >> 3) as usize;
        let end = start.saturating_add(bytes.len());
        // What is not written yet is zero: so is the terminator.
        if end.saturating_add(unit) > self.out.data.len() {
            return self.full();
        }
        if let Some(place) = self.out.data.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
        self.out.pos += (bytes.len() + unit) as u64 * 8;
        self.go_on();
    }

    /// A string of so many bytes.
    fn sized(&mut self, node: &Node, bytes: &[u8], length: u64, unit: usize) {
        if bytes.len() as u64 > length {
            return self.fail(node, FieldProblem::Range);
        }
        if bytes.len() % unit != 0 || length % unit as u64 != 0 {
            return self.fail(node, FieldProblem::Units);
        }
        let start = (self.out.pos >> 3) as usize;
        let room = (self.out.data.len() as u64).saturating_sub(start as u64);
        if length > room {
            return self.full();
        }
        if let Some(place) = self.out.data.get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.out.pos += length * 8;
        self.go_on();
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        let start = (self.out.pos >> 3) as usize;
        match self.out.data.get_mut(start..start.saturating_add(bytes.len())) {
            Some(place) => place.copy_from_slice(bytes),
            None => return self.full(),
        }
        self.out.pos += bytes.len() as u64 * 8;
        self.go_on();
    }
}

/// True for an array whose elements are bytes that nothing depends on.
fn is_bytes(part: Part<'_>) -> bool {
    let Some(element) = part.element() else {
        return false;
    };
    let is_byte = |how: &FixedRead| how.length == 8 && !how.signed && !how.reversed;
    element.align == 8
        && element.saves.is_empty()
        && matches!(&element.kind, NodeKind::Int(how, _) if is_byte(how))
}

/// Text in an encoding of more than one byte.
fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Encoding::Utf32Be => text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect(),
        Encoding::Utf32Le => text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
    }
}
