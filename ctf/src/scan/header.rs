//! Positions of id and timestamp for the hot loops.
//!
//! The loops are compiled for each [`Header`] in the list of `specialised!`. The usual headers are
//! constants there: LTTng's two headers with their extended forms, and the header of babeltrace2
//! and barectf (64-bit id, 64-bit time). For all other headers, byte order and padding are
//! constants; offsets, shifts and masks are read from the table, either once into registers or, if
//! fields are aligned to more than the header, for each record by the place of the record.

use crate::layout::StreamLayout;
use crate::layout::header::{BitField, FastHeader, HeaderForm};

/// Number of ids in a table that is indexed without a check.
pub(super) const IDS: usize = 1 << 16;

/// Bits of the eight bytes at an offset from the event record's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) byte: usize,
    shift: u32,
    pub(super) mask: u64,
}

/// The layout of a header without alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) id: Field,
    pub(super) time: Field,
    pub(super) bits: u32,
}

/// Header of a stream class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The forms at the first place, if `varies`.
    pub(super) forms: Forms,
    /// The id if headers contain none, else 0.
    pub(super) only_id: u64,
    pub(super) big: bool,
    /// Event records begin at multiples of `pad + 1` bytes.
    pub(super) pad: usize,
    /// Event records may end before the byte at which the next record begins, or have fields that
    /// are aligned to more than a byte.
    pub(super) is_padded: bool,
    /// Ids of the usual form are below [`IDS`], and the header is one of those for which the loops
    /// are compiled.
    pub(super) is_direct: bool,
    /// Timestamps may be less than the clock.
    pub(super) may_go_back: bool,
    /// The forms depend on the place of the event record.
    pub(super) varies: bool,
    /// Number of bytes by which the reach of forms at other places exceeds that of the forms at the
    /// first.
    slack: usize,
}

impl Field {
    /// A field without bits; its value is 0.
    const NONE: Field = Field::new(0, 0, 0);

    const fn new(byte: usize, shift: u32, length: u32) -> Field {
        let mask = if length == 0 {
            0
        } else {
            u64::MAX >> (64 - length)
        };
        Field { byte, shift, mask }
    }

    fn of(field: Option<BitField>, big: bool) -> Option<Field> {
        let Some(field) = field else {
            return Some(Field::NONE);
        };
        let field = if field.big == big {
            field
        } else {
            field.swapped()?
        };
        // Within the first eight bytes if possible, so that one load is enough for all fields.
        let (byte, bits) = (
            field.byte.saturating_mul(8),
            64 - field.mask.leading_zeros(),
        );
        let first = match big {
            true => field.shift.checked_sub(byte),
            false => Some(field.shift.saturating_add(byte)).filter(|shift| shift + bits <= 64),
        };
        Some(Field {
            byte: if first.is_some() {
                0
            } else {
                field.byte as usize
            },
            shift: first.unwrap_or(field.shift),
            mask: field.mask,
        })
    }

    /// The value, given the eight bytes in the header's byte order.
    #[inline(always)]
    pub(super) fn value(self, word: u64) -> u64 {
        self.shifted(word) & self.mask
    }

    /// The value with the bits above it.
    #[inline(always)]
    fn shifted(self, word: u64) -> u64 {
        word >> self.shift
    }

    /// The clock at an event record: the smallest value not less than `clock` that has the bits of
    /// the field.
    #[inline(always)]
    pub(super) fn advance(self, clock: u64, word: u64) -> u64 {
        clock.wrapping_add(self.shifted(word).wrapping_sub(clock) & self.mask)
    }
}

impl Form {
    const fn new(id: Field, time: Field, bits: u32) -> Form {
        Form { id, time, bits }
    }

    fn of(form: &HeaderForm, big: bool) -> Option<Form> {
        Some(Form {
            id: Field::of(form.id, big)?,
            time: Field::of(form.timestamp, big)?,
            bits: form.bits,
        })
    }

    /// Number of bytes to the byte in which the body begins.
    #[inline(always)]
    pub(super) fn bytes(self) -> usize {
        (self.bits >> 3) as usize
    }

    /// Number of bytes that reading the form may load.
    fn reach(self) -> usize {
        self.id.byte.max(self.time.byte) + 8
    }

    fn is_multibyte_in(form: &HeaderForm, big: bool) -> bool {
        let fields = [form.id, form.timestamp];
        let mut fields = fields.into_iter().flatten();
        fields.any(|field| field.big == big && field.swapped().is_none())
    }
}

/// The forms of a header at a given place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forms {
    pub(super) usual: Form,
    /// The form after the escape value of the id.
    pub(super) extended: Option<Form>,
}

impl Forms {
    /// The forms of a header whose fields are read in this byte order.
    pub(super) fn of(header: &FastHeader, big: bool) -> Option<Forms> {
        Some(Forms {
            usual: Form::of(&header.compact, big)?,
            extended: match &header.extended {
                Some((_, form)) => Some(Form::of(form, big)?),
                None => None,
            },
        })
    }

    /// Number of bytes that reading a header of either form may load.
    fn reach(self) -> usize {
        let extended = self.extended.map_or(0, Form::reach);
        self.usual.reach().max(extended)
    }
}

fn forms_of(header: &FastHeader) -> impl Iterator<Item = &HeaderForm> {
    [&header.compact]
        .into_iter()
        .chain(header.extended.as_ref().map(|(_, form)| form))
}

impl Header {
    const SHORT: Header = Header {
        forms: Forms {
            usual: Form::new(Field::NONE, Field::NONE, 0),
            extended: None,
        },
        only_id: 0,
        big: false,
        pad: 0,
        is_padded: false,
        is_direct: true,
        may_go_back: false,
        varies: false,
        slack: 0,
    };
    /// LTTng's compact header: id and timestamp of 5 and 27 bits, or of 32 and 64.
    pub(super) const COMPACT: Header = Header {
        forms: Forms {
            usual: Form::new(Field::new(0, 0, 5), Field::new(0, 5, 27), 32),
            extended: Some(Form::new(Field::new(0, 8, 32), Field::new(5, 0, 64), 104)),
        },
        ..Header::SHORT
    };
    /// LTTng's large header: id and timestamp of 16 and 32 bits, or of 32 and 64.
    pub(super) const LARGE: Header = Header {
        forms: Forms {
            usual: Form::new(Field::new(0, 0, 16), Field::new(0, 16, 32), 48),
            extended: Some(Form::new(Field::new(0, 16, 32), Field::new(6, 0, 64), 112)),
        },
        ..Header::SHORT
    };
    /// Id and timestamp of 64 bits each: the header of babeltrace2, and the default of barectf.
    pub(super) const WIDE: Header = Header {
        forms: Forms {
            usual: Form::new(Field::new(0, 0, 64), Field::new(8, 0, 64), 128),
            extended: None,
        },
        is_direct: false,
        may_go_back: true,
        ..Header::SHORT
    };

    /// The header of a stream class, if its headers allow it. With `prefers_big`, fields of a
    /// single byte are read as big-endian fields.
    pub(super) fn new(layout: &StreamLayout, is_padded: bool, prefers_big: bool) -> Option<Header> {
        let places = layout.fast_headers();
        let fast = places.first()?;
        let forms = || places.iter().flat_map(forms_of);
        let is = |big| forms().any(|form| Form::is_multibyte_in(form, big));
        let big = is(true) || (prefers_big && !is(false));
        let header = Header {
            forms: Forms::of(fast, big)?,
            varies: places.len() > 1,
            slack: 0,
            only_id: match (fast.compact.id, layout.events.as_slice()) {
                (None, [only]) => only.id,
                _ => 0,
            },
            big,
            pad: (layout.event_align / 8).saturating_sub(1) as usize,
            is_padded,
            is_direct: false,
            may_go_back: true,
        };
        let reach = forms().map(|form| Some(Form::of(form, big)?.reach()));
        let reach = reach.collect::<Option<Vec<_>>>()?.into_iter().max();
        let header = Header {
            slack: reach?.saturating_sub(header.reach()),
            ..header
        };
        let known = [Header::COMPACT, Header::LARGE, Header::WIDE];
        let is_known = |known: &&Header| {
            header
                == Header {
                    is_direct: false,
                    may_go_back: true,
                    ..**known
                }
        };
        Some(known.iter().find(is_known).copied().unwrap_or(header))
    }

    /// The header with byte order and padding as compile-time constants, and with forms that do not
    /// vary.
    #[inline(always)]
    pub(super) fn with(self, big: bool, is_padded: bool) -> Header {
        Header {
            big,
            is_padded,
            varies: false,
            is_direct: false,
            may_go_back: true,
            ..self
        }
    }

    /// The header with forms that vary.
    #[inline(always)]
    pub(super) fn varying(self) -> Header {
        Header {
            varies: true,
            ..self
        }
    }

    /// `big` and `is_padded`, the properties of a layout that following a record's steps depends
    /// on.
    #[inline(always)]
    pub(super) fn order(self) -> (bool, bool) {
        (self.big, self.is_padded)
    }

    /// Bytes that reading the header may load.
    pub(super) fn reach(self) -> usize {
        self.forms.reach() + self.slack
    }

    /// Eight bytes in the header's byte order.
    #[inline(always)]
    pub(super) fn word(self, bytes: [u8; 8]) -> u64 {
        if self.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    }

    /// Number of bytes from the start of an event record of `size` bytes to the next record.
    #[inline(always)]
    pub(super) fn padded(self, size: usize) -> usize {
        if self.is_padded {
            size.saturating_add(self.pad) & !self.pad
        } else {
            size
        }
    }
}

/// Compiles an expression for each of the usual headers, with `$header` as constant as possible.
/// `$lookup` is a function that returns an entry, given an id in the usual form and the byte offset
/// of the event record in the packet.
macro_rules! specialised {
    ($fast:expr, |$header:ident, $lookup:ident| $run:expr) => {{
        let fast = $fast;
        match (fast.direct(), fast.header()) {
            (Some(table), Header::LARGE) => {
                let ($header, $lookup) =
                    (Header::LARGE, |id: u64, _| table[usize::from(id as u16)]);
                $run
            }
            (Some(table), Header::COMPACT) => {
                let ($header, $lookup) =
                    (Header::COMPACT, |id: u64, _| table[usize::from(id as u16)]);
                $run
            }
            (_, Header::WIDE) => {
                let $header = Header::WIDE;
                let $lookup = |id: u64, at: usize| fast.usual($header, id, at);
                $run
            }
            (_, other) if other.varies && !other.big => {
                let $header = other.with(false, true).varying();
                let $lookup = |id: u64, at: usize| fast.usual($header, id, at);
                $run
            }
            (_, other) if other.varies => {
                let $header = other.with(true, true).varying();
                let $lookup = |id: u64, at: usize| fast.usual($header, id, at);
                $run
            }
            (_, other) if !other.big && !other.is_padded => {
                let $header = other.with(false, false);
                let $lookup = |id: u64, at: usize| fast.usual($header, id, at);
                $run
            }
            (_, other) if !other.big => {
                let $header = other.with(false, true);
                let $lookup = |id: u64, at: usize| fast.usual($header, id, at);
                $run
            }
            (_, other) if !other.is_padded => {
                let $header = other.with(true, false);
                let $lookup = |id: u64, at: usize| fast.usual($header, id, at);
                $run
            }
            (_, other) => {
                let $header = other.with(true, true);
                let $lookup = |id: u64, at: usize| fast.usual($header, id, at);
                $run
            }
        }
    }};
}
pub(super) use specialised;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::layout::TraceLayout;

    /// A header with an id of this enumeration, followed by these two forms.
    fn header(id: &str, compact: &str, extended: &str) -> String {
        format!(
            "struct {{ enum : integer {{ {id} }} {{ compact = 0 ... MOST, extended }} id; variant <id> {{ \
            struct {{ integer {{ {compact} map = clock.c.value; }} timestamp; }} compact; \
            struct {{ {extended} }} extended; }} v; }} align(8)"
        )
    }

    fn of(header: &str) -> Option<Header> {
        let metadata = format!(
            "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; }}; clock {{ name = c; }}; \
            stream {{ event.header := {header}; }}; event {{ name = e; id = 3; }};"
        );
        let class = crate::tsdl::parse(metadata.as_bytes()).unwrap();
        Header::new(&TraceLayout::new(Arc::new(class)).streams[0], false, false)
    }

    #[test]
    fn usual_headers_are_known() {
        let full = "integer { size = 32; align = 8; } id; \
            integer { size = 64; align = 8; map = clock.c.value; } timestamp;";
        let compact = header("size = 5; align = 1;", "size = 27; align = 1;", full);
        assert_eq!(of(&compact.replace("MOST", "30")), Some(Header::COMPACT));
        let large = header("size = 16; align = 8;", "size = 32; align = 8;", full);
        assert_eq!(of(&large.replace("MOST", "65534")), Some(Header::LARGE));
        let wide = format!("struct {{ {} }}", full.replace("32", "64"));
        assert_eq!(of(&wide), Some(Header::WIDE));
    }

    #[test]
    fn forms_of_headers_vary_where_fields_are_aligned_to_more() {
        let full = "integer { size = 32; align = 32; } id; \
            integer { size = 64; align = 64; map = clock.c.value; } timestamp;";
        let large = header("size = 16; align = 16;", "size = 32; align = 32;", full);
        let large = large
            .replace("MOST", "65534")
            .replace("align(8)", "align(16)");
        let large = of(&large).unwrap();
        assert!(large.varies);
        let Forms { usual, extended } = large.forms;
        assert_eq!((usual.bytes(), extended.unwrap().bytes()), (8, 24));
        // The timestamp of the extended form begins at byte 16.
        assert_eq!(large.reach(), 24);
    }

    #[test]
    fn headers_without_id_and_time_have_the_only_id() {
        let none = of("struct { integer { size = 8; align = 8; } flags; }").unwrap();
        assert_eq!(
            (none.only_id, none.forms.usual.id, none.forms.usual.time),
            (3, Field::NONE, Field::NONE)
        );
    }
}
