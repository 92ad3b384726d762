//! The rings through which records leave the kernel: memory that BPF programs write and this
//! process maps.
//!
//! `bpf/ring.h` describes the layout. A record begins with a word that is zero until the record is
//! complete; memory without a record is zero. So a ring is read without knowing the write position:
//! it ends at the first zero word, and stale bytes are never interpreted as a record.
//!
//! **Why not BPF's ring buffer**: it takes a lock and two helper calls for each record. Here only
//! the CPU itself writes to its ring, so one compare-and-swap reserves room and one store completes
//! a record. Compared with two empty programs, two recorded events cost 109 ns more with BPF ring
//! buffers and 62 ns more with these rings, of which two readings of the clock take 44 ns. Records
//! of unknown size (system calls with the memory to which their arguments point) reserve room for
//! the largest size, and release the rest.
//!
//! # Safety
//!
//! Besides `trial`, which never reads its mapping, this is the only module with unsafe code. A
//! [`Region`] is mapped as long as it lives, and every access is checked against its size. Words
//! that both sides use are atomic. The bytes of a record are read as a plain slice, and freed ones
//! are filled with zeros, while nothing else accesses them:
//!
//! - The kernel's programs write a record before they complete its word, which is read with acquire
//!   order, and never again. They take room for another record there only below `consumed` plus the
//!   size of the ring, and `consumed` is stored, with release order, after the zeros.
//! - In this process one [`Ring`] exists for each CPU: [`rings`] takes the mappings, and `consume`
//!   borrows its ring exclusively.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::error::RecordError;
use crate::shared::{CPU_CONSUMED, CPU_SIZE, RING_SLACK, RING_WORD};

/// Sizes of all rings: `struct ring_shape`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingShape {
    /// Size of a chunk in bytes without its slack: a power of two.
    chunk: u64,
    /// Number of chunks of a ring: a power of two.
    chunks: u64,
    /// Bytes after each chunk.
    slack: u64,
}

/// Maximum size of a chunk: with its slack less than the 4 MiB that older kernels allow for an
/// element of an array.
const MOST_CHUNK: u64 = 2 << 20;
/// Number of consumed bytes after which memory is released, unless the ring is small: small enough
/// to be in the L1 cache when the bytes are zeroed, and large enough to rarely disturb the CPU that
/// reads `consumed`.
const FREED_AT_ONCE: u64 = 16 << 10;

impl RingShape {
    /// The shape of rings of `ring_bytes` bytes: a power of two, at least a page. Records may be
    /// `longer` bytes larger than usual.
    pub(crate) fn new(ring_bytes: u32, longer: u32) -> RingShape {
        let bytes = u64::from(ring_bytes).next_power_of_two();
        let chunk = bytes.min(MOST_CHUNK);
        RingShape {
            chunk,
            chunks: bytes / chunk,
            slack: RING_SLACK as u64 + u64::from(longer).next_multiple_of(RING_WORD as u64),
        }
    }

    /// Size of a chunk with its slack, which is an element of the array.
    pub(crate) fn element_bytes(&self) -> u64 {
        self.chunk + self.slack
    }

    /// Number of elements of the array for `cpus` CPUs.
    pub(crate) fn elements(&self, cpus: usize) -> u64 {
        self.chunks * cpus as u64
    }

    /// Encodes as `struct ring_shape`.
    pub(crate) fn encode(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(self.chunk * self.chunks).to_ne_bytes());
        bytes[8..16].copy_from_slice(&(self.chunk - 1).to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.chunk.trailing_zeros().to_ne_bytes());
        bytes[20..24].copy_from_slice(&(self.chunks as u32).to_ne_bytes());
        bytes[24..].copy_from_slice(&self.most_record().to_ne_bytes());
        bytes
    }

    /// Largest size of a record in bytes.
    fn most_record(&self) -> u64 {
        self.slack - RING_WORD as u64
    }

    fn offset_in_chunk(&self, position: u64) -> u64 {
        position & (self.chunk - 1)
    }

    /// The position after a record: a record that reaches the end of its chunk is followed by the
    /// next chunk.
    fn after(&self, position: u64, room: u64) -> u64 {
        match self.offset_in_chunk(position) + room {
            offset if offset < self.chunk => position + room,
            _ => (position | (self.chunk - 1)) + 1,
        }
    }
}

/// A region of shared memory.
#[derive(Debug)]
pub(crate) struct Region(MmapRaw);

impl Region {
    /// Maps a BPF array of `bytes` bytes.
    pub(crate) fn of_map(map: &impl AsRawFd, bytes: u64) -> std::io::Result<Region> {
        let bytes = usize::try_from(bytes).map_err(std::io::Error::other)?;
        MmapOptions::new()
            .len(bytes)
            .map_raw(map.as_raw_fd())
            .map(Region)
    }

    /// The address of a range; `None` if the range is outside the region.
    fn at(&self, offset: u64, bytes: u64) -> Option<*mut u8> {
        let end = offset.checked_add(bytes)?;
        let is_inside = end <= self.0.len() as u64;
        // SAFETY: the offset lies within the mapping.
        is_inside.then(|| unsafe { self.0.as_mut_ptr().add(offset as usize) })
    }

    fn word(&self, offset: u64) -> Option<&AtomicU64> {
        let at = self.at(offset, 8)?.cast::<u64>();
        // SAFETY: inside the mapping, and aligned as checked here. Words that both sides use are
        // accessed by atomic operations only, except as the head of the module justifies.
        at.is_aligned().then(|| unsafe { AtomicU64::from_ptr(at) })
    }
}

/// A ring with content that no BPF program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl From<Damaged> for RecordError {
    fn from(_: Damaged) -> Self {
        RecordError::Load("a ring contains a record of an impossible size".into())
    }
}

/// Creates the rings of `cpus` CPUs from the two arrays that contain them.
pub(crate) fn rings(chunks: Region, states: Region, shape: RingShape, cpus: usize) -> Vec<Ring> {
    let (chunks, states) = (Arc::new(chunks), Arc::new(states));
    let ring = |cpu| Ring {
        chunks: chunks.clone(),
        states: states.clone(),
        shape,
        cpu,
        position: 0,
        freed: 0,
        dirty: 0,
        freed_at_once: FREED_AT_ONCE.min(shape.chunk * shape.chunks / 4),
    };
    (0..cpus as u64).map(ring).collect()
}

/// The ring of a CPU, as its only consumer sees it.
#[derive(Debug)]
pub(crate) struct Ring {
    chunks: Arc<Region>,
    states: Arc<Region>,
    shape: RingShape,
    cpu: u64,
    /// Position of the next record.
    position: u64,
    /// Last stored value of `consumed`.
    freed: u64,
    /// Bytes from `freed` on that records have occupied. They may extend into the slack, while
    /// `position` is in the next chunk.
    dirty: u64,
    freed_at_once: u64,
}

impl Ring {
    /// Consumes at most `most` records; returns their number.
    pub(crate) fn consume(
        &mut self,
        most: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<usize, Damaged> {
        let mut taken = 0;
        while taken < most {
            let at = self.offset(self.position);
            let word = self.chunks.word(at).ok_or(Damaged)?.load(Ordering::Acquire);
            if word == 0 {
                break;
            }
            let (size, room) = (word & u64::from(u32::MAX), word >> 32);
            let is_sound = size <= self.shape.most_record()
                && room <= self.shape.slack
                && room.is_multiple_of(8);
            if !is_sound || size + RING_WORD as u64 > room {
                return Err(Damaged);
            }
            let record = self.chunks.at(at + RING_WORD as u64, size).ok_or(Damaged)?;
            // SAFETY: inside the mapping; complete and not yet freed, so that nothing writes there.
            take(unsafe { std::slice::from_raw_parts(record, size as usize) });
            taken += 1;
            self.dirty += room;
            let chunk = self.position / self.shape.chunk;
            self.position = self.shape.after(self.position, room);
            let leaves_chunk = self.position / self.shape.chunk != chunk;
            if leaves_chunk || self.dirty >= self.freed_at_once {
                self.free()?;
            }
        }
        self.free()?;
        Ok(taken)
    }

    /// Releases the consumed memory, filled with zeros.
    fn free(&mut self) -> Result<(), Damaged> {
        if self.dirty == 0 {
            return Ok(());
        }
        let at = self
            .chunks
            .at(self.offset(self.freed), self.dirty)
            .ok_or(Damaged)?;
        // SAFETY: inside the mapping; the bytes belong to records that have been consumed and not
        // released.
        unsafe { at.write_bytes(0, self.dirty as usize) };
        let consumed = self.cpu * CPU_SIZE as u64 + CPU_CONSUMED as u64;
        let consumed = self.states.word(consumed).ok_or(Damaged)?;
        consumed.store(self.position, Ordering::Release);
        (self.freed, self.dirty) = (self.position, 0);
        Ok(())
    }

    /// Offset of a position in the array.
    fn offset(&self, position: u64) -> u64 {
        let chunk =
            self.cpu * self.shape.chunks + (position / self.shape.chunk) % self.shape.chunks;
        chunk * self.shape.element_bytes() + self.shape.offset_in_chunk(position)
    }
}

#[cfg(test)]
mod tests;
