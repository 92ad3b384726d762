//! Samples, and the trailers of all other records.

use super::attr::{Attr, read_format, sample_type as bit};
use crate::bytes::{Bytes, Short};

/// A sample. Fields that its event did not request are 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample<'a> {
    pub(crate) ip: u64,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) time: u64,
    pub(crate) addr: u64,
    pub(crate) id: u64,
    pub(crate) stream_id: u64,
    pub(crate) cpu: u32,
    pub(crate) period: u64,
    /// Addresses of eight bytes each.
    pub(crate) callchain: &'a [u8],
    pub(crate) raw: &'a [u8],
}

impl<'a> Sample<'a> {
    /// Parses a sample up to the raw data; later fields are ignored.
    pub(crate) fn parse(
        attr: &Attr,
        body: &'a [u8],
        offset: u64,
        big: bool,
    ) -> Result<Sample<'a>, Short> {
        let mut at = Bytes::new(body, offset, big);
        let mut sample = Sample::default();
        sample.read_head(attr, &mut at)?;
        if attr.has(bit::PERIOD) {
            sample.period = at.u64()?;
        }
        if attr.has(bit::READ) {
            skip_read(attr.read_format, &mut at)?;
        }
        if attr.has(bit::CALLCHAIN) {
            let short = Short {
                offset: at.offset(),
            };
            let bytes = at.u64()?.checked_mul(8).ok_or(short)?;
            sample.callchain = at.take(bytes)?;
        }
        if attr.has(bit::RAW) {
            let size = u64::from(at.u32()?);
            sample.raw = at.take(size)?;
        }
        Ok(sample)
    }

    /// Parses only the fields that contain time, thread and CPU.
    pub(crate) fn parse_head(
        attr: &Attr,
        body: &[u8],
        big: bool,
    ) -> Result<Sample<'static>, Short> {
        let mut sample = Sample::default();
        sample.read_head(attr, &mut Bytes::new(body, 0, big))?;
        Ok(sample)
    }

    fn read_head(&mut self, attr: &Attr, at: &mut Bytes<'_>) -> Result<(), Short> {
        if attr.has(bit::IDENTIFIER) {
            self.id = at.u64()?;
        }
        if attr.has(bit::IP) {
            self.ip = at.u64()?;
        }
        if attr.has(bit::TID) {
            (self.pid, self.tid) = (at.i32()?, at.i32()?);
        }
        if attr.has(bit::TIME) {
            self.time = at.u64()?;
        }
        if attr.has(bit::ADDR) {
            self.addr = at.u64()?;
        }
        if attr.has(bit::ID) {
            self.id = at.u64()?;
        }
        if attr.has(bit::STREAM_ID) {
            self.stream_id = at.u64()?;
        }
        if attr.has(bit::CPU) {
            self.cpu = at.u32()?;
            at.take(4)?;
        }
        Ok(())
    }

    /// Parses the trailer of a record that is not a sample; without a trailer, all fields are 0.
    pub(crate) fn parse_trailer(
        attr: &Attr,
        body: &[u8],
        big: bool,
    ) -> Result<Sample<'static>, Short> {
        let mut at = Bytes::new(body, 0, big);
        let before = (body.len() as u64)
            .checked_sub(attr.trailer())
            .ok_or(Short { offset: 0 })?;
        at.take(before)?;
        let mut sample = Sample::default();
        if !attr.sample_id_all {
            return Ok(sample);
        }
        if attr.has(bit::TID) {
            (sample.pid, sample.tid) = (at.i32()?, at.i32()?);
        }
        if attr.has(bit::TIME) {
            sample.time = at.u64()?;
        }
        if attr.has(bit::ID) {
            sample.id = at.u64()?;
        }
        if attr.has(bit::STREAM_ID) {
            sample.stream_id = at.u64()?;
        }
        if attr.has(bit::CPU) {
            sample.cpu = at.u32()?;
        }
        Ok(sample)
    }
}

/// Skips the values of counters.
fn skip_read(format: u64, at: &mut Bytes<'_>) -> Result<(), Short> {
    let has = |bit: u64| u64::from(format & bit != 0);
    let times = read_format::TIMES.into_iter().map(has).sum::<u64>();
    let each = 1 + has(read_format::ID) + has(read_format::LOST);
    let short = Short {
        offset: at.offset(),
    };
    let words = match format & read_format::GROUP {
        0 => each + times,
        _ => at
            .u64()?
            .checked_mul(each)
            .and_then(|words| words.checked_add(times))
            .ok_or(short)?,
    };
    at.take(words.checked_mul(8).ok_or(short)?)?;
    Ok(())
}
