//! Where the fields of a packet's head and of a record's head are.
//!
//! Both are in native byte order, the head of a packet 8-byte aligned, that of a record 4-byte
//! aligned: `{u16 id, u64 timestamp}`, 10 bytes, two bytes for the length of the payload, then the
//! payload, whose fields are not aligned. To readers the length is a field of the class of
//! unfinished records only; in all others it is padding before fields that begin at a multiple of
//! 4. (In the event header babeltrace2 would complain about it.) Measured against natural alignment
//! (16 bytes of head) the difference in time is below the noise, and traces are a sixth smaller; a
//! head of 8 bytes with a short timestamp would need packets cut at each wrap.
//!
//! Safety of [`Packet`]: whoever makes one says that [`HEAD`] bytes at that address are mapped for
//! as long as it is used, and that the address is a multiple of 8. Mappings of buffers are never
//! taken away.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// CTF's magic number of packets.
pub(crate) const MAGIC: u32 = 0xC1FC_1FC1;
/// Bytes of a packet's header and context.
pub(crate) const HEAD: usize = 88;
/// Bytes of a record's head.
pub(crate) const RECORD_HEAD: usize = 12;
/// Payload bytes of a record at most: its head tells the length in 16 bits.
pub(crate) const MOST_PAYLOAD: usize = 65_520;
/// Id of the event class of records that are not finished.
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

/// What a new packet begins with.
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

/// A packet in memory.
#[derive(Clone, Copy)]
pub(crate) struct Packet(*mut u8);

impl Packet {
    /// # Safety
    /// See the module's text.
    #[inline(always)]
    pub(crate) unsafe fn at(address: *mut u8) -> Packet {
        Packet(address)
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the head, aligned; see the module's text.
        unsafe { &*self.0.add(offset).cast::<AtomicU64>() }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.0.add(offset).cast::<AtomicU32>() }
    }

    pub(crate) fn address(self) -> *mut u8 {
        self.0
    }

    /// Bits of the packet that are published.
    #[inline(always)]
    pub(crate) fn content(&self) -> &AtomicU64 {
        self.word(CONTENT)
    }

    /// Time of the last record, or of the beginning.
    #[inline(always)]
    pub(crate) fn end(&self) -> &AtomicU64 {
        self.word(END)
    }

    /// Running count of events that the stream has lost.
    pub(crate) fn discarded(&self) -> &AtomicU64 {
        self.word(DISCARDED)
    }

    /// Bits from its beginning to that of the next packet.
    pub(crate) fn size(&self) -> &AtomicU64 {
        self.word(SIZE)
    }

    /// Number of the packet in its stream.
    pub(crate) fn sequence(&self) -> u64 {
        self.word(SEQUENCE).load(Ordering::Relaxed)
    }

    /// Makes it something that is no packet.
    pub(crate) fn invalidate(&self) {
        self.half(0).store(0, Ordering::Release);
    }

    /// Whether there is a packet.
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

    /// The content's length in bytes and the sequence number, if that is the head of a packet whose
    /// content takes no more bytes than `room`.
    pub(crate) fn content(packet: &[u8], room: u64) -> Option<(usize, u64)> {
        let magic = u32::from_ne_bytes(packet.get(..4)?.try_into().ok()?);
        let bits = word(packet, CONTENT)?;
        let is_sound =
            magic == MAGIC && bits % 8 == 0 && bits / 8 >= HEAD as u64 && bits / 8 <= room;
        is_sound.then_some(())?;
        Some((usize::try_from(bits / 8).ok()?, word(packet, SEQUENCE)?))
    }

    /// The packet's length in bytes, as its head tells.
    pub(crate) fn size(packet: &[u8]) -> Option<usize> {
        usize::try_from(word(packet, SIZE)? / 8).ok()
    }

    /// Makes it no packet.
    pub(crate) fn forget(packet: &mut [u8]) {
        packet.iter_mut().take(4).for_each(|byte| *byte = 0);
    }

    /// Takes the end of time of another head.
    pub(crate) fn take_end(packet: &mut [u8], head: &[u8]) {
        if let (Some(to), Some(from)) = (packet.get_mut(END..END + 8), head.get(END..END + 8)) {
            to.copy_from_slice(from);
        }
    }

    /// Changes the packet's length.
    pub(crate) fn set_size(packet: &mut [u8], size: usize) {
        if let Some(place) = packet.get_mut(SIZE..SIZE + 8) {
            place.copy_from_slice(&(size as u64 * 8).to_ne_bytes());
        }
    }
}
