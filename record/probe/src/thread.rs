//! The slow path: attaching a thread to a buffer, beginning the next packet or file.
//!
//! Safety: all functions run with signals blocked ([`crate::sys::Quiet`]) on the thread that owns
//! the state, so the slow part of [`ThreadState`] has one user at a time.

#![allow(unsafe_code)]

use core::sync::atomic::Ordering;

use crate::config::Mode;
use crate::packet::{HEAD, Head, Packet, RECORD_HEAD, UNFINISHED};
use crate::process::Process;
use crate::segment;
use crate::thread_state::{Buffer, RETRY_NS, ThreadState};
use crate::word::Word;
use crate::{clock, correlation, reserve, sys, tls};

const RELAXED: Ordering = Ordering::Relaxed;
/// Size in bytes of a buffer's first file in mode grow (at least four packets), and of the largest
/// file.
const FIRST_SEGMENT: usize = 256 << 10;
const MOST_SEGMENT: usize = 16 << 20;

/// A buffer that the slow path works on.
pub(crate) struct Owned<'a> {
    pub(crate) process: &'a Process,
    pub(crate) state: &'a ThreadState,
}

impl Owned<'static> {
    /// Attaches a buffer of the process to this thread; without one, uses the state in which all
    /// events are counted as lost.
    pub(crate) fn attach(process: &'static Process) -> Owned<'static> {
        let state = process.attach();
        Owned { process, state }
    }

    /// Like `attach`, for a thread that has a buffer.
    pub(crate) fn attached(
        process: &'static Process,
        state: &'static ThreadState,
    ) -> Owned<'static> {
        if process.is_nowhere(state) {
            return Owned::attach(process);
        }
        Owned { process, state }
    }
}

impl Owned<'_> {
    fn buffer(&mut self) -> &mut Buffer {
        // SAFETY: see the module documentation.
        unsafe { self.state.slow() }
    }

    /// The most recently begun packet.
    fn packet(&self) -> Option<Packet> {
        let address = self.state.packet.load(RELAXED);
        // SAFETY: begun packets stay mapped.
        (!address.is_null()).then(|| unsafe { Packet::at(address) })
    }

    /// Copies the process's current line of the clock.
    pub(crate) fn renew_clock(&mut self) {
        let line = self.process.clock();
        self.state.set_line(line);
    }

    /// Begins a packet with room for a record; marks the buffer as full if that fails.
    pub(crate) fn next_packet(&mut self, payload: usize) {
        if !self.state.is_watched() {
            // SAFETY: the state is that of this thread.
            unsafe { reserve::help(self.state) };
        }
        let need = HEAD + reserve::room(payload);
        let config = self.process.config();
        let ring = config.mode == Mode::Ring;
        // The current packet of a ring has room after it only if another thread left the packet: a
        // packet belongs to one thread.
        let place = self.behind(need);
        let place = if ring {
            place.or_else(|| self.next_slot())
        } else {
            place
        };
        match place {
            Some((address, bytes)) => self.begin_packet(address, bytes),
            None => {
                let may_grow = config.mode != Mode::Discard || self.buffer().segments == 0;
                if !may_grow {
                    self.end(0);
                } else if let Err(error) = self.next_segment(need) {
                    self.end(clock::monotonic().saturating_add(RETRY_NS));
                    self.process.leave(error);
                }
            }
        }
        if self.state.full.load(RELAXED) == 0 && config.correlation {
            correlation::record(self.state);
        }
    }

    /// If the last record is unfinished, this is a handler that has interrupted it. Notes that its
    /// packet must be searched before it is overwritten.
    ///
    /// The next reservation sees the interrupted record as the last record, and the slow path comes
    /// here: no unfinished record is missed. (Searching each packet would cost as much as a fifth
    /// of all other work.)
    pub(crate) fn note_nesting(&mut self) {
        if self.state.is_watched() {
            self.state.note_open();
        }
    }

    /// Free space after the content of the open packet, up to the end of the file less one packet
    /// head, or up to the end of a ring's slot.
    fn behind(&mut self, need: usize) -> Option<(*mut u8, usize)> {
        let packet = self.packet()?;
        let config = self.process.config();
        let segment = self.buffer().segment;
        let begin = packet.address() as usize - segment.address as usize;
        let content = usize::try_from(packet.content().load(RELAXED) / 8).ok()?;
        let offset = begin.checked_add(content.checked_next_multiple_of(8)?)?;
        let (end, kept) = match config.mode {
            Mode::Ring => ((begin / config.packet_size + 1) * config.packet_size, 0),
            Mode::Grow | Mode::Discard => (segment.bytes, HEAD),
        };
        let room = end.checked_sub(offset)?;
        // SAFETY: the offset lies within the mapping.
        (room >= need + kept).then(|| (unsafe { segment.address.add(offset) }, room))
    }

    /// The slot of a ring to overwrite next: the oldest without an unfinished record; `None` if
    /// half of the slots have unfinished records.
    fn next_slot(&mut self) -> Option<(*mut u8, usize)> {
        let bytes = self.process.config().packet_size;
        let segment = self.buffer().segment;
        let current = self.packet()?.address() as usize - segment.address as usize;
        let slots = segment.bytes / bytes;
        let nested_before = match self.state.is_watched() {
            true => self.buffer().nested_before,
            false => u64::MAX,
        };
        (1..=slots / 2).find_map(|step| {
            let offset = (current / bytes + step) % slots * bytes;
            // SAFETY: whole packets lie within the mapping.
            let first = unsafe { Packet::at(segment.address.add(offset)) };
            let is_open = |(packet, room): (Packet, usize)| {
                packet.sequence() < nested_before && has_unfinished(packet, room)
            };
            if packets_of_slot(first, bytes).any(is_open) {
                return None;
            }
            // The other packets of the slot are found only through its first.
            first.invalidate();
            Some((first.address(), bytes))
        })
    }

    /// Begins a packet of `bytes` bytes at an address, then shrinks the previous packet.
    fn begin_packet(&mut self, address: *mut u8, bytes: usize) {
        let limit = self.prepare_packet(address, bytes);
        // The previous packet extends to the end of the file or slot, unless it is in another one.
        if let Some(before) = self.packet() {
            let distance = (address as usize).wrapping_sub(before.address() as usize);
            let spans = (before.size().load(RELAXED) / 8) as usize;
            if distance < spans {
                before.size().store(distance as u64 * 8, Ordering::Release);
            }
        }
        self.enter(address, limit);
    }

    /// Writes the head of a packet; returns its limit in bytes.
    fn prepare_packet(&mut self, address: *mut u8, bytes: usize) -> u64 {
        let config = self.process.config();
        let tail = if config.mode == Mode::Ring { 0 } else { HEAD };
        let usable = config.packet_size.min(bytes.saturating_sub(tail));
        sys::populate(address, usable);
        // SAFETY: there is room for at least a head.
        let packet = unsafe { Packet::at(address) };
        let before = self.packet();
        let (discarded, end) = before.map_or((0, 0), |before| {
            (before.discarded().load(RELAXED), before.end().load(RELAXED))
        });
        // Later than all previous records: readers merge two files of a stream by time, and the
        // order of records with equal times would be undefined. The times can be equal where the
        // new line of the clock starts slightly below the old one.
        let now = self.now().max(end.saturating_add(1));
        let uuid = self.process.uuid();
        let buffer = self.buffer();
        packet.begin(&Head {
            uuid,
            instance: buffer.number,
            begin: now,
            bytes,
            sequence: buffer.sequence,
            discarded,
            cpu: sys::cpu(),
            tid: buffer.owner,
        });
        buffer.sequence += 1;
        usable as u64
    }

    fn now(&mut self) -> u64 {
        self.renew_clock();
        let line = self.state.line();
        if line.span == 0 {
            clock::monotonic()
        } else {
            line.at(clock::cycles())
        }
    }

    /// Makes a prepared packet the target of reservations.
    fn enter(&mut self, address: *mut u8, limit: u64) {
        let state = self.state;
        let segment = self.buffer().segment;
        tls::set_mapping(segment.address as usize, segment.bytes);
        // SAFETY: the packet is ready.
        let packet = unsafe { Packet::at(address) };
        state.last.store(address, RELAXED);
        state.packet.store(address, RELAXED);
        state
            .discarded
            .store(core::ptr::from_ref(packet.discarded()).cast_mut(), RELAXED);
        state.limit.store(limit, RELAXED);
        let bits = if state.is_watched() { limit * 8 } else { 0 };
        state.sequence_limit.store(bits, RELAXED);
        state.full.store(0, RELAXED);
        let word = Word(state.word.load(RELAXED));
        state.word.store(word.renewed(HEAD as u64).0, RELAXED);
    }

    /// Closes a full buffer: losses are counted in a separate packet after the last one, so that
    /// they are reported at their time.
    fn end(&mut self, retry_at: u64) {
        if let Some((address, bytes)) = self.tail() {
            self.begin_packet(address, bytes);
        }
        self.state.close(retry_at);
        if self.packet().is_none() {
            self.state
                .discarded
                .store(self.process.lost_counter(), RELAXED);
        }
    }

    /// The space of one packet head, kept free at the end of a file.
    fn tail(&mut self) -> Option<(*mut u8, usize)> {
        let packet = self.packet()?;
        let segment = self.buffer().segment;
        let content = (packet.content().load(RELAXED) / 8) as usize;
        let offset =
            packet.address() as usize - segment.address as usize + content.next_multiple_of(8);
        let is_ring = self.process.config().mode == Mode::Ring;
        // An empty packet can count losses itself.
        let is_empty = content == HEAD;
        let room = segment.bytes.checked_sub(offset)?;
        // SAFETY: within the mapping.
        (!is_ring && !is_empty && room >= HEAD)
            .then(|| (unsafe { segment.address.add(offset) }, room))
    }

    /// Continues in a new file.
    fn next_segment(&mut self, need: usize) -> Result<(), sys::Errno> {
        let bytes = self.segment_bytes(need)?;
        let buffer = self.buffer();
        let (number, index, old) = (buffer.number, buffer.segments, buffer.segment);
        let config = self.process.config();
        let is_ring = config.mode == Mode::Ring;
        let slot = is_ring.then_some(config.packet_size);
        let names = segment::names(self.process.directory(), number, index, slot);
        let new = match segment::make(&names, bytes) {
            Ok(new) => new,
            Err(error) => {
                self.process.give_back(bytes as u64);
                return Err(error);
            }
        };
        let first = slot.unwrap_or(bytes);
        let limit = self.prepare_packet(new.address, first);
        if !is_ring && let Err(error) = sys::rename(&names.hidden, &names.stream) {
            sys::unlink(&names.hidden);
            sys::unmap(new.address, new.bytes);
            self.buffer().sequence -= 1;
            self.process.give_back(bytes as u64);
            return Err(error);
        }
        // Pages of a full file are released; a probe that was interrupted there faults them in
        // again.
        if old.bytes != 0 && !is_ring {
            sys::release(old.address, old.bytes);
        }
        let buffer = self.buffer();
        buffer.segment = new;
        buffer.segments += 1;
        self.enter(new.address, limit);
        Ok(())
    }

    /// The length of the next file, if the process may still write that much.
    fn segment_bytes(&mut self, need: usize) -> Result<usize, sys::Errno> {
        let config = self.process.config();
        let fixed = config.packet_size * config.packets;
        let bytes = match config.mode {
            Mode::Ring => fixed,
            Mode::Discard => fixed + HEAD,
            Mode::Grow => {
                let least = FIRST_SEGMENT.max(4 * config.packet_size);
                let doubled = least << self.buffer().segments.min(16);
                doubled.min(MOST_SEGMENT.max(least)).next_multiple_of(4096)
            }
        };
        let least = if config.mode == Mode::Grow {
            (need + 2 * HEAD).next_multiple_of(4096)
        } else {
            bytes
        };
        let granted = self.process.take_room(bytes as u64, least as u64);
        granted.map(|granted| granted as usize).ok_or(libc::EFBIG)
    }
}

/// The packets of a ring's slot, from its first packet, each with the bytes up to the slot's end:
/// packets of ended threads, and the last packet.
fn packets_of_slot(first: Packet, bytes: usize) -> impl Iterator<Item = (Packet, usize)> {
    let begin = first.address();
    let mut offset = 0;
    core::iter::from_fn(move || {
        let room = bytes.checked_sub(offset).filter(|&room| room >= HEAD)?;
        // SAFETY: within the slot, which is mapped, at a multiple of 8.
        let packet = unsafe { Packet::at(begin.add(offset)) };
        packet.is_valid().then_some(())?;
        let size = usize::try_from(packet.size().load(RELAXED) / 8).unwrap_or(bytes);
        offset = offset.saturating_add(size.max(HEAD).next_multiple_of(8));
        Some((packet, room))
    })
}

/// True if a full packet, of which `bytes` bytes are mapped, contains an unfinished record.
fn has_unfinished(packet: Packet, bytes: usize) -> bool {
    let content = ((packet.content().load(RELAXED) / 8) as usize).min(bytes);
    let mut offset = HEAD;
    while offset + RECORD_HEAD <= content {
        // SAFETY: within the packet's content; record heads are aligned to 4 bytes.
        let (id, size) = unsafe {
            let record = packet.address().add(offset).cast::<u16>();
            (record.read_volatile(), record.add(5).read())
        };
        if id == UNFINISHED {
            return true;
        }
        offset += (RECORD_HEAD + usize::from(size)).next_multiple_of(4);
    }
    false
}
