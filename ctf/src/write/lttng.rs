//! Schemas with the structure of LTTng's traces, which all readers support and read fastest.

use std::sync::Arc;

use crate::schema::build::{Align, Fields, int_class};
use crate::schema::{
    ByteOrder, ClockIndex, CtfVersion, FieldClass, FieldLocation, IntClass, IntRange, Mapping,
    Roles, Scope, StreamClass, TraceClass, Uuid, VariantClass, VariantOption,
};

/// LTTng's two kinds of event headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// Ids below 31 in 5 bits, and 27 bits of the time. For streams with few event classes.
    Compact,
    /// Ids below 65535 in 16 bits, and 32 bits of the time.
    Large,
}

/// A trace class of CTF 1.8 that contains only LTTng's packet header.
pub fn trace_class(uuid: Uuid, order: ByteOrder) -> TraceClass {
    let fields = Fields::new(Scope::PacketHeader, order, Align::Bytes)
        .with_role("magic", 32, Roles::PACKET_MAGIC)
        .member(
            "uuid",
            FieldClass::Array {
                element: Arc::new(FieldClass::Int(Arc::new(int_class(8, order, Align::Bytes)))),
                length: 16,
                min_align: 1,
                roles: Roles::METADATA_UUID,
            },
        )
        .with_role("stream_id", 32, Roles::STREAM_CLASS_ID)
        .with_role("stream_instance_id", 64, Roles::STREAM_ID);
    TraceClass {
        version: CtfVersion::V1_8,
        namespace: None,
        name: None,
        uid: None,
        uuid: Some(uuid),
        byte_order: order,
        environment: Vec::new(),
        packet_header: Some(fields.build()),
        clocks: Vec::new(),
        streams: Vec::new(),
    }
}

/// A stream class with LTTng's event header and LTTng's packet context, followed by `context`:
/// names and sizes in bits of unsigned integers (`cpu_id` and 32 for the kernel's streams).
pub fn stream_class(
    id: u64,
    order: ByteOrder,
    clock: ClockIndex,
    header: HeaderKind,
    context: &[(&str, u32)],
) -> StreamClass {
    let timestamp = |roles| {
        FieldClass::Int(Arc::new(IntClass {
            clock: Some(clock),
            roles,
            ..int_class(64, order, Align::Bytes)
        }))
    };
    let mut fields = Fields::new(Scope::PacketContext, order, Align::Bytes)
        .member("timestamp_begin", timestamp(Roles::CLOCK_TIMESTAMP))
        .member("timestamp_end", timestamp(Roles::PACKET_END_TIMESTAMP))
        .with_role("content_size", 64, Roles::PACKET_CONTENT_LENGTH)
        .with_role("packet_size", 64, Roles::PACKET_TOTAL_LENGTH)
        .with_role("packet_seq_num", 64, Roles::PACKET_SEQUENCE_NUMBER)
        .with_role("events_discarded", 64, Roles::DISCARDED_EVENTS);
    for (name, bits) in context {
        fields = fields.uint(name, *bits);
    }
    StreamClass {
        id,
        namespace: None,
        name: None,
        uid: None,
        default_clock: Some(clock),
        packet_context: Some(fields.build()),
        event_header: Some(event_header(order, clock, header)),
        common_context: None,
        events: Vec::new(),
    }
}

fn event_header(order: ByteOrder, clock: ClockIndex, header: HeaderKind) -> FieldClass {
    let (id_bits, time_bits) = match header {
        HeaderKind::Compact => (5, 27),
        HeaderKind::Large => (16, 32),
    };
    let escape = (1i128 << id_bits) - 1;
    let range = |lower, upper| vec![IntRange { lower, upper }];
    let (short, long) = (range(0, escape - 1), range(escape, escape));
    let mapping = |label: &str, ranges: &Vec<IntRange>| Mapping {
        label: label.into(),
        ranges: ranges.clone(),
    };
    let id = IntClass {
        roles: Roles::EVENT_CLASS_ID,
        is_enum: true,
        mappings: Arc::new([mapping("compact", &short), mapping("extended", &long)]),
        ..int_class(id_bits, order, Align::Bytes)
    };
    let time = |bits| {
        FieldClass::Int(Arc::new(IntClass {
            clock: Some(clock),
            roles: Roles::CLOCK_TIMESTAMP,
            ..int_class(bits, order, Align::Bytes)
        }))
    };
    let fields = || Fields::new(Scope::EventHeader, order, Align::Bytes);
    let compact = fields().member("timestamp", time(time_bits));
    let extended = fields()
        .with_role("id", 32, Roles::EVENT_CLASS_ID)
        .member("timestamp", time(64));
    let option = |name: &str, ranges, fields: Fields| VariantOption {
        name: Some(name.into()),
        ranges,
        class: fields.build(),
    };
    let variant = VariantClass {
        selector: Arc::new(FieldLocation {
            scope: Scope::EventHeader,
            paths: vec![vec![0]],
        }),
        options: vec![
            option("compact", short, compact),
            option("extended", long, extended),
        ],
    };
    fields()
        .member("id", FieldClass::Int(Arc::new(id)))
        .member("v", FieldClass::Variant(Arc::new(variant)))
        .aligned(8)
        .build()
}
