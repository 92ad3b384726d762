//! Shorthand for schemas that are built in code, in the terms of CTF 1.8: a recorder describes its
//! events in a few lines.
//!
//! ```
//! use tracebraid_ctf::schema::build::{Align, Fields, clock, event};
//! use tracebraid_ctf::schema::{ByteOrder, Scope};
//!
//! let fields = Fields::new(Scope::Payload, ByteOrder::Little, Align::Bytes)
//!     .text("prev_comm", 16)
//!     .int("prev_tid", 32)
//!     .string("filename")
//!     .sequence("vtids", 8, |element| element.int("", 32));
//! let class = event(7, "sched_switch", fields);
//! assert_eq!(class.name, "sched_switch");
//! let monotonic = clock("monotonic", 1_000_000_000, 1_795_225_380_915_133_022);
//! assert_eq!(monotonic.frequency, 1_000_000_000);
//! ```

use std::sync::Arc;

use super::{
    ByteOrder, ClockClass, ClockOrigin, DisplayBase, Encoding, EventClass, FieldClass,
    FieldLocation, IntClass, IntRange, Mapping, Member, Name, Roles, Scope, StructClass, Uuid,
};

/// Alignment of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Fields of whole bytes are aligned to bytes, all others to bits: no padding.
    Bytes,
    /// Fields are aligned to their own size, as in C.
    Natural,
}

/// Members of a structure: of a scope, or of a nested structure.
///
/// Schemas that CTF cannot express (duplicate names, integers without bits) are rejected when the
/// schema is written.
#[derive(Clone, Debug)]
pub struct Fields {
    scope: Scope,
    /// Path to the structure.
    path: Vec<u32>,
    order: ByteOrder,
    align: Align,
    min_align: u32,
    members: Vec<Member>,
}

/// The class of an unsigned integer.
pub fn int_class(bits: u32, order: ByteOrder, align: Align) -> IntClass {
    let align = match align {
        _ if !bits.is_multiple_of(8) => 1,
        Align::Bytes => 8,
        Align::Natural => bits.max(8).checked_next_power_of_two().unwrap_or(8),
    };
    IntClass {
        length: bits,
        align,
        byte_order: order,
        reversed_bits: false,
        signed: false,
        base: DisplayBase::Decimal,
        encoding: None,
        clock: None,
        roles: Roles::NONE,
        is_enum: false,
        mappings: Arc::new([]),
    }
}

/// A clock whose value 0 is `offset` cycles after the Epoch.
pub fn clock(name: &str, frequency: u64, offset: i64) -> ClockClass {
    ClockClass {
        id: name.into(),
        name: Some(name.into()),
        namespace: None,
        uid: None,
        uuid: None,
        description: None,
        frequency,
        precision: None,
        accuracy: None,
        offset_seconds: 0,
        offset_cycles: offset,
        origin: ClockOrigin::UnixEpoch,
    }
}

/// The clock with a UUID. Clocks with the same UUID are considered the same clock.
pub fn identified(clock: ClockClass, uuid: Uuid) -> ClockClass {
    ClockClass {
        uid: Some(crate::tsdl::uuid_text(&uuid)),
        uuid: Some(uuid),
        ..clock
    }
}

/// An event class with a payload.
pub fn event(id: u64, name: &str, payload: Fields) -> EventClass {
    EventClass {
        id,
        name: name.into(),
        namespace: None,
        uid: None,
        log_level: None,
        model_emf_uri: None,
        specific_context: None,
        payload: Some(payload.build()),
    }
}

impl Fields {
    /// No fields yet, for a scope.
    pub fn new(scope: Scope, order: ByteOrder, align: Align) -> Self {
        Fields {
            scope,
            path: Vec::new(),
            order,
            align,
            min_align: 1,
            members: Vec::new(),
        }
    }

    /// The structure.
    pub fn build(self) -> FieldClass {
        FieldClass::Struct(Arc::new(StructClass {
            min_align: self.min_align,
            members: self.members,
        }))
    }

    /// Aligns the structure to this number of bits.
    pub fn aligned(mut self, bits: u32) -> Self {
        self.min_align = bits;
        self
    }

    /// Adds a member of any class.
    pub fn member(mut self, name: &str, class: FieldClass) -> Self {
        self.members.push(Member {
            name: Name::from(name),
            class,
        });
        self
    }

    fn integer(self, name: &str, bits: u32, change: impl FnOnce(IntClass) -> IntClass) -> Self {
        let class = change(int_class(bits, self.order, self.align));
        self.member(name, FieldClass::Int(Arc::new(class)))
    }

    /// Adds an unsigned integer.
    pub fn uint(self, name: &str, bits: u32) -> Self {
        self.integer(name, bits, |class| class)
    }

    /// Adds a signed integer.
    pub fn int(self, name: &str, bits: u32) -> Self {
        self.integer(name, bits, |class| IntClass {
            signed: true,
            ..class
        })
    }

    /// Adds an unsigned integer that is displayed in hexadecimal: an address or a set of flags.
    pub fn hex(self, name: &str, bits: u32) -> Self {
        let base = DisplayBase::Hexadecimal;
        self.integer(name, bits, |class| IntClass { base, ..class })
    }

    /// Adds an unsigned integer with a role in the header of a packet or event record.
    pub fn with_role(self, name: &str, bits: u32, roles: Roles) -> Self {
        self.integer(name, bits, |class| IntClass { roles, ..class })
    }

    /// Adds an enumeration: labels, each with its first and last value.
    pub fn enumeration(
        self,
        name: &str,
        bits: u32,
        signed: bool,
        labels: &[(&str, i64, i64)],
    ) -> Self {
        let mapping = |&(label, lower, upper): &(&str, i64, i64)| Mapping {
            label: label.into(),
            ranges: vec![IntRange {
                lower: lower.into(),
                upper: upper.into(),
            }],
        };
        let mappings = labels.iter().map(mapping).collect();
        self.integer(name, bits, |class| IntClass {
            signed,
            is_enum: true,
            mappings,
            ..class
        })
    }

    /// Adds a floating-point number of 16, 32, 64 or 128 bits.
    pub fn float(self, name: &str, bits: u32) -> Self {
        let class = FieldClass::Float {
            length: bits,
            align: int_class(bits, self.order, self.align).align,
            byte_order: self.order,
            reversed_bits: false,
        };
        self.member(name, class)
    }

    /// Adds a null-terminated string.
    pub fn string(self, name: &str) -> Self {
        self.member(
            name,
            FieldClass::Str {
                encoding: Encoding::Utf8,
            },
        )
    }

    fn character(&self) -> Arc<FieldClass> {
        Arc::new(FieldClass::Int(Arc::new(IntClass {
            signed: true,
            encoding: Some(Encoding::Utf8),
            ..int_class(8, self.order, Align::Bytes)
        })))
    }

    /// Adds a string in a fixed number of bytes, like the kernel's names of threads.
    pub fn text(self, name: &str, bytes: u64) -> Self {
        let element = self.character();
        self.member(
            name,
            FieldClass::Array {
                element,
                length: bytes,
                min_align: 1,
                roles: Roles::NONE,
            },
        )
    }

    /// Adds a length field of this number of bits, which LTTng names after the field that needs it.
    /// Returns its location too.
    fn length(self, name: &str, bits: u32) -> (Self, Arc<FieldLocation>) {
        let mut path = self.path.clone();
        path.push(self.members.len() as u32);
        let location = FieldLocation {
            scope: self.scope,
            paths: vec![path],
        };
        (
            self.uint(&format!("_{name}_length"), bits),
            Arc::new(location),
        )
    }

    /// Adds a string after its length in bytes, an integer of `length_bits`.
    pub fn text_sequence(self, name: &str, length_bits: u32) -> Self {
        let element = self.character();
        let (fields, length) = self.length(name, length_bits);
        fields.member(
            name,
            FieldClass::Sequence {
                element,
                length,
                min_align: 1,
            },
        )
    }

    /// The class of an element: the class of the member, if `element` adds only one.
    fn element(&self, path: Vec<u32>, element: impl FnOnce(Fields) -> Fields) -> Arc<FieldClass> {
        let empty = Fields {
            path,
            members: Vec::new(),
            min_align: 1,
            ..self.clone()
        };
        let mut built = element(empty);
        let class = match built.members.len() {
            1 => built.members.remove(0).class,
            _ => built.build(),
        };
        Arc::new(class)
    }

    /// Adds elements after their number, an integer of `length_bits`. If `element` adds a single
    /// member, that member is the element; otherwise the element is the structure of all members.
    pub fn sequence(
        self,
        name: &str,
        length_bits: u32,
        element: impl FnOnce(Fields) -> Fields,
    ) -> Self {
        let (fields, length) = self.length(name, length_bits);
        let element = fields.element(fields.way(&[0]), element);
        fields.member(
            name,
            FieldClass::Sequence {
                element,
                length,
                min_align: 1,
            },
        )
    }

    /// Adds a fixed number of elements; see [`Fields::sequence`].
    pub fn array(self, name: &str, length: u64, element: impl FnOnce(Fields) -> Fields) -> Self {
        let element = self.element(self.way(&[0]), element);
        self.member(
            name,
            FieldClass::Array {
                element,
                length,
                min_align: 1,
                roles: Roles::NONE,
            },
        )
    }

    /// Adds a structure of the members that `fields` adds.
    pub fn structure(self, name: &str, fields: impl FnOnce(Fields) -> Fields) -> Self {
        let inner = Fields {
            path: self.way(&[]),
            members: Vec::new(),
            min_align: 1,
            ..self.clone()
        };
        let class = fields(inner).build();
        self.member(name, class)
    }

    /// Path to a field within the next member.
    fn way(&self, within: &[u32]) -> Vec<u32> {
        [&self.path, &[self.members.len() as u32][..], within].concat()
    }
}
