//! Messages in the wire format of Protocol Buffers:
//! <https://protobuf.dev/programming-guides/encoding/>.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

/// Wire types.
const VARINT: u64 = 0;
const FIXED: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Adds a field of type integer, enumeration or Boolean.
    pub(crate) fn number(mut self, field: u32, value: u64) -> Self {
        self.raw(u64::from(field) << 3 | VARINT);
        self.raw(value);
        self
    }

    /// Adds a 64-bit field.
    pub(crate) fn fixed(mut self, field: u32, value: u64) -> Self {
        self.raw(u64::from(field) << 3 | FIXED);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.raw(u64::from(field) << 3 | BYTES);
        self.raw(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Adds a text field.
    pub(crate) fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// Adds a field that is a message.
    pub(crate) fn message(self, field: u32, message: Message) -> Self {
        self.bytes(field, &message.0)
    }

    /// The encoded bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the format's own documentation.
    #[test]
    fn bytes_are_as_documented() {
        assert_eq!(
            Message::default().number(1, 150).into_bytes(),
            [0x08, 0x96, 0x01]
        );
        let text = Message::default().text(2, "testing").into_bytes();
        assert_eq!(text, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let inner = Message::default().number(1, 150);
        let outer = Message::default().message(3, inner).into_bytes();
        assert_eq!(outer, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let fixed = Message::default().fixed(1, 2).into_bytes();
        assert_eq!(fixed, [0x09, 2, 0, 0, 0, 0, 0, 0, 0]);
    }
}
