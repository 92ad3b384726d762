//! Completion of a session's files after their processes have ended, however they ended.
//!
//! Stream files lose the padding after their last packet; rings become stream files, with their
//! packets in the order in which they were begun. A file is rewritten aside and renamed when it is
//! complete, so completion can be interrupted and repeated; a process that still runs unnoticed
//! keeps its own old file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::config::MOST_PACKET;
use crate::control::Control;
use crate::guarded::{self, Directory};
use crate::packet::{self, HEAD};

/// Result of completing a session's traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Number of completed traces.
    pub traces: usize,
    /// Traces of running processes. Their files are unchanged, except that for each ring a stream
    /// with its current content was written.
    pub running: Vec<PathBuf>,
    /// Traces with a file that could not be completed, and the error.
    pub failed: Vec<(PathBuf, String)>,
}

/// Completes all traces of a session whose processes have ended.
///
/// # Errors
/// If the session's directory cannot be read; failures of single traces are in the result.
pub fn finish(session: &Path) -> io::Result<Finished> {
    let mut finished = Finished::default();
    let parent = session.join("ust").join("pid");
    if !parent.exists() {
        return fs::read_dir(session).map(|_| finished);
    }
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        if name_of(&path).starts_with('.') {
            if let Err(error) = remove_incomplete(&path) {
                finished.failed.push((path, error.to_string()));
            }
            continue;
        }
        let directory = match Directory::open(&path) {
            Ok(Some(directory)) => directory,
            Ok(None) => continue,
            Err(error) => {
                finished.failed.push((path, error.to_string()));
                continue;
            }
        };
        let trace = directory.path();
        match Control::open(trace) {
            Ok(control) if control.is_running() => {
                if let Err(error) = write_rings(trace, trace) {
                    finished.failed.push((path.clone(), error.to_string()));
                }
                finished.running.push(path);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                finished.failed.push((path, error.to_string()));
            }
            // Without a control file the trace has been completed, or its process was killed before
            // there was a trace.
            Ok(_) | Err(_) => match finish_trace(trace) {
                Ok(()) => finished.traces += 1,
                Err(error) => finished.failed.push((path, error.to_string())),
            },
        }
    }
    finished.running.sort();
    finished.failed.sort();
    Ok(finished)
}

/// Copies a session's traces into another directory in their current state, rings in order; their
/// processes may run. Returns the number of traces.
///
/// # Errors
/// If a directory cannot be read, or a file cannot be written.
pub fn copy(session: &Path, to: &Path) -> io::Result<usize> {
    let (parent, new) = (session.join("ust").join("pid"), to.join("ust").join("pid"));
    let mut count = 0;
    if !parent.exists() {
        return Ok(count);
    }
    for entry in fs::read_dir(parent)? {
        let trace = entry?.path();
        let name = name_of(&trace);
        if name.starts_with('.') {
            continue;
        }
        let Some(directory) = Directory::open(&trace)? else {
            continue;
        };
        let new = new.join(name);
        match copy_trace(directory.path(), &new) {
            Ok(()) => count += 1,
            // Not created by a process with probes; its other traces have been copied.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => fs::remove_dir_all(&new)?,
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn copy_trace(trace: &Path, new: &Path) -> io::Result<()> {
    fs::create_dir_all(new)?;
    for entry in fs::read_dir(trace)? {
        let name = name_of(&entry?.path());
        if name.starts_with("stream_") {
            copy_file(&trace.join(&name), &new.join(&name))?;
        }
    }
    write_rings(trace, new)?;
    // Copied last: a class is appended to the metadata before its first event record is written, so
    // the metadata then describes all copied records.
    copy_file(&trace.join("metadata"), &new.join("metadata"))
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut guarded::open(from, false)?, &mut guarded::create(to)?).map(|_| ())
}

/// Writes the rings of a trace in their current state as streams of another trace, or of the same
/// one.
fn write_rings(trace: &Path, to: &Path) -> io::Result<()> {
    for (buffer, rings) in rings_of(trace)? {
        // The files are not rings but files of another mode that have not been renamed yet.
        if to.join(format!("stream_{buffer}_0")).exists() {
            continue;
        }
        let mut copies = Vec::new();
        for ring in rings {
            let copy = to.join(format!(
                ".finish_{}",
                name_of(&ring).trim_start_matches('.')
            ));
            copy_ring(&ring, &copy)?;
            copies.push(copy);
        }
        order(to, buffer, &copies)?;
        copies.iter().try_for_each(fs::remove_file)?;
    }
    Ok(())
}

/// Maximum size of a ring that is copied while in use, since the copy is held in memory.
const MOST_RING: u64 = 4 << 30;

/// Copies a ring that may be written to meanwhile, as of one moment: leaves out packets that were
/// overwritten during the copy, and packets begun after a packet that still grew at that time.
fn copy_ring(from: &Path, to: &Path) -> io::Result<()> {
    let file = guarded::open(from, false)?;
    let length = file.metadata()?.len();
    let slot = usize::try_from(slot_of(from, &file, length)?).unwrap_or(usize::MAX);
    if length > MOST_RING {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the ring exceeds 4 GiB, the limit for copying a ring in use",
        ));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    let mut time = OneTime::default();
    let mut offset = 0;
    for slot in bytes.chunks_mut(slot) {
        time.check(slot, &file, offset)?;
        offset += slot.len() as u64;
    }
    for slot in bytes.chunks_mut(slot) {
        time.keep(slot);
    }
    guarded::create(to)?.write_all(&bytes)
}

/// Range of sequence numbers of the packets in a copied ring that existed at one moment.
struct OneTime {
    oldest: u64,
    newest: u64,
}

impl Default for OneTime {
    fn default() -> OneTime {
        OneTime {
            oldest: 0,
            newest: u64::MAX,
        }
    }
}

impl OneTime {
    /// Compares the packets of a copied slot with their current state.
    fn check(&mut self, slot: &mut [u8], file: &File, offset: u64) -> io::Result<()> {
        let mut packets = PacketsOfSlot::default();
        let (mut last, mut was_overwritten) = (None, false);
        while let Some(packet) = packets.next(slot) {
            let room = packet.len() as u64;
            let mut head = vec![0; HEAD];
            file.read_exact_at(&mut head, offset + packets.begin as u64)?;
            let copied = packet::bytes::content(packet, room);
            let now = packet::bytes::content(&head, room);
            last = copied.map(|(_, sequence)| sequence);
            if last != now.map(|(_, sequence)| sequence) {
                was_overwritten = true;
                continue;
            }
            // The packet, or the slot after it, has grown since it was copied.
            if copied != now || packet::bytes::size(packet) != packet::bytes::size(&head) {
                self.newest = self.newest.min(last.unwrap_or(u64::MAX));
            }
            // The current end time may be later than the copied content; the copied end time may be
            // too early, because it was copied before the rest of the head.
            packet::bytes::take_end(packet, &head);
        }
        // The packet that follows was not complete when the slot was copied.
        if packets.next + HEAD <= slot.len() {
            self.newest = self.newest.min(last.unwrap_or(u64::MAX));
        }
        let now = place_at(file, offset, slot.len() as u64)?.map(|(place, _)| place.sequence);
        let first = packet::bytes::content(slot, slot.len() as u64).map(|(_, sequence)| sequence);
        if was_overwritten || first != now {
            // Packets begun since then are later than the common moment.
            self.newest = now.map_or(self.newest, |begun| {
                self.newest.min(begun.saturating_sub(1))
            });
            // Packets older than the overwritten packet were checked earlier and may have been
            // overwritten meanwhile, which would leave a gap.
            self.oldest = last.map_or(self.oldest, |last| self.oldest.max(last.saturating_add(1)));
            packet::bytes::forget(slot);
        }
        Ok(())
    }

    /// Invalidates the packets of a slot outside the common range.
    fn keep(&self, slot: &mut [u8]) {
        let is_kept = |packet: &[u8]| {
            packet::bytes::content(packet, packet.len() as u64)
                .is_some_and(|(_, sequence)| (self.oldest..=self.newest).contains(&sequence))
        };
        let mut packets = PacketsOfSlot::default();
        while let Some(packet) = packets.next(slot) {
            if !is_kept(packet) {
                packet::bytes::forget(packet);
            }
        }
    }
}

/// Iterator over the packets in a ring's slot; `begin` is the offset of the last returned packet.
#[derive(Default)]
struct PacketsOfSlot {
    begin: usize,
    next: usize,
}

impl PacketsOfSlot {
    fn next<'a>(&mut self, slot: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let packet = slot
            .get_mut(self.next..)
            .filter(|packet| packet.len() >= HEAD)?;
        packet::bytes::content(packet, packet.len() as u64)?;
        let size = packet::bytes::size(packet)?.max(HEAD).next_multiple_of(8);
        self.begin = self.next;
        self.next = self.next.saturating_add(size);
        Some(packet)
    }
}

/// Removes the directory of a process that was killed before the directory was complete; it
/// contains no events.
fn remove_incomplete(directory: &Path) -> io::Result<()> {
    // `.NAME-PID-DATE-TIME`, where NAME may contain dashes.
    let name = name_of(directory);
    let pid = name
        .rsplit('-')
        .nth(2)
        .and_then(|pid| pid.parse::<u32>().ok());
    let is_running = pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
    if is_running {
        Ok(())
    } else {
        fs::remove_dir_all(directory)
    }
}

/// Files of rings by buffer number.
type Rings = BTreeMap<u64, Vec<PathBuf>>;

fn rings_of(trace: &Path) -> io::Result<Rings> {
    let mut rings = Rings::new();
    for entry in fs::read_dir(trace)? {
        let path = entry?.path();
        if let Some(buffer) = name_of(&path).strip_prefix(".ring_").and_then(buffer_of) {
            rings.entry(buffer).or_default().push(path);
        }
    }
    Ok(rings)
}

fn finish_trace(trace: &Path) -> io::Result<()> {
    let rings = rings_of(trace)?;
    for entry in fs::read_dir(trace)? {
        let path = entry?.path();
        let name = name_of(&path);
        if name.starts_with(".finish_") {
            fs::remove_file(path)?;
        } else if name.starts_with("stream_") {
            cut(&path)?;
        }
    }
    for (buffer, files) in rings {
        // If the stream exists, an earlier completion was interrupted after this step, or the file
        // belongs to a mode without rings and has not been renamed yet.
        if !trace.join(format!("stream_{buffer}_0")).exists() {
            order(trace, buffer, &files)?;
        }
        for file in files {
            fs::remove_file(file)?;
        }
    }
    match fs::remove_file(trace.join(".control")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn buffer_of(name: &str) -> Option<u64> {
    name.split('_').next()?.parse().ok()
}

/// Removes the padding of the last packet.
fn cut(path: &Path) -> io::Result<()> {
    let file = guarded::open(path, false)?;
    let length = file.metadata()?.len();
    let Some(last) = last_packet(&file, length)? else {
        return Ok(());
    };
    let used = last.content.next_multiple_of(8);
    if last.offset + used as u64 == length {
        return Ok(());
    }
    replace(path, |new| {
        io::copy(&mut io::Read::take(&file, last.offset), new)?;
        write_packet(&file, &last, new)
    })
}

/// Position and size of a packet in a file.
struct PacketSpan {
    offset: u64,
    content: usize,
    sequence: u64,
}

fn place_at(file: &File, offset: u64, room: u64) -> io::Result<Option<(PacketSpan, u64)>> {
    let mut head = vec![0; HEAD];
    if room < HEAD as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut head, offset)?;
    let size = packet::bytes::size(&head).unwrap_or(0) as u64;
    let found = packet::bytes::content(&head, room);
    Ok(found.map(|(content, sequence)| {
        (
            PacketSpan {
                offset,
                content,
                sequence,
            },
            size,
        )
    }))
}

/// The last complete packet of a file.
fn last_packet(file: &File, length: u64) -> io::Result<Option<PacketSpan>> {
    let (mut offset, mut last) = (0, None);
    while let Some((place, size)) = place_at(file, offset, length - offset)? {
        last = Some(place);
        offset += size.max(HEAD as u64);
        if offset >= length {
            break;
        }
    }
    Ok(last)
}

/// Writes a packet without the padding after its content.
fn write_packet(file: &File, place: &PacketSpan, to: &mut impl Write) -> io::Result<()> {
    let mut bytes = vec![0; place.content.next_multiple_of(8)];
    let content = bytes.get_mut(..place.content).unwrap_or_default();
    file.read_exact_at(content, place.offset)?;
    let size = bytes.len();
    packet::bytes::set_size(&mut bytes, size);
    to.write_all(&bytes)
}

/// Writes the packets of a buffer's rings in order.
fn order(trace: &Path, buffer: u64, rings: &[PathBuf]) -> io::Result<()> {
    let mut packets = Vec::new();
    for ring in rings {
        let file = guarded::open(ring, false)?;
        let length = file.metadata()?.len();
        let slot = slot_of(ring, &file, length)?;
        let file = Rc::new(file);
        let mut begin = 0;
        while begin + HEAD as u64 <= length {
            let end = begin.saturating_add(slot).min(length);
            let mut offset = begin;
            while offset < end
                && let Some((place, size)) = place_at(&file, offset, end - offset)?
            {
                packets.push((place, Rc::clone(&file)));
                offset = offset.saturating_add(size.max(HEAD as u64).next_multiple_of(8));
            }
            begin = end;
        }
    }
    packets.sort_by_key(|(place, _)| place.sequence);
    if packets.is_empty() {
        return Ok(());
    }
    replace(&trace.join(format!("stream_{buffer}_0")), |new| {
        packets
            .iter()
            .try_for_each(|(place, file)| write_packet(file, place, new))
    })
}

/// The length of a ring's slots, which is part of its file name; in traces of earlier versions,
/// where each slot has one packet, the packet size.
fn slot_of(path: &Path, file: &File, length: u64) -> io::Result<u64> {
    let name = name_of(path);
    let numbers = name.rsplit("ring_").next().unwrap_or_default();
    if let Some(slot) = numbers
        .split('_')
        .nth(2)
        .and_then(|slot| slot.parse::<u64>().ok())
    {
        return Ok(slot.max(HEAD as u64));
    }
    let mut offset = 0;
    let length = length.min(2 * MOST_PACKET);
    // Packets begin at multiples of 8 bytes. The first packet may be in the middle of being
    // overwritten.
    while offset + (HEAD as u64) <= length {
        if let Some((_, size)) = place_at(file, offset, length - offset)?
            && offset.is_multiple_of(size.max(1))
        {
            return Ok(size.max(HEAD as u64));
        }
        offset += 8;
    }
    Ok(length.max(HEAD as u64))
}

/// Writes a file aside and renames it.
fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = path.with_file_name(format!(".finish_{}", name_of(path)));
    let mut new = BufWriter::new(guarded::create(&temporary)?);
    write(&mut new)?;
    new.into_inner().map_err(io::IntoInnerError::into_error)?;
    fs::rename(temporary, path)
}
