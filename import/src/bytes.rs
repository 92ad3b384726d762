//! A reader of numbers and strings from bytes that may be truncated.

use crate::error::ImportError;

/// A position in bytes that were read from a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    data: &'a [u8],
    at: usize,
    /// Offset of the bytes in the file.
    base: u64,
    big: bool,
}

/// The bytes end too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    /// Offset of the failed read, in bytes from the beginning of the file.
    pub(crate) offset: u64,
}

impl From<Short> for ImportError {
    fn from(short: Short) -> ImportError {
        ImportError::malformed(short.offset, "the data ends unexpectedly")
    }
}

impl<'a> Bytes<'a> {
    /// Reads `data`, which begins at `base` in the file; big endian if `big`.
    pub(crate) fn new(data: &'a [u8], base: u64, big: bool) -> Self {
        let at = 0;
        Bytes {
            data,
            at,
            base,
            big,
        }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(crate) fn is_big(&self) -> bool {
        self.big
    }

    /// The remaining bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn take(&mut self, count: u64) -> Result<&'a [u8], Short> {
        let short = Short {
            offset: self.offset(),
        };
        let count = usize::try_from(count).map_err(|_| short)?;
        let taken = self.rest().get(..count).ok_or(short)?;
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Short> {
        Ok(number(self.take(1)?, self.big) as u8)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Short> {
        Ok(number(self.take(2)?, self.big) as u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Short> {
        Ok(number(self.take(4)?, self.big) as u32)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Short> {
        Ok(self.u32()? as i32)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Short> {
        Ok(number(self.take(8)?, self.big))
    }

    /// An unsigned LEB128 number of at most 64 bits, as Go's `encoding/binary` writes it.
    pub(crate) fn uvarint(&mut self) -> Result<u64, Short> {
        let short = Short {
            offset: self.offset(),
        };
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = number(self.take(1)?, self.big);
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                return Err(short);
            }
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(short)
    }

    /// The bytes before the next null character, which is skipped.
    pub(crate) fn string(&mut self) -> Result<&'a [u8], Short> {
        let rest = self.rest();
        let Some(length) = rest.iter().position(|&byte| byte == 0) else {
            return Err(Short {
                offset: self.offset(),
            });
        };
        self.at += length + 1;
        Ok(rest.get(..length).unwrap_or_default())
    }
}

/// An unsigned number of at most eight bytes.
pub(crate) fn number(bytes: &[u8], big: bool) -> u64 {
    let join = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    match big {
        true => bytes.iter().fold(0, join),
        false => bytes.iter().rev().fold(0, join),
    }
}

/// The bytes before the first null character.
pub(crate) fn before_null(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The text before the first null character.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(before_null(bytes)).into_owned()
}
