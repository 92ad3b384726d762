//! Finding the packets of a stream file: by its index, or by reading the head of each.
//!
//! Whatever the heads say, every packet found here lies within the file, behind the one before.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::bits::{Cursor, DecodeError};
use crate::damage::Damage;
use crate::event::decode_head;
use crate::extent::{
    Content, Extent, extent, follows, is_next, is_plausible, is_same_stream, is_sound, is_unset,
};
use crate::index;
use crate::layout::{StreamLayout, TraceLayout};
use crate::packet::{HeadError, MAGIC, PacketHead};
use crate::schema::{CtfVersion, Uuid};
use crate::stream::{Packet, Stream};
use crate::trace::Trace;
use crate::tsdl::uuid_text;
use crate::window::Window;

/// What is found in one file.
pub(crate) struct FileScan {
    pub(crate) class: usize,
    pub(crate) id: Option<u64>,
    pub(crate) head: PacketHead,
    /// See [`Stream::is_mixed`].
    pub(crate) is_mixed: bool,
    pub(crate) packets: Vec<Packet>,
    /// By index.
    pub(crate) indexed: bool,
    /// A packet of the file has a UUID that is not the metadata's.
    pub(crate) is_foreign: bool,
    /// Byte ranges of the file that are of no packet.
    pub(crate) skipped: Vec<Range<u64>>,
    /// Indices of packets that do not tell where their content ends: the end is that of the
    /// last byte that is not zero.
    pub(crate) unclear: Vec<usize>,
    /// Clock values of the packets' first event records, where they were read: by index.
    pub(crate) firsts: Vec<Option<u64>>,
}

/// Bytes that are read for a head, which mostly has a few dozen bytes; longer heads are read again with more. In a
/// trace of small packets, larger reads would cover a great part of the file.
const HEAD_BYTES: usize = 512;
const MOST_HEAD_BYTES: usize = 1 << 24;
/// Bytes that are searched at a time.
const SEARCH_BYTES: usize = 1 << 16;
/// Bytes that are in memory from a found head on, unless the file ends earlier.
const SEARCH_HEAD: usize = 4096;
/// Places of a file where a packet may seem to begin and does not: after so many no more are tried.
const MOST_CANDIDATES: u64 = 1 << 20;
/// Places of a file within what packets claim for themselves that are looked at closely.
const MOST_HIDDEN: u64 = 1024;
/// Faults of one file that are told one by one.
pub(crate) const MOST_FAULTS: u64 = 1000;

/// What is said of a packet that is not the one which the index tells of.
const OTHER_PACKET: &str = "the index tells of another packet here than the file has";

/// Finds the packets of a file: by its index if that agrees with it, else by reading all heads.
/// The scans of a file that holds packets of several streams are several.
pub(crate) fn find(
    layout: &TraceLayout,
    path: &Path,
    bytes: u64,
    index_path: Option<&Path>,
    damage: &mut Vec<Damage>,
) -> io::Result<Vec<FileScan>> {
    let file = File::open(path)?;
    let mut finder = Finder {
        layout,
        path,
        file,
        bytes,
        window: Window::default(),
        slots: layout.registers(),
        decoded: None,
        candidates: 0,
        hidden: 0,
        faults: 0,
        foreign: Foreign::default(),
        damage,
    };
    if let Some(index_path) = index_path {
        let read = index::read(index_path).map_err(|error| error.to_string());
        match read.and_then(|content| index::parse(&content, bytes).map_err(|error| error.to_string())) {
            Ok(entries) => {
                if let Some(mut scan) = finder.by_index(&entries) {
                    scan.is_foreign = finder.tell_foreign(true);
                    return Ok(vec![scan]);
                }
                finder.foreign = Foreign::default();
            }
            Err(error) => finder.damage.push(Damage::of(
                index_path,
                format!("the index is not used: {error}; the packets were found in the stream file"),
            )),
        }
    }
    let mut found = finder.by_heads();
    finder.tell_how_many_faults();
    let is_foreign = finder.tell_foreign(false);
    let scans = found.iter_mut().flatten();
    scans.for_each(|scan| scan.is_foreign = is_foreign);
    found
}

struct Finder<'a> {
    layout: &'a TraceLayout,
    path: &'a Path,
    file: File,
    bytes: u64,
    window: Window,
    slots: Vec<u64>,
    /// Offset of the packet whose head was decoded last, to which the registers belong.
    decoded: Option<u64>,
    candidates: u64,
    hidden: u64,
    faults: u64,
    foreign: Foreign,
    damage: &'a mut Vec<Damage>,
}

impl Finder<'_> {
    /// The bytes with which packets begin, if they do.
    fn magic(&self) -> Option<[u8; 4]> {
        self.layout.leading_magic(MAGIC as u32)
    }

    fn complain(&mut self, damage: Damage) {
        self.faults += 1;
        if self.faults <= MOST_FAULTS {
            self.damage.push(damage);
        }
    }

    fn tell_how_many_faults(&mut self) {
        if let Some(more) = self.faults.checked_sub(MOST_FAULTS).filter(|&more| more > 0) {
            self.damage.push(Damage::of(
                self.path,
                format!("{more} more packets of this file are damaged"),
            ));
        }
    }

    /// The head at an offset, which lies before the end of the file.
    fn head(&mut self, offset: u64, clock: u64) -> io::Result<Result<PacketHead, HeadError>> {
        let mut want = HEAD_BYTES;
        self.decoded = Some(offset);
        loop {
            self.window.clear();
            self.window.ensure(&self.file, offset, want, self.bytes, want)?;
            let mut cursor = Cursor::new(self.window.bytes());
            let result = PacketHead::decode(self.layout, &mut cursor, &mut self.slots, clock);
            let short = matches!(
                result,
                Err(HeadError::Decode(
                    DecodeError::OutOfBounds { .. }
                        | DecodeError::Length { .. }
                        | DecodeError::TooLong { .. }
                ))
            );
            let more = self.bytes.saturating_sub(offset) > want as u64 && want < MOST_HEAD_BYTES;
            if !(short && more) {
                return Ok(result);
            }
            want *= 8;
        }
    }

    /// As [`Finder::head`], for where a packet should begin. One whose UUID is not the metadata's is
    /// a packet if nothing else is wrong with it: some tracers and tools write such traces, and
    /// babeltrace2 reads them. What is left of an older trace in a reused buffer is told apart by
    /// its size.
    fn identified(&mut self, offset: u64, clock: u64) -> io::Result<Result<PacketHead, HeadError>> {
        let found = self.head(offset, clock)?;
        let Ok(head) = &found else { return Ok(found) };
        if !head.is_foreign || self.foreign.has(head) {
            return Ok(found);
        }
        let declared = head.total_bits.or(head.content_bits);
        let is_possible = declared.is_none()
            || is_unset(declared)
            || self.follower(offset, head)?.is_some()
            || self.next_packet(offset.saturating_add(1))? >= self.bytes;
        if !is_possible {
            return Ok(Err(HeadError::Uuid));
        }
        Ok(found)
    }

    /// Reports packets whose UUID is not the metadata's: once per file. True if there are any.
    fn tell_foreign(&mut self, is_indexed: bool) -> bool {
        let Some((offset, uuid)) = self.foreign.first else {
            return false;
        };
        // With an index, only the first and the last packet were checked.
        let count = (!is_indexed).then_some(self.foreign.count);
        let message = foreign_uuid(count, uuid, self.layout.class.uuid);
        self.damage.push(Damage::at(self.path, offset, message));
        true
    }

    /// Trusts an index whose first and last entries agree with the packets that they tell of.
    fn by_index(&mut self, entries: &[index::IndexEntry]) -> Option<FileScan> {
        let (first, last) = (entries.first()?, entries.last()?);
        let mut scan: Option<FileScan> = None;
        for entry in [first, last] {
            let head = self.head(entry.offset, 0).ok()?.ok()?;
            let claims_more = head.total_bits.is_some_and(|total| total > entry.packet_bits);
            let is_index_right = claims_more && self.lead_to_heads(entries);
            let agrees = |told: Option<u64>, indexed| told.is_none_or(|told| told == indexed);
            let class_id = self.layout.streams.get(head.stream_class)?.id;
            let size = head.total_bits.or(head.content_bits).filter(|_| !is_index_right);
            if !agrees(size, entry.packet_bits)
                || !agrees(head.content_bits.or(head.total_bits), entry.content_bits)
                || (head.total_bits.is_none() && head.content_bits.is_none() && entries.len() > 1)
                || !agrees(head.begin, entry.begin)
                || !agrees(head.end, entry.end)
                || class_id != entry.stream_class
                || entry.content_bits < head.end_of_head
            {
                let message = "its index is not used: it tells of another packet here than the file has";
                self.damage.push(Damage::at(self.path, entry.offset, message));
                return None;
            }
            if let Some(scan) = &mut scan {
                scan.is_mixed = scan.head.values != head.values;
            }
            if head.is_foreign {
                self.foreign.add(entry.offset, &head);
            }
            scan.get_or_insert_with(|| FileScan {
                class: head.stream_class,
                id: head.stream_id,
                head,
                is_mixed: false,
                packets: Vec::new(),
                indexed: true,
                is_foreign: false,
                skipped: Vec::new(),
                unclear: Vec::new(),
                firsts: Vec::new(),
            });
        }
        let mut scan = scan?;
        let has_sequence = scan.head.sequence.is_some();
        let has_discarded = scan.head.discarded.is_some();
        let (has_begin, has_end) = (scan.head.begin.is_some(), scan.head.end.is_some());
        scan.packets.extend(entries.iter().map(|entry| {
            Packet {
                file: 0,
                offset: entry.offset,
                bytes: entry.packet_bits / 8,
                content_bits: entry.content_bits,
                clock: has_begin.then_some(entry.begin),
                begin: has_begin.then_some(entry.begin),
                end: has_end
                    .then_some(entry.end)
                    .filter(|&end| is_written(end, Some(entry.begin))),
                discarded: has_discarded.then_some(entry.discarded),
                sequence: entry.sequence.filter(|_| has_sequence),
                is_misplaced: false,
            }
        }));
        for at in 0..scan.packets.len() {
            if let Some(damage) = scan
                .packets
                .get(at)
                .and_then(|packet| backwards(self.path, packet))
            {
                self.complain(damage);
            }
        }
        if !has_begin {
            let firsts = scan.packets.iter().map(|packet| self.first_of(packet));
            scan.firsts = firsts.collect();
        }
        self.tell_how_many_faults();
        Some(scan)
    }

    /// Whether there is a packet at each place that the index tells of.
    fn lead_to_heads(&mut self, entries: &[index::IndexEntry]) -> bool {
        entries
            .iter()
            .all(|entry| matches!(self.head(entry.offset, 0), Ok(Ok(_))))
    }

    fn by_heads(&mut self) -> io::Result<Vec<FileScan>> {
        let mut scans: Vec<FileScan> = Vec::new();
        let (mut offset, mut clock) = (0, 0);
        let mut last = Last::default();
        let mut skipped_ranges = Vec::new();
        loop {
            let found = if offset < self.bytes {
                Some(self.identified(offset, clock)?)
            } else {
                None
            };
            let next = found.as_ref().map(|head| head.as_ref().ok());
            if let Some(hidden) = self.hidden_in(&last, offset, next, clock)? {
                self.cut(&mut scans, &last, hidden);
                last.is_searched = true;
                offset = hidden;
                continue;
            }
            last.is_searched = true;
            match found {
                None => break,
                Some(Ok(head)) => {
                    if head.is_foreign {
                        self.foreign.add(offset, &head);
                    }
                    // In CTF 2 each packet starts its clock at 0; tracers that write CTF 1.8 with
                    // short timestamps let it run on.
                    if self.layout.class.version == CtfVersion::V1_8 {
                        clock = head.begin.unwrap_or(clock);
                    }
                    let (packet, is_clear) = self.packet(offset, &head)?;
                    offset = offset.saturating_add(packet.bytes.max(1));
                    let first = self.first(&packet, &head);
                    last = last.followed_by(&head, packet);
                    last.scan = put(&mut scans, head, packet, first, is_clear);
                }
                Some(Err(error)) => {
                    let next = match self.behind_stranger(offset, &error)? {
                        Some(next) => next,
                        None => self.next_packet(offset.saturating_add(1))?,
                    };
                    let skipped = next.saturating_sub(offset);
                    self.complain(Damage::at(self.path, offset, error.to_string()).skipping(skipped));
                    skipped_ranges.push(offset..next);
                    offset = next;
                }
            }
        }
        for scan in &mut scans {
            scan.skipped.clone_from(&skipped_ranges);
        }
        Ok(scans)
    }

    /// Clock value of a packet's first event record, which may be earlier than the beginning that the
    /// head gives (barectf had such a fault), or the only time of a head without one.
    ///
    /// Costs no further access to the file for most packets: the bytes behind the head were read
    /// with it.
    fn first(&mut self, packet: &Packet, head: &PacketHead) -> Option<u64> {
        let layout = self.layout.streams.get(head.stream_class)?;
        // Timestamps of fewer bits go on from the head's: they cannot be earlier.
        if layout.clock.is_none() || (packet.clock.is_some() && !layout.has_full_timestamps) {
            return None;
        }
        if self.decoded != Some(packet.offset) {
            self.head(packet.offset, 0).ok()?.ok()?;
        }
        let mut want = HEAD_BYTES;
        loop {
            let filled = self
                .window
                .ensure(&self.file, packet.offset, want, self.bytes, want);
            filled.ok()?;
            let (data, base) = crate::source::slice(&self.window, packet)?;
            let have = (base + data.len() as u64) * 8;
            let mut cursor = Cursor {
                data,
                base,
                pos: head.end_of_head,
                end: have.min(packet.content_bits),
            };
            let clock = packet.clock.unwrap_or(0);
            match first_record(layout, &mut cursor, &mut self.slots, clock) {
                Ok(clock) => return Some(clock),
                Err(error)
                    if have < packet.content_bits
                        && want < MOST_HEAD_BYTES
                        && error.may_go_on(packet.content_bits) =>
                {
                    want *= 8;
                }
                Err(_) => return None,
            }
        }
    }

    /// As above for a packet whose head was not read yet.
    fn first_of(&mut self, packet: &Packet) -> Option<u64> {
        let head = self.head(packet.offset, 0).ok()?.ok()?;
        self.first(packet, &head)
    }

    /// Where a packet begins that the last one claims for itself: its size is larger than it is.
    ///
    /// `next` is what is at `offset`, its end: `None` for the end of the file, `Some(None)` for
    /// what is no packet. Padding is looked at only where something is wrong with the size: to
    /// read it all would be to read the file.
    fn hidden_in(
        &mut self,
        last: &Last,
        offset: u64,
        next: Option<Option<&PacketHead>>,
        clock: u64,
    ) -> io::Result<Option<u64>> {
        let (Some(packet), Some(head)) = (last.packet, &last.head) else {
            return Ok(None);
        };
        let padding = (packet.bytes.saturating_mul(8)).saturating_sub(packet.content_bits);
        let is_suspect = match next {
            Some(None) => padding > 0,
            Some(Some(next)) => padding >= head.end_of_head && last.is_suspect(head, Some(next)),
            None => padding >= head.end_of_head && last.is_suspect(head, None),
        };
        if last.is_searched || !is_suspect {
            return Ok(None);
        }
        let mut at = packet.offset.saturating_add(packet.content_bits.div_ceil(8));
        loop {
            let found = self.next_packet_before(at, offset)?;
            let (Some(found), true) = (found, self.hidden < MOST_HIDDEN) else {
                return Ok(None);
            };
            self.hidden += 1;
            if let Ok(hidden) = self.head(found, clock)?
                && follows(head, &hidden)
                && (matches!(next, Some(None))
                    || is_next(head, &hidden)
                    || self.follower(found, &hidden)?.is_some())
            {
                return Ok(Some(found));
            }
            at = found.saturating_add(1);
        }
    }

    /// Where a packet ends by its own size, if that is where another one begins, or the file's end.
    fn follower(&mut self, offset: u64, head: &PacketHead) -> io::Result<Option<u64>> {
        let rest = (self.bytes.saturating_sub(offset)).saturating_mul(8);
        let declared = head.total_bits.or(head.content_bits);
        let Some(total) = declared.filter(|&total| is_sound(total, head, rest)) else {
            return Ok(None);
        };
        let next = offset.saturating_add(total / 8);
        Ok((next >= self.bytes || self.head(next, 0)?.is_ok()).then_some(next))
    }

    /// Ends the last packet where the one begins that it claimed for itself.
    fn cut(&mut self, scans: &mut [FileScan], last: &Last, hidden: u64) {
        let packets = scans.get_mut(last.scan).map(|scan| &mut scan.packets);
        let Some(packet) = packets.and_then(|packets| packets.last_mut()) else {
            return;
        };
        let claimed = packet.bytes;
        packet.bytes = hidden.saturating_sub(packet.offset);
        let message = format!(
            "the packet's size ({claimed} bytes) is not true: the next packet begins after {} bytes, at byte {hidden}",
            packet.bytes
        );
        let damage = Damage::at(self.path, packet.offset, message);
        self.complain(damage);
    }

    /// End of a packet with another magic number that is otherwise sound: another packet or the end of the
    /// file follows.
    fn behind_stranger(&mut self, offset: u64, error: &HeadError) -> io::Result<Option<u64>> {
        if !matches!(error, HeadError::Magic(_)) {
            return Ok(None);
        }
        self.window.clear();
        self.window
            .ensure(&self.file, offset, HEAD_BYTES, self.bytes, HEAD_BYTES)?;
        let mut cursor = Cursor::new(self.window.bytes());
        self.decoded = None;
        let Ok(head) = PacketHead::decode_any(self.layout, &mut cursor, &mut self.slots) else {
            return Ok(None);
        };
        self.follower(offset, &head)
    }

    /// Decides where a packet ends, whatever its head says; false if the content's end is only
    /// where the last byte is that is not zero.
    fn packet(&mut self, offset: u64, head: &PacketHead) -> io::Result<(Packet, bool)> {
        let rest = (self.bytes.saturating_sub(offset)).saturating_mul(8);
        let Extent {
            total,
            content,
            complaint,
        } = extent(head, rest, self.magic().is_some());
        let total = match total {
            Some(total) => total,
            None => {
                let known = match content {
                    Content::Known(content) if content <= rest => content,
                    _ => head.end_of_head,
                };
                let behind = offset.saturating_add(known.div_ceil(8).max(1));
                self.next_packet(behind)?.saturating_sub(offset).saturating_mul(8)
            }
        };
        let is_clear = !matches!(content, Content::Open);
        let (content, skipped) = match content {
            Content::Known(content) => (content.min(total), 0),
            Content::Open => (self.written(offset, total)?.max(head.end_of_head).min(total), 0),
            Content::Unknown => (
                head.end_of_head.min(total),
                total.saturating_sub(head.end_of_head) / 8,
            ),
        };
        if let Some(complaint) = complaint {
            self.complain(Damage::at(self.path, offset, complaint).skipping(skipped));
        }
        let packet = Packet {
            file: 0,
            offset,
            bytes: total / 8,
            content_bits: content,
            clock: head.begin,
            begin: head.begin,
            end: head.end.filter(|&end| is_clear && is_written(end, head.begin)),
            discarded: head.discarded,
            sequence: head.sequence,
            is_misplaced: false,
        };
        if let Some(damage) = backwards(self.path, &packet) {
            self.complain(damage);
        }
        Ok((packet, is_clear))
    }

    /// Bits of a packet up to its last byte that is not zero.
    fn written(&mut self, offset: u64, total: u64) -> io::Result<u64> {
        let (mut at, end, mut last) = (offset, offset.saturating_add(total / 8), offset);
        while at < end {
            self.window.clear();
            self.window
                .ensure(&self.file, at, SEARCH_BYTES, end, SEARCH_BYTES)?;
            let bytes = self.window.bytes();
            if let Some(position) = bytes.iter().rposition(|&byte| byte != 0) {
                last = at + position as u64 + 1;
            }
            at += (bytes.len() as u64).max(1);
        }
        Ok((last - offset) * 8)
    }

    /// Offset of the next packet: of the magic number, if packets of this trace begin with it;
    /// else the end of the file.
    fn next_packet(&mut self, from: u64) -> io::Result<u64> {
        let found = self.next_packet_before(from, self.bytes)?;
        Ok(found.unwrap_or(self.bytes))
    }

    /// The same, if it begins before `until`.
    fn next_packet_before(&mut self, from: u64, until: u64) -> io::Result<Option<u64>> {
        let Some(magic) = self.magic() else {
            return Ok(None);
        };
        let mut at = from;
        while at < until {
            self.window.clear();
            // The padding after each packet is searched, and is often short: reads are no longer than needed.
            let most = usize::try_from(until - at).unwrap_or(usize::MAX);
            let want = SEARCH_BYTES.min(most.saturating_add(SEARCH_HEAD));
            self.window.ensure(&self.file, at, want, self.bytes, want)?;
            let bytes = self.window.bytes();
            let is_last = at + bytes.len() as u64 >= self.bytes || bytes.len() < SEARCH_HEAD;
            let mut next = at + (bytes.len() as u64).saturating_sub(3).max(1);
            for found in memchr::memmem::find_iter(bytes, &magic) {
                if !is_last && found > 0 && bytes.len() - found < SEARCH_HEAD {
                    // The head may go on behind the bytes at hand.
                    next = at + found as u64;
                    break;
                }
                self.candidates += 1;
                if self.candidates > MOST_CANDIDATES || at + found as u64 >= until {
                    return Ok(None);
                }
                let mut cursor = Cursor::new(bytes.get(found..).unwrap_or_default());
                self.decoded = None;
                let head = PacketHead::decode(self.layout, &mut cursor, &mut self.slots, 0);
                // The same bytes may occur in a payload: only a sound head is a packet.
                let rest = (self.bytes - at - found as u64).saturating_mul(8);
                let is_ours = |head: &PacketHead| !head.is_foreign || self.foreign.has(head);
                if head.is_ok_and(|head| is_ours(&head) && is_plausible(&head, rest)) {
                    return Ok(Some(at + found as u64));
                }
            }
            at = next;
        }
        Ok(None)
    }
}

/// Packets whose UUID is not the metadata's.
#[derive(Default)]
struct Foreign {
    count: u64,
    /// Offset and UUID.
    first: Option<(u64, Uuid)>,
    uuids: Vec<Uuid>,
}

/// Maximum number of foreign UUIDs of a file that are remembered.
const MOST_UUIDS: usize = 16;

impl Foreign {
    /// Whether an earlier packet has the same UUID.
    fn has(&self, head: &PacketHead) -> bool {
        head.uuid.is_some_and(|uuid| self.uuids.contains(&uuid))
    }

    fn add(&mut self, offset: u64, head: &PacketHead) {
        let Some(uuid) = head.uuid else { return };
        self.count += 1;
        self.first.get_or_insert((offset, uuid));
        if self.uuids.len() < MOST_UUIDS && !self.has(head) {
            self.uuids.push(uuid);
        }
    }
}

fn foreign_uuid(count: Option<u64>, found: Uuid, expected: Option<Uuid>) -> String {
    let (found, expected) = (uuid_text(&found), uuid_text(&expected.unwrap_or_default()));
    match count {
        Some(1) => format!(
            "the packet's UUID ({found}) is not the metadata's ({expected}): the packet is read, but may belong to \
             another trace"
        ),
        count => {
            let count = count.map_or_else(String::new, |count| format!("{count} "));
            format!(
                "the UUIDs of {count}packets ({found} here) are not the metadata's ({expected}): the packets are read, \
                 but may belong to another trace"
            )
        }
    }
}

/// The packet that was found last, to judge its size by those around it.
#[derive(Default)]
struct Last {
    packet: Option<Packet>,
    head: Option<PacketHead>,
    /// Of its scan.
    scan: usize,
    /// Bits of the packet before it.
    before: Option<u64>,
    is_searched: bool,
}

impl Last {
    fn followed_by(self, head: &PacketHead, packet: Packet) -> Last {
        Last {
            packet: Some(packet),
            head: Some(head.clone()),
            scan: 0,
            before: self.packet.map(|packet| packet.bytes.saturating_mul(8)),
            is_searched: false,
        }
    }

    /// Packets of a stream are mostly of one size, and numbered: one that is larger than one
    /// beside it, or alone, or behind which numbers are missing may hide others.
    fn is_suspect(&self, head: &PacketHead, next: Option<&PacketHead>) -> bool {
        let bits = self.packet.map_or(0, |packet| packet.bytes.saturating_mul(8));
        let after = next.and_then(|next| next.total_bits);
        let least = [self.before, after].into_iter().flatten().min();
        let is_gap = next.is_some_and(|next| {
            is_same_stream(head, next) && next.sequence != head.sequence && !is_next(head, next)
        });
        is_gap || least.is_none_or(|least| bits > least)
    }
}

/// The clock after the event record at the cursor, if all of it can be decoded.
fn first_record(
    layout: &StreamLayout,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    clock: u64,
) -> Result<u64, DecodeError> {
    if cursor.pos >= cursor.end {
        return Err(DecodeError::OutOfBounds {
            at: cursor.pos,
            wanted: u64::MAX,
        });
    }
    let head = decode_head(layout, cursor, slots, clock)?;
    if let Some(event) = layout.events.get(head.class) {
        event.body.run(cursor, slots)?;
    }
    Ok(head.clock)
}

/// Gives the index of the scan that has it now.
fn put(
    scans: &mut Vec<FileScan>,
    head: PacketHead,
    packet: Packet,
    first: Option<u64>,
    is_clear: bool,
) -> usize {
    let same = |scan: &FileScan| scan.class == head.stream_class && scan.id == head.stream_id;
    let at = scans.iter().position(same).unwrap_or(scans.len());
    match scans.get_mut(at) {
        Some(scan) => {
            if !is_clear {
                scan.unclear.push(scan.packets.len());
            }
            scan.is_mixed |= scan.head.values != head.values;
            scan.packets.push(packet);
            scan.firsts.push(first);
        }
        None => scans.push(FileScan {
            class: head.stream_class,
            id: head.stream_id,
            head,
            is_mixed: false,
            packets: vec![packet],
            indexed: false,
            is_foreign: false,
            skipped: Vec::new(),
            unclear: if is_clear { Vec::new() } else { vec![0] },
            firsts: vec![first],
        }),
    }
    at
}

/// The packet as its own head has it: what an index told of it may be of another. Also what is to
/// be said if the two disagree. The clock starts from the `begin` of the result.
pub(crate) fn as_its_head_says(
    trace: &Trace,
    stream: &Stream,
    packet: Packet,
    head: &PacketHead,
) -> (Packet, Option<String>) {
    let file = stream.files.get(packet.file as usize);
    // With an index, the packets between the first and the last were not checked before.
    let foreign = (head.is_foreign && file.is_some_and(|file| !file.is_foreign))
        .then(|| foreign_uuid(Some(1), head.uuid.unwrap_or_default(), trace.uuid()));
    if !file.is_some_and(|file| file.indexed) {
        return (packet, foreign);
    }
    let whole = packet.bytes.saturating_mul(8);
    let content = head
        .content_bits
        .or(head.total_bits)
        .unwrap_or(packet.content_bits);
    let total = head.total_bits.unwrap_or(whole);
    // The times of one that is misplaced are not those that it tells.
    let clock = if packet.is_misplaced {
        packet.clock
    } else {
        head.begin
    };
    let has_other_times = clock != packet.clock;
    let is_other = content != packet.content_bits || has_other_times;
    // Another packet of the index begins where this one ends by it.
    let complaint = if !is_other && total > whole {
        Some(format!(
            "the packet's size ({} bytes) is not true: by the index it has {} bytes",
            total / 8,
            packet.bytes
        ))
    } else if is_other || total != whole {
        Some(OTHER_PACKET.to_owned())
    } else {
        foreign
    };
    let is_possible = content >= head.end_of_head && content <= whole;
    let content_bits = if is_possible { content } else { packet.content_bits };
    let (begin, end) = if has_other_times {
        (clock, head.end.filter(|&end| is_written(end, clock)))
    } else {
        (packet.begin, packet.end)
    };
    (
        Packet {
            content_bits,
            clock,
            begin,
            end,
            ..packet
        },
        complaint,
    )
}

/// Whether a packet's end is a time. It is zero, or all ones, where the tracer did not live to write it.
fn is_written(end: u64, begin: Option<u64>) -> bool {
    end != u64::MAX && (end > 0 || begin == Some(0))
}

/// What is wrong with a packet that ends before it begins.
fn backwards(path: &Path, packet: &Packet) -> Option<Damage> {
    let (begin, end) = (packet.begin?, packet.end?);
    let message = format!("the packet's end ({end} cycles) is before its beginning ({begin} cycles)");
    (end < begin).then(|| Damage::at(path, packet.offset, message))
}
