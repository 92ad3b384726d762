//! Packets: header, context and event records, and finally the lengths.

use super::encode::{EncodeError, Encoder, PATCHED_VAR_INT_BYTES, Written, leb128};
use crate::bits;
use crate::value::Value;
use tracebraid_ctf::schema::{FieldClass, Roles, StreamClass, TraceClass};

/// The values of an event record; `None` if its class has no such scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventValues {
    /// Header.
    pub header: Option<Value>,
    /// Common context.
    pub common_context: Option<Value>,
    /// Specific context.
    pub specific_context: Option<Value>,
    /// Payload.
    pub payload: Option<Value>,
}

/// Writes one packet.
#[derive(Debug)]
pub struct PacketWriter<'a> {
    stream: &'a StreamClass,
    encoder: Encoder,
    head_fields: Vec<Written>,
}

impl<'a> PacketWriter<'a> {
    /// Starts a packet. The lengths in `context` are ignored: [`PacketWriter::finish`] sets them.
    ///
    /// # Errors
    /// If a value does not fit its class.
    pub fn new(
        class: &TraceClass,
        stream: &'a StreamClass,
        header: Option<&Value>,
        context: Option<&Value>,
    ) -> Result<Self, EncodeError> {
        let mut encoder = Encoder::default();
        encode(&mut encoder, class.packet_header.as_ref(), header)?;
        encode(&mut encoder, stream.packet_context.as_ref(), context)?;
        let head_fields = std::mem::take(&mut encoder.written);
        Ok(PacketWriter {
            stream,
            encoder,
            head_fields,
        })
    }

    /// Bits written so far.
    pub fn position(&self) -> u64 {
        self.encoder.position
    }

    /// Writes an event record of the class at index `class` of the stream class. Returns its
    /// start, before alignment, and its end, in bits from the packet's start.
    ///
    /// # Errors
    /// If the class does not exist, or a value does not fit its class.
    pub fn event(&mut self, class: usize, values: &EventValues) -> Result<(u64, u64), EncodeError> {
        let Some(event) = self.stream.events.get(class) else {
            return Err(EncodeError(format!(
                "no event record class at index {class}"
            )));
        };
        let start = self.encoder.position;
        let encoder = &mut self.encoder;
        encode(
            encoder,
            self.stream.event_header.as_ref(),
            values.header.as_ref(),
        )?;
        encode(
            encoder,
            self.stream.common_context.as_ref(),
            values.common_context.as_ref(),
        )?;
        encode(
            encoder,
            event.specific_context.as_ref(),
            values.specific_context.as_ref(),
        )?;
        encode(encoder, event.payload.as_ref(), values.payload.as_ref())?;
        Ok((start, encoder.position))
    }

    /// Ends the packet: appends `padding` after the byte with the content's last bit, and sets the
    /// lengths in the context. Returns the packet's bytes and the length of its content in bits.
    ///
    /// # Errors
    /// If a length does not fit its field.
    pub fn finish(mut self, padding: &[u8]) -> Result<(Vec<u8>, u64), EncodeError> {
        let content = self.encoder.position;
        let mut data = std::mem::take(&mut self.encoder.data);
        data.extend_from_slice(padding);
        let total = data.len() as u64 * 8;
        for field in &self.head_fields {
            let roles = field.class.roles;
            if roles.contains(Roles::PACKET_TOTAL_LENGTH) {
                patch(&mut data, field, total)?;
            }
            if roles.contains(Roles::PACKET_CONTENT_LENGTH) {
                patch(&mut data, field, content)?;
            }
        }
        Ok((data, content))
    }
}

fn encode(
    encoder: &mut Encoder,
    class: Option<&FieldClass>,
    value: Option<&Value>,
) -> Result<(), EncodeError> {
    match (class, value) {
        (None, None) => Ok(()),
        (Some(class), Some(value)) => encoder.field(class, value),
        _ => Err(EncodeError(
            "a scope without values, or values without a scope".into(),
        )),
    }
}

/// Changes an unsigned integer that has been written.
fn patch(data: &mut [u8], field: &Written, value: u64) -> Result<(), EncodeError> {
    let class = &field.class;
    let does_not_fit = || EncodeError(format!("{value} in a field with roles {:?}", class.roles));
    if !field.is_fixed {
        let bytes = leb128(i128::from(value), class.signed, PATCHED_VAR_INT_BYTES);
        let start = (field.position / 8) as usize;
        let place = data
            .get_mut(start..start + PATCHED_VAR_INT_BYTES as usize)
            .ok_or_else(does_not_fit)?;
        if bytes.len() != place.len() {
            return Err(does_not_fit());
        }
        place.copy_from_slice(&bytes);
        return Ok(());
    }
    if class.length < 64 && value >> class.length != 0 {
        return Err(does_not_fit());
    }
    let raw = u128::from(value);
    let raw = if class.reversed_bits {
        bits::reverse(raw, class.length)
    } else {
        raw
    };
    bits::write(data, field.position, class.length, class.byte_order, raw).ok_or_else(does_not_fit)
}
