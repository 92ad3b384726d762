//! Whether a trace can have a byte with bits of both byte orders.

use crate::schema::{ByteOrder, FieldClass, IntClass, StreamClass, TraceClass};

/// True if there are fields of both byte orders, and fields that need not begin or end at a byte
/// boundary. Only then must decoding check for bytes with bits of both orders.
pub(super) fn is_mixed(class: &TraceClass) -> bool {
    let of_streams = class.streams.iter().flat_map(StreamClass::scopes);
    let mut found = Found::default();
    for root in class.packet_header.iter().chain(of_streams) {
        root.all().for_each(|class| found.look(class));
    }
    found.little && found.big && found.bits
}

#[derive(Default)]
struct Found {
    little: bool,
    big: bool,
    bits: bool,
}

impl Found {
    fn look(&mut self, class: &FieldClass) {
        match class {
            FieldClass::Int(int)
            | FieldClass::Bool(int)
            | FieldClass::BitArray(int)
            | FieldClass::BitMap(int) => self.int(int),
            FieldClass::Float {
                align, byte_order, ..
            } => self.field(*byte_order, *align < 8),
            _ => {}
        }
    }

    fn int(&mut self, class: &IntClass) {
        self.field(
            class.byte_order,
            class.align < 8 || !class.length.is_multiple_of(8),
        );
    }

    fn field(&mut self, order: ByteOrder, bits: bool) {
        self.little |= order == ByteOrder::Little;
        self.big |= order == ByteOrder::Big;
        self.bits |= bits;
    }
}
