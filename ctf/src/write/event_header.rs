//! Headers of event records: an id and a timestamp, and LTTng's two forms of them.
//!
//! LTTng's usual form has a short id and the low bits of the time. If the id is too large for this
//! form, or more time has passed than these bits can represent, the short id contains an escape
//! value, and both fields follow at full length.

use super::bits::{align_up, put};
use super::error::WriteError;
use crate::bits::FixedRead;
use crate::layout::node::{Node, NodeKind};
use crate::layout::tree::{Part, Tree};
use crate::schema::Roles;

/// Content of a field of a header.
#[derive(Clone, Copy, Debug, PartialEq)]
enum HeaderField {
    Id,
    Time,
    /// The escape value.
    Escape(u64),
}

#[derive(Clone, Copy, Debug)]
struct HeaderStep {
    what: HeaderField,
    /// Alignment before the field.
    align: u32,
    how: FixedRead,
}

/// The layout of a header without alternatives.
#[derive(Clone, Debug)]
pub(super) struct Form {
    steps: Vec<HeaderStep>,
    /// Alignment after the last field.
    end_align: u32,
    /// Size in bits of its shortest timestamp, if it has one.
    time_bits: Option<u32>,
    fast: Option<Fast>,
}

/// A form of whole bytes, little endian, that is assembled as a single number.
#[derive(Clone, Copy, Debug)]
struct Fast {
    constant: u128,
    /// Bit position of the id.
    id: Option<u32>,
    /// Bit position of the timestamp, and its mask.
    time: Option<(u32, u64)>,
    bytes: usize,
}

/// The forms of a stream class's headers.
#[derive(Clone, Debug)]
pub(super) struct EventHeader {
    /// Alignment of event records.
    pub(super) align: u32,
    usual: Form,
    /// The form with an escape value.
    escaped: Option<Form>,
    /// Ranges of ids that the usual form can represent, if there are two forms.
    short_ids: Vec<(u64, u64)>,
}

/// The encoding of an event class's id in headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    id: u64,
    is_short: bool,
    is_long: bool,
    /// Both forms without their time, if they are fast.
    fast: [u128; 2],
}

impl EventHeader {
    /// Compiles a header.
    pub(super) fn new(tree: &Tree) -> Result<EventHeader, WriteError> {
        let mut header = EventHeader {
            align: 1,
            usual: Form::default(),
            escaped: None,
            short_ids: Vec::new(),
        };
        let Some(root) = tree.root() else {
            return Ok(header);
        };
        header.align = root.align;
        let mut common = Form::default();
        let variant = common.add_all(root)?;
        let Some(variant) = variant else {
            header.usual = common.finished(root.align);
            return Ok(header);
        };
        header.variant(common, variant, root.align)?;
        Ok(header)
    }

    /// Compiles the forms that the options of a variant define.
    fn variant(&mut self, common: Form, variant: Part<'_>, align: u32) -> Result<(), WriteError> {
        let NodeKind::Variant(choice) = &variant.kind else {
            return Ok(());
        };
        let (mut usual, mut escaped) = (None, None);
        for index in 0.. {
            let Some(option) = variant.option(index) else {
                break;
            };
            let ranges = choice
                .selector
                .ranges
                .iter()
                .filter(|range| range.2 as usize == index);
            let ranges: Vec<(u64, u64)> = ranges.map(|range| (range.0, range.1)).collect();
            let mut form = common.clone();
            form.pending(variant.align);
            let is_plain = form.add_all(option)?.is_none();
            let of_option = form.steps.get(common.steps.len()..).unwrap_or_default();
            let has_id = of_option.iter().any(|step| step.what == HeaderField::Id);
            match ranges.first() {
                Some(_) if is_plain && !has_id && usual.is_none() => usual = Some((form, ranges)),
                Some(&(escape, _)) if is_plain && has_id && escaped.is_none() => {
                    for step in form.steps.iter_mut().take(common.steps.len()) {
                        if step.what == HeaderField::Id {
                            step.what = HeaderField::Escape(escape);
                        }
                    }
                    escaped = Some(form);
                }
                _ => return Err(unsupported("a variant that is not LTTng's")),
            }
        }
        let has_selector = common
            .steps
            .iter()
            .filter(|step| step.what == HeaderField::Id)
            .count()
            == 1;
        let (Some((usual, ranges)), Some(escaped), true) = (usual, escaped, has_selector) else {
            return Err(unsupported("a variant that is not LTTng's"));
        };
        self.usual = usual.finished(align);
        self.escaped = Some(escaped.finished(align));
        self.short_ids = ranges;
        Ok(())
    }

    /// The encoding of an id; `None` if the id does not fit.
    pub(super) fn lead(&self, id: u64) -> Option<Lead> {
        let in_range = self
            .short_ids
            .iter()
            .any(|&(lower, upper)| lower <= id && id <= upper);
        let is_short = self.usual.holds(id) && (self.escaped.is_none() || in_range);
        let is_long = self.escaped.as_ref().is_some_and(|form| form.holds(id));
        (is_short || is_long).then(|| Lead {
            id,
            is_short,
            is_long,
            fast: [
                self.usual.lead(id),
                self.escaped.as_ref().map_or(0, |form| form.lead(id)),
            ],
        })
    }

    /// Whether headers contain an id. Without an id, a stream can only have one event class.
    pub(super) fn has_id(&self) -> bool {
        let forms = std::iter::once(&self.usual).chain(&self.escaped);
        forms
            .flat_map(|form| &form.steps)
            .any(|step| step.what == HeaderField::Id)
    }

    /// Writes a header at bit `at` for a time, in cycles, that is `passed` cycles after the value
    /// of the reader's clock. Returns its end.
    #[inline(always)]
    pub(super) fn write(
        &self,
        data: &mut [u8],
        at: u64,
        lead: &Lead,
        time: u64,
        passed: u64,
    ) -> Written {
        let (form, number) = match &self.escaped {
            _ if lead.is_short && self.usual.reaches(passed) => (&self.usual, lead.fast[0]),
            Some(escaped) if lead.is_long && escaped.reaches(passed) => (escaped, lead.fast[1]),
            _ => return Written::NotReached,
        };
        match &form.fast {
            Some(fast) if at & 7 == 0 => fast.write(data, at, number, time),
            _ => form.write(data, at, lead.id, time),
        }
    }

    /// Byte order of the last field.
    pub(super) fn big(&self) -> Option<bool> {
        self.usual.steps.last().map(|step| step.how.big)
    }
}

/// Result of writing a header.
pub(super) enum Written {
    /// The header ends at this bit.
    To(u64),
    /// The packet has no room for the header.
    Full,
    /// Too much time has passed for the timestamp.
    NotReached,
}

fn unsupported(what: &str) -> WriteError {
    WriteError::unsupported(format!("{what} in headers of event records"))
}

impl Default for Form {
    fn default() -> Self {
        Form {
            steps: Vec::new(),
            end_align: 1,
            time_bits: None,
            fast: None,
        }
    }
}

impl Form {
    fn pending(&mut self, align: u32) {
        self.end_align = self.end_align.max(align);
    }

    /// Adds the integers of a field; returns the variant at its end.
    fn add_all<'n>(&mut self, part: Part<'n>) -> Result<Option<Part<'n>>, WriteError> {
        let tree = std::iter::once((part.node(), part)).chain(inside(part));
        let mut variant = None;
        let mut skip = 0;
        for (node, part) in tree {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            match &node.kind {
                _ if variant.is_some() => return Err(unsupported("fields after a variant")),
                NodeKind::Struct(_) => self.pending(node.align),
                NodeKind::Int(how, _) => self.add(node, *how)?,
                NodeKind::Variant(_) => {
                    skip = part.inside().len();
                    variant = Some(part);
                }
                _ => {
                    return Err(unsupported("fields other than fixed-length integers"));
                }
            }
        }
        Ok(variant)
    }

    fn add(&mut self, node: &Node, how: FixedRead) -> Result<(), WriteError> {
        let what = if node.roles.contains(Roles::EVENT_CLASS_ID) {
            HeaderField::Id
        } else if node.roles.contains(Roles::CLOCK_TIMESTAMP) {
            HeaderField::Time
        } else {
            return Err(unsupported(&format!(
                "field `{}`, which is neither an id nor a timestamp,",
                node.name
            )));
        };
        if let Some(last) = self.steps.last()
            && last.how.big != how.big
        {
            return Err(unsupported("fields of both byte orders"));
        }
        let align = std::mem::replace(&mut self.end_align, 1).max(node.align);
        self.steps.push(HeaderStep { what, align, how });
        Ok(())
    }

    /// Completes the form: computes its end and its fast variant.
    fn finished(mut self, align: u32) -> Form {
        let times = self
            .steps
            .iter()
            .filter(|step| step.what == HeaderField::Time);
        self.time_bits = times.map(|step| u32::from(step.how.length)).min();
        self.fast = self.find_fast(align);
        self
    }

    fn find_fast(&self, align: u32) -> Option<Fast> {
        let mut fast = Fast {
            constant: 0,
            id: None,
            time: None,
            bytes: 0,
        };
        let mut at = 0u32;
        for step in &self.steps {
            let length = u32::from(step.how.length);
            at = at.next_multiple_of(step.align.max(1));
            if step.how.big || step.how.reversed || step.align > align || at + length > 128 {
                return None;
            }
            match step.what {
                HeaderField::Escape(value) => fast.constant |= u128::from(value) << at,
                HeaderField::Id if fast.id.is_none() => fast.id = Some(at),
                HeaderField::Time if fast.time.is_none() => {
                    fast.time = Some((at, u64::MAX >> (64 - length)))
                }
                _ => return None,
            }
            at += length;
        }
        fast.bytes = (at / 8) as usize;
        let is_whole = at.is_multiple_of(8) && align.is_multiple_of(8) && self.end_align == 1;
        is_whole.then_some(fast)
    }

    fn lead(&self, id: u64) -> u128 {
        let Some(fast) = &self.fast else { return 0 };
        fast.constant
            | fast
                .id
                .map_or(0, |at| u128::from(id).checked_shl(at).unwrap_or(0))
    }

    /// True if all id fields of the form can hold the id.
    fn holds(&self, id: u64) -> bool {
        let mut ids = self
            .steps
            .iter()
            .filter(|step| step.what == HeaderField::Id);
        ids.all(|step| super::bits::fits_unsigned(step.how, id))
    }

    /// True if the timestamp can represent that this number of cycles has passed.
    #[inline(always)]
    fn reaches(&self, passed: u64) -> bool {
        self.time_bits
            .is_none_or(|bits| bits >= 64 || passed >> bits == 0)
    }

    fn write(&self, data: &mut [u8], at: u64, id: u64, time: u64) -> Written {
        let mut at = at;
        for step in &self.steps {
            let value = match step.what {
                HeaderField::Id => id,
                HeaderField::Time => time,
                HeaderField::Escape(value) => value,
            };
            at = align_up(at, step.align);
            if !put(data, at, step.how, value) {
                return Written::Full;
            }
            at += u64::from(step.how.length);
        }
        Written::To(align_up(at, self.end_align))
    }
}

impl Fast {
    #[inline(always)]
    fn write(&self, data: &mut [u8], at: u64, lead: u128, time: u64) -> Written {
        let number = lead
            | self
                .time
                .map_or(0, |(place, mask)| u128::from(time & mask) << place);
        let bytes = number.to_le_bytes();
        let start = (at >> 3) as usize;
        let Some(rest) = data.get_mut(start..) else {
            return Written::Full;
        };
        // All bytes that are not written yet are zero, and so are the excess bytes.
        if let Some(place) = rest.first_chunk_mut() {
            *place = bytes;
        } else if let (Some(place), Some(bytes)) =
            (rest.get_mut(..self.bytes), bytes.get(..self.bytes))
        {
            place.copy_from_slice(bytes);
        } else {
            return Written::Full;
        }
        Written::To(at + self.bytes as u64 * 8)
    }
}

/// All fields within a field, each before its parts.
fn inside(part: Part<'_>) -> Vec<(&Node, Part<'_>)> {
    let mut all = Vec::new();
    let mut left: Vec<Part<'_>> = part.parts().collect();
    left.reverse();
    while let Some(part) = left.pop() {
        all.push((part.node(), part));
        let parts: Vec<Part<'_>> = part.parts().collect();
        left.extend(parts.into_iter().rev());
    }
    all
}
