//! Layout of the heads of packets and records.
//!
//! Both are in native byte order, the head of a packet 8-byte aligned, that of a record 4-byte
//! aligned: `{u16 id, u64 timestamp}`, 10 bytes, two bytes for the length of the payload, then the
//! payload, whose fields are not aligned. To readers the length is a field of the class of
//! unfinished records only; in all others it is padding before fields that begin at a multiple of
//! 4. (In the event header babeltrace2 would complain about it.) Measured against natural alignment
//! (16 bytes of head) the difference in time is below the noise, and traces are a sixth smaller; a
//! head of 8 bytes with a short timestamp would need packets cut at each wrap.
//!
//! Safety of [`Packet`]: the creator guarantees that [`HEAD`] bytes at the address are mapped for
//! as long as the value is used, and that the address is a multiple of 8. Mappings of buffers are
//! never unmapped.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) const MAGIC: u32 = 0xC1FC_1FC1;
/// Bytes of a packet's header and context.
pub(crate) const HEAD: usize = 88;
/// Bytes of a record's head.
pub(crate) const RECORD_HEAD: usize = 12;
/// Maximum number of payload bytes of a record: its head has 16 bits for the length.
pub(crate) const MOST_PAYLOAD: usize = 65_520;
pub(crate) const UNFINISHED: u16 = 0;

const UUID: usize = 4;
const STREAM_ID: usize = 20;
const INSTANCE: usize = 24;
const BEGIN: usize = 32;
pub(crate) const END: usize = 40;
pub(crate) const CONTENT: usize = 48;
const SIZE: usize = 56;
const SEQUENCE: usize = 64;
const DISCARDED: usize = 72;
const CPU: usize = 80;
const TID: usize = 84;

/// Variable fields of a new packet's head.
pub(crate) struct Head {
    pub(crate) uuid: [u8; 16],
    pub(crate) instance: u64,
    pub(crate) begin: u64,
    pub(crate) bytes: usize,
    pub(crate) sequence: u64,
    pub(crate) discarded: u64,
    pub(crate) cpu: u32,
    pub(crate) tid: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Packet(*mut u8);

impl Packet {
    /// # Safety
    /// See the module documentation.
    #[inline(always)]
    pub(crate) unsafe fn at(address: *mut u8) -> Packet {
        Packet(address)
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the head, aligned; see the module documentation.
        unsafe { &*self.0.add(offset).cast::<AtomicU64>() }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.0.add(offset).cast::<AtomicU32>() }
    }

    pub(crate) fn address(self) -> *mut u8 {
        self.0
    }

    /// Published bits of the packet.
    #[inline(always)]
    pub(crate) fn content(&self) -> &AtomicU64 {
        self.word(CONTENT)
    }

    /// Time of the last record, or of the packet's beginning.
    #[inline(always)]
    pub(crate) fn end(&self) -> &AtomicU64 {
        self.word(END)
    }

    /// Cumulative count of events that the stream has lost.
    pub(crate) fn discarded(&self) -> &AtomicU64 {
        self.word(DISCARDED)
    }

    /// Bits from its beginning to the beginning of the next packet.
    pub(crate) fn size(&self) -> &AtomicU64 {
        self.word(SIZE)
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.word(SEQUENCE).load(Ordering::Relaxed)
    }

    /// Overwrites the magic number.
    pub(crate) fn invalidate(&self) {
        self.half(0).store(0, Ordering::Release);
    }

    /// True if the magic number is present.
    pub(crate) fn is_valid(&self) -> bool {
        self.half(0).load(Ordering::Acquire) == MAGIC
    }

    /// Writes the head of an empty packet; its magic number last.
    pub(crate) fn begin(&self, head: &Head) {
        // SAFETY: within the head.
        unsafe { core::ptr::copy_nonoverlapping(head.uuid.as_ptr(), self.0.add(UUID), 16) };
        let relaxed = Ordering::Relaxed;
        self.half(STREAM_ID).store(0, relaxed);
        self.word(INSTANCE).store(head.instance, relaxed);
        self.word(BEGIN).store(head.begin, relaxed);
        self.word(END).store(head.begin, relaxed);
        self.word(CONTENT).store(HEAD as u64 * 8, relaxed);
        self.word(SIZE).store(head.bytes as u64 * 8, relaxed);
        self.word(SEQUENCE).store(head.sequence, relaxed);
        self.word(DISCARDED).store(head.discarded, relaxed);
        self.half(CPU).store(head.cpu, relaxed);
        self.half(TID).store(head.tid, relaxed);
        self.half(0).store(MAGIC, Ordering::Release);
    }
}

/// A packet's head as bytes of a file, for [`crate::finish`].
pub(crate) mod bytes {
    use super::{CONTENT, END, HEAD, MAGIC, SEQUENCE, SIZE};

    fn word(head: &[u8], at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(head.get(at..at + 8)?.try_into().ok()?))
    }

    /// The content's length in bytes and the sequence number, if the bytes are the head of a packet
    /// whose content fits in `room` bytes.
    pub(crate) fn content(packet: &[u8], room: u64) -> Option<(usize, u64)> {
        let magic = u32::from_ne_bytes(packet.get(..4)?.try_into().ok()?);
        let bits = word(packet, CONTENT)?;
        let is_sound =
            magic == MAGIC && bits % 8 == 0 && bits / 8 >= HEAD as u64 && bits / 8 <= room;
        is_sound.then_some(())?;
        Some((usize::try_from(bits / 8).ok()?, word(packet, SEQUENCE)?))
    }

    /// The packet's length in bytes, as stored in its head.
    pub(crate) fn size(packet: &[u8]) -> Option<usize> {
        usize::try_from(word(packet, SIZE)? / 8).ok()
    }

    /// Overwrites the magic number.
    pub(crate) fn forget(packet: &mut [u8]) {
        packet.iter_mut().take(4).for_each(|byte| *byte = 0);
    }

    /// Copies the end time from another head.
    pub(crate) fn take_end(packet: &mut [u8], head: &[u8]) {
        if let (Some(to), Some(from)) = (packet.get_mut(END..END + 8), head.get(END..END + 8)) {
            to.copy_from_slice(from);
        }
    }

    pub(crate) fn set_size(packet: &mut [u8], size: usize) {
        if let Some(place) = packet.get_mut(SIZE..SIZE + 8) {
            place.copy_from_slice(&(size as u64 * 8).to_ne_bytes());
        }
    }
}
