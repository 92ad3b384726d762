//! The schema of a trace: the contents of its metadata after parsing, name resolution and
//! validation.
//!
//! Both metadata languages (TSDL of CTF 1.8 and JSON of CTF 2) produce these types. Code above them
//! does not depend on the language, except where the two formats decode data differently
//! ([`TraceClass::version`]).
//!
//! Units: sizes, lengths and alignments of fixed-length fields are in **bits**; lengths of strings
//! and BLOBs are in **bytes**.
//!
//! A trace may have a million event classes, and field classes nested as deeply. So names and
//! locations are shared, and no function here recurses (see `nesting`).

pub mod build;
mod name;
mod nesting;

use std::sync::Arc;

pub use name::Name;
pub(crate) use name::Names;
pub use nesting::{All, MOST_LEVELS, Parts};

/// Version of the Common Trace Format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtfVersion {
    /// CTF 1.8: TSDL metadata.
    V1_8,
    /// CTF 2: JSON text sequence metadata.
    V2_0,
}

/// Byte order of a fixed-length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// A universally unique identifier, as 16 raw bytes.
pub type Uuid = [u8; 16];

/// The contents of the metadata stream of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceClass {
    /// Version of the format.
    pub version: CtfVersion,
    /// CTF 2 `namespace` of the trace class.
    pub namespace: Option<String>,
    /// CTF 2 `name` of the trace class.
    pub name: Option<String>,
    /// CTF 2 `uid` of the trace class.
    pub uid: Option<String>,
    /// The trace's UUID (CTF 1.8 `trace.uuid`) or the metadata stream's (CTF 2 preamble).
    pub uuid: Option<Uuid>,
    /// CTF 1.8 `trace.byte_order`; without effect in CTF 2 (where it is `Little`).
    pub byte_order: ByteOrder,
    /// The environment, in the order of the metadata.
    pub environment: Vec<(String, EnvValue)>,
    /// Packet header; always a [`FieldClass::Struct`].
    pub packet_header: Option<FieldClass>,
    /// Clock classes, in the order of the metadata.
    pub clocks: Vec<ClockClass>,
    /// Data stream classes, in the order of the metadata.
    pub streams: Vec<StreamClass>,
}

/// A value of the environment.
#[derive(Clone, Debug, PartialEq)]
pub enum EnvValue {
    /// An integer. Values above `i64::MAX` only occur in CTF 1.8.
    Int(i128),
    /// A string.
    Str(String),
}

/// Index of a clock class in [`TraceClass::clocks`].
pub type ClockIndex = usize;

/// A clock class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockClass {
    /// CTF 2 `id`, or the CTF 1.8 name, by which fields refer to the clock.
    pub id: String,
    /// Name, if the clock has one.
    pub name: Option<String>,
    /// CTF 2 namespace.
    pub namespace: Option<String>,
    /// CTF 2 uid, or the CTF 1.8 UUID in its canonical text form.
    pub uid: Option<String>,
    /// CTF 1.8 UUID.
    pub uuid: Option<Uuid>,
    /// Free text.
    pub description: Option<String>,
    /// Frequency in Hz; at least 1.
    pub frequency: u64,
    /// Precision in cycles (CTF 1.8 `precision`, default 0, which means unknown).
    pub precision: Option<u64>,
    /// Accuracy in cycles (CTF 2).
    pub accuracy: Option<u64>,
    /// Offset from the origin: whole seconds.
    pub offset_seconds: i64,
    /// Offset from the origin: additional cycles. In `0..frequency` for CTF 2; in CTF 1.8 any
    /// value, which may be negative or more than a second.
    pub offset_cycles: i64,
    /// The origin to which the offset is added.
    pub origin: ClockOrigin,
}

/// Origin of a clock class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockOrigin {
    /// 1970-01-01T00:00:00Z. CTF 1.8: `absolute = TRUE`; also assumed for LTTng's traces.
    UnixEpoch,
    /// Unknown: times of different clocks cannot be compared.
    Unknown,
    /// A custom origin of CTF 2; clocks with equal origins are comparable.
    Custom {
        /// Namespace.
        namespace: Option<String>,
        /// Name.
        name: String,
        /// Unique identifier.
        uid: String,
    },
}

/// A data stream class.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamClass {
    /// Id of the class; 0 if the metadata contains none.
    pub id: u64,
    /// CTF 2 namespace.
    pub namespace: Option<String>,
    /// CTF 2 name.
    pub name: Option<String>,
    /// CTF 2 uid.
    pub uid: Option<String>,
    /// The clock of event records and packets: CTF 2 `default-clock-class-id`; CTF 1.8: the clock
    /// to which the fields of the event header and packet context are mapped.
    pub default_clock: Option<ClockIndex>,
    /// Packet context; a struct.
    pub packet_context: Option<FieldClass>,
    /// Event record header; a struct.
    pub event_header: Option<FieldClass>,
    /// Common context of event records (CTF 1.8 `event.context` of the stream); a struct.
    pub common_context: Option<FieldClass>,
    /// Event record classes, in the order of the metadata; their ids are distinct.
    pub events: Vec<EventClass>,
}

impl StreamClass {
    /// The field classes of all scopes of this class and of its event record classes.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = &FieldClass> {
        let own = [
            &self.packet_context,
            &self.event_header,
            &self.common_context,
        ];
        let events = self.events.iter();
        let events = events.flat_map(|event| [&event.specific_context, &event.payload]);
        own.into_iter().chain(events).flatten()
    }
}

/// An event record class.
#[derive(Clone, Debug, PartialEq)]
pub struct EventClass {
    /// Id of the class; 0 if the metadata contains none.
    pub id: u64,
    /// Name of the class; empty if the metadata contains none.
    pub name: Name,
    /// CTF 2 namespace.
    pub namespace: Option<Name>,
    /// CTF 2 uid.
    pub uid: Option<Name>,
    /// CTF 1.8 `loglevel`, or LTTng's attribute in CTF 2.
    pub log_level: Option<i64>,
    /// CTF 1.8 `model.emf.uri`, or LTTng's attribute in CTF 2.
    pub model_emf_uri: Option<Name>,
    /// Specific context; a struct.
    pub specific_context: Option<FieldClass>,
    /// Payload; a struct.
    pub payload: Option<FieldClass>,
}

/// The parts of a packet and of an event record, in the order in which they are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Packet header.
    PacketHeader,
    /// Packet context.
    PacketContext,
    /// Event record header.
    EventHeader,
    /// Event record common context.
    CommonContext,
    /// Event record specific context.
    SpecificContext,
    /// Event record payload.
    Payload,
}

/// Meanings of a field for the reader, besides its value.
///
/// In CTF 1.8, the TSDL front end assigns roles by member name (`magic`, `uuid`, `stream_id`, ...)
/// and by clock mapping; in CTF 2, the metadata names them. A field may have several roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Roles(pub u16);

impl Roles {
    /// No role.
    pub const NONE: Roles = Roles(0);
    /// Packet header: the magic number 0xC1FC1FC1.
    pub const PACKET_MAGIC: Roles = Roles(1 << 0);
    /// Packet header: UUID of the trace (CTF 1.8) or metadata stream (CTF 2).
    pub const METADATA_UUID: Roles = Roles(1 << 1);
    /// Packet header: id of the data stream's class.
    pub const STREAM_CLASS_ID: Roles = Roles(1 << 2);
    /// Packet header: id of the data stream within its class.
    pub const STREAM_ID: Roles = Roles(1 << 3);
    /// Packet context: total length of the packet, in bits.
    pub const PACKET_TOTAL_LENGTH: Roles = Roles(1 << 4);
    /// Packet context: length of the packet's content, in bits.
    pub const PACKET_CONTENT_LENGTH: Roles = Roles(1 << 5);
    /// Packet context: sequence number of the packet in its stream.
    pub const PACKET_SEQUENCE_NUMBER: Roles = Roles(1 << 6);
    /// Packet context: running count of discarded event records.
    pub const DISCARDED_EVENTS: Roles = Roles(1 << 7);
    /// Packet context: time of the packet's end (CTF 1.8 `timestamp_end`).
    pub const PACKET_END_TIMESTAMP: Roles = Roles(1 << 8);
    /// Packet context or event header: value of the default clock, or its low bits, which this
    /// field updates (CTF 1.8 `timestamp_begin`, and any event-header integer mapped to a clock).
    pub const CLOCK_TIMESTAMP: Roles = Roles(1 << 9);
    /// Event header: id of the event record's class. The last such field decoded counts.
    pub const EVENT_CLASS_ID: Roles = Roles(1 << 10);

    /// True if every role of `other` is in `self`.
    pub fn contains(self, other: Roles) -> bool {
        self.0 & other.0 == other.0
    }
    /// True if there are no roles.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl std::ops::BitOr for Roles {
    type Output = Roles;
    fn bitor(self, rhs: Roles) -> Roles {
        Roles(self.0 | rhs.0)
    }
}

impl std::ops::BitOrAssign for Roles {
    fn bitor_assign(&mut self, rhs: Roles) {
        self.0 |= rhs.0;
    }
}

/// Preferred radix for displaying an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisplayBase {
    /// Base 2.
    Binary,
    /// Base 8.
    Octal,
    /// Base 10.
    #[default]
    Decimal,
    /// Base 16.
    Hexadecimal,
}

/// Character encoding of a string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 (and ASCII): code units of one byte.
    #[default]
    Utf8,
    /// UTF-16, big endian: code units of two bytes.
    Utf16Be,
    /// UTF-16, little endian.
    Utf16Le,
    /// UTF-32, big endian: code units of four bytes.
    Utf32Be,
    /// UTF-32, little endian.
    Utf32Le,
}

impl Encoding {
    /// Size of a code unit in bytes: 1, 2 or 4.
    pub fn unit_bytes(self) -> usize {
        match self {
            Encoding::Utf8 => 1,
            Encoding::Utf16Be | Encoding::Utf16Le => 2,
            Encoding::Utf32Be | Encoding::Utf32Le => 4,
        }
    }
}

/// An inclusive range of integers, wide enough for all values of `u64` and `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntRange {
    /// Lower bound.
    pub lower: i128,
    /// Upper bound; not less than `lower`.
    pub upper: i128,
}

impl IntRange {
    /// True if `value` is in the range.
    pub fn contains(self, value: i128) -> bool {
        self.lower <= value && value <= self.upper
    }
}

/// A named set of integer ranges: an enumeration's label, or a mapping of CTF 2.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// The label. Labels are distinct within a field class: repeated labels of TSDL become a single
    /// mapping with several ranges, at the position of the first.
    pub label: String,
    /// Ranges of the label, in the order of the metadata.
    pub ranges: Vec<IntRange>,
}

/// Absolute location of the integer or boolean field that contains a length or selects an option,
/// after name resolution.
///
/// A path has an index for each step down from the scope's root structure: the member's index in a
/// structure, the option's index in a variant, 0 through an array, a sequence or an optional (the
/// element that is being decoded). There are several paths if a variant on the path has candidates
/// in more than one of its options; the field that was decoded last counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldLocation {
    /// Scope of the target.
    pub scope: Scope,
    /// Paths of the possible targets; at least one.
    pub paths: Vec<Vec<u32>>,
}

/// A fixed-length integer, possibly with mappings (an enumeration).
#[derive(Clone, Debug, PartialEq)]
pub struct IntClass {
    /// Length in bits, at least 1. More than 64 only in CTF 1.8, where such a field is represented
    /// as raw bits.
    pub length: u32,
    /// Alignment in bits: a power of two.
    pub align: u32,
    /// Byte order.
    pub byte_order: ByteOrder,
    /// CTF 2 `bit-order`. True if the first bit of the stream is the *most* significant bit of each
    /// byte for little-endian fields, or the reverse of the order that the byte order implies in
    /// CTF 1.8. False: the bit order that corresponds to `byte_order`.
    pub reversed_bits: bool,
    /// Two's complement.
    pub signed: bool,
    /// Preferred radix for display.
    pub base: DisplayBase,
    /// CTF 1.8 `encoding`: arrays and sequences of such 8-bit integers are text.
    pub encoding: Option<Encoding>,
    /// CTF 1.8 `map = clock.NAME.value`.
    pub clock: Option<ClockIndex>,
    /// Roles of the field.
    pub roles: Roles,
    /// True if it is an enumeration in CTF 1.8, or has a non-empty `mappings` in CTF 2.
    pub is_enum: bool,
    /// Labels of the values.
    pub mappings: Arc<[Mapping]>,
}

/// A field class. Clones share the nested classes.
#[derive(Clone)]
pub enum FieldClass {
    /// Fixed-length integer or enumeration.
    Int(Arc<IntClass>),
    /// CTF 2 fixed-length boolean: true if not zero.
    Bool(Arc<IntClass>),
    /// CTF 2 fixed-length bit array: bits without integer meaning and without flags.
    BitArray(Arc<IntClass>),
    /// CTF 2 fixed-length bit map: `mappings` are the flags (ranges of bit positions).
    BitMap(Arc<IntClass>),
    /// CTF 2 variable-length integer (LEB128), byte-aligned; `length`, `align` and
    /// `byte_order` have no meaning.
    VarInt(Arc<IntClass>),
    /// IEEE 754 binary floating-point number of 16, 32, 64 or 128 bits.
    Float {
        /// 16, 32, 64 or 128.
        length: u32,
        /// Alignment in bits.
        align: u32,
        /// Byte order.
        byte_order: ByteOrder,
        /// See [`IntClass::reversed_bits`].
        reversed_bits: bool,
    },
    /// Null-terminated string, byte-aligned.
    Str {
        /// Encoding of the string.
        encoding: Encoding,
    },
    /// String of a fixed number of bytes, byte-aligned; ends before its first null code unit.
    StaticStr {
        /// Length in bytes.
        length: u64,
        /// Encoding of the string.
        encoding: Encoding,
    },
    /// String whose length in bytes is in another field.
    DynStr {
        /// Location of the length.
        length: Arc<FieldLocation>,
        /// Encoding of the string.
        encoding: Encoding,
    },
    /// BLOB of a fixed number of bytes, byte-aligned.
    StaticBlob {
        /// Length in bytes.
        length: u64,
        /// IANA media type.
        media_type: Option<Name>,
        /// Roles: only [`Roles::METADATA_UUID`] occurs.
        roles: Roles,
    },
    /// BLOB whose length in bytes is in another field.
    DynBlob {
        /// Location of the length.
        length: Arc<FieldLocation>,
        /// IANA media type.
        media_type: Option<Name>,
    },
    /// Array of fixed length.
    Array {
        /// Class of the elements.
        element: Arc<FieldClass>,
        /// Number of elements.
        length: u64,
        /// Minimum alignment in bits (CTF 2), else 1.
        min_align: u32,
        /// Roles: only [`Roles::METADATA_UUID`] occurs (CTF 1.8 `uint8_t uuid[16]`).
        roles: Roles,
    },
    /// Array whose length is in another field.
    Sequence {
        /// Class of the elements.
        element: Arc<FieldClass>,
        /// Location of the length.
        length: Arc<FieldLocation>,
        /// Minimum alignment in bits (CTF 2), else 1.
        min_align: u32,
    },
    /// Structure.
    Struct(Arc<StructClass>),
    /// Variant: several options, of which another field selects one.
    Variant(Arc<VariantClass>),
    /// CTF 2 optional: present or not, selected by another field.
    Optional(Arc<OptionalClass>),
}

/// A structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StructClass {
    /// Minimum alignment in bits: a power of two, 1 if the metadata contains none. The structure's
    /// alignment is the largest of this value and its members' alignments.
    pub min_align: u32,
    /// Members in the order of decoding; names are distinct.
    pub members: Vec<Member>,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Name as displayed: in CTF 1.8 without the leading underscore that the format adds as an
    /// escape.
    pub name: Name,
    /// Class of the member.
    pub class: FieldClass,
}

/// An optional.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionalClass {
    /// Location of the selector.
    pub selector: Arc<FieldLocation>,
    /// `None`: the selector is a boolean. Otherwise, the integer ranges for which the field is
    /// present.
    pub ranges: Option<Vec<IntRange>>,
    /// Class of the field if present.
    pub element: FieldClass,
}

/// A variant.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantClass {
    /// Location of the selector.
    pub selector: Arc<FieldLocation>,
    /// Options, in the order of the metadata.
    pub options: Vec<VariantOption>,
}

/// An option of a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantOption {
    /// Name as displayed (CTF 1.8: without the escaping underscore), if the option has one.
    pub name: Option<Name>,
    /// Values of the selector that select the option. In CTF 1.8, the values of the enumeration's
    /// label; empty if the enumeration lacks the label, so that the option can never be selected.
    pub ranges: Vec<IntRange>,
    /// Class of the option.
    pub class: FieldClass,
}

impl TraceClass {
    /// The value of the environment with this name.
    pub fn env(&self, name: &str) -> Option<&EnvValue> {
        self.environment
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }
    /// The string of the environment with this name.
    pub fn env_str(&self, name: &str) -> Option<&str> {
        match self.env(name) {
            Some(EnvValue::Str(text)) => Some(text),
            _ => None,
        }
    }
    /// The data stream class with this id.
    pub fn stream_class(&self, id: u64) -> Option<&StreamClass> {
        self.streams.iter().find(|class| class.id == id)
    }
}
