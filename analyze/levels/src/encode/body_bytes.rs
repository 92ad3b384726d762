//! Encoded bodies of event records whose fields are packed and little-endian, field by field.

use tracebraid_ctf::write::fields::Fields;

use crate::names::NAME;

/// Values of the common context of all event records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) tid: i32,
    pub(super) lwp: i32,
    pub(super) ult: u64,
}

impl Context {
    /// Passes the values to the writer.
    pub(super) fn give(self, fields: &mut Fields<'_>) {
        fields
            .int(self.tid.into())
            .int(self.lwp.into())
            .uint(self.ult);
    }
}

/// The rest of a body. A field for which there is no room is left out, which the writer notices by
/// the size of the body.
pub(super) struct BodyBytes<'b>(pub(super) &'b mut [u8]);

impl BodyBytes<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> &mut Self {
        let rest = std::mem::take(&mut self.0);
        if let Some((place, rest)) = rest.split_first_chunk_mut() {
            *place = bytes;
            self.0 = rest;
        }
        self
    }

    #[inline(always)]
    pub(super) fn context(&mut self, context: Context) -> &mut Self {
        self.int32(context.tid)
            .int32(context.lwp)
            .put(context.ult.to_le_bytes())
    }

    #[inline(always)]
    pub(super) fn int8(&mut self, value: u8) -> &mut Self {
        self.put([value])
    }

    #[inline(always)]
    pub(super) fn int32(&mut self, value: i32) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    #[inline(always)]
    pub(super) fn int64(&mut self, value: i64) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    #[inline(always)]
    pub(super) fn name(&mut self, name: &[u8; NAME]) -> &mut Self {
        self.put(*name)
    }

    /// A text with the terminating null.
    pub(super) fn string(&mut self, text: &str) -> &mut Self {
        let rest = std::mem::take(&mut self.0);
        if let Some((place, rest)) = rest.split_at_mut_checked(text.len()) {
            place.copy_from_slice(text.as_bytes());
            self.0 = rest;
        }
        self.put([0])
    }
}
