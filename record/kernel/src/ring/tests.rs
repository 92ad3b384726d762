//! Tests of the consumer with a writer that behaves like `bpf/ring.h`, in memory of the same
//! layout.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::shared::{MOST_RECORD, MOST_TRIES};

/// The kernel's side, for one CPU.
struct Writer {
    chunks: Arc<Region>,
    states: Arc<Region>,
    shape: RingShape,
    cpu: u64,
    lost: u64,
}

/// A record that is not complete.
struct Open {
    /// Offset of its word in the array.
    at: u64,
    begin: u64,
    end: u64,
    room: u64,
}

fn room(size: u64) -> u64 {
    (size + RING_WORD as u64 + 7) & !7
}

fn region(bytes: u64) -> Region {
    Region(
        MmapOptions::new()
            .len(bytes as usize)
            .map_anon()
            .unwrap()
            .into(),
    )
}

fn pairs(ring_bytes: u32, cpus: usize) -> Vec<(Writer, Ring)> {
    let shape = RingShape::new(ring_bytes, 0);
    let rings = rings(
        region(shape.element_bytes() * shape.elements(cpus)),
        region((cpus * CPU_SIZE) as u64),
        shape,
        cpus,
    );
    let writer = |ring: &Ring| Writer {
        chunks: ring.chunks.clone(),
        states: ring.states.clone(),
        shape,
        cpu: ring.cpu,
        lost: 0,
    };
    rings
        .into_iter()
        .map(|ring| (writer(&ring), ring))
        .collect()
}

fn pair(ring_bytes: u32) -> (Writer, Ring) {
    pairs(ring_bytes, 1).remove(0)
}

impl Writer {
    fn written(&self) -> &AtomicU64 {
        self.states.word(self.cpu * CPU_SIZE as u64).unwrap()
    }

    fn consumed(&self) -> u64 {
        let at = self.cpu * CPU_SIZE as u64 + CPU_CONSUMED as u64;
        self.states.word(at).unwrap().load(Ordering::Acquire)
    }

    fn move_written(&self, from: u64, to: u64) -> bool {
        let order = Ordering::SeqCst;
        self.written()
            .compare_exchange(from, to, order, order)
            .is_ok()
    }

    /// `take_room`; `interrupt` runs between reading the position and moving it.
    fn take_room(&mut self, room: u64, mut interrupt: impl FnMut(&mut Writer)) -> Option<Open> {
        for _ in 0..MOST_TRIES {
            let begin = self.written().load(Ordering::SeqCst);
            let end = self.shape.after(begin, room);
            if end - self.consumed() > self.shape.chunk * self.shape.chunks {
                break;
            }
            interrupt(self);
            if !self.move_written(begin, end) {
                continue;
            }
            let index = begin / self.shape.chunk % self.shape.chunks + self.cpu * self.shape.chunks;
            return Some(Open {
                at: index * self.shape.element_bytes() + begin % self.shape.chunk,
                begin,
                end,
                room,
            });
        }
        self.lost += 1;
        None
    }

    fn reserve(&mut self, size: u64) -> Option<Open> {
        self.take_room(room(size), |_| {})
    }

    /// Fills a record with a nonzero byte.
    fn fill(&self, open: &Open, size: u64, byte: u8) {
        let to = self.chunks.at(open.at, open.room).unwrap();
        // SAFETY: inside the region; no other thread accesses a record that is not complete.
        let bytes = unsafe { std::slice::from_raw_parts_mut(to, open.room as usize) };
        assert!(bytes.iter().all(|&byte| byte == 0), "free memory is zero");
        bytes[RING_WORD..][..size as usize].fill(byte);
    }

    fn complete(&self, open: &Open, size: u64, room: u64) {
        let word = self.chunks.word(open.at).unwrap();
        word.store(size | room << 32, Ordering::Release);
    }

    fn send(&mut self, size: u64, byte: u8) -> bool {
        let Some(open) = self.reserve(size) else {
            return false;
        };
        self.fill(&open, size, byte);
        self.complete(&open, size, open.room);
        true
    }

    /// `end_large`.
    fn end_large(&self, open: &Open, size: u64) {
        let end = self.shape.after(open.begin, room(size));
        let is_given = self.move_written(open.end, end);
        self.complete(open, size, if is_given { room(size) } else { open.room });
    }
}

/// Consumes all records: size and first byte of each, checking that all its bytes are equal.
fn taken(ring: &mut Ring) -> Vec<(usize, u8)> {
    let mut found = Vec::new();
    let take = |record: &[u8]| {
        assert!(record.windows(2).all(|pair| pair[0] == pair[1]));
        found.push((record.len(), record.first().copied().unwrap_or(0)));
    };
    let count = ring.consume(usize::MAX, take).unwrap();
    assert_eq!(count, found.len());
    found
}

#[test]
fn records_come_out_as_they_went_in() {
    let (mut writer, mut ring) = pair(4096);
    assert_eq!(taken(&mut ring), []);
    assert!(writer.send(16, 1) && writer.send(17, 2) && writer.send(0, 0) && writer.send(1, 3));
    assert_eq!(taken(&mut ring), [(16, 1), (17, 2), (0, 0), (1, 3)]);
    assert_eq!(taken(&mut ring), []);
    assert_eq!(writer.consumed(), writer.written().load(Ordering::SeqCst));
}

#[test]
fn a_ring_goes_round() {
    for bytes in [4096, 8192, 4 << 20] {
        let (mut writer, mut ring) = pair(bytes);
        let mut expected = VecDeque::new();
        for number in 0..20_000u64 {
            let (size, byte) = (number * 7919 % 1000, (number % 250) as u8 + 1);
            while !writer.send(size, byte) {
                for found in taken(&mut ring) {
                    assert_eq!(expected.pop_front(), Some(found));
                }
                assert!(expected.is_empty());
            }
            expected.push_back((size as usize, if size == 0 { 0 } else { byte }));
        }
        assert_eq!(taken(&mut ring), Vec::from(expected));
    }
}

#[test]
fn the_last_record_of_a_chunk_runs_into_its_slack() {
    let (mut writer, mut ring) = pair(4096);
    assert!(writer.send(4000, 1));
    // The largest record fits in the smallest ring.
    assert!(writer.send(MOST_RECORD as u64, 2));
    assert!(!writer.send(0, 3));
    assert_eq!(taken(&mut ring), [(4000, 1), (MOST_RECORD, 2)]);
    assert_eq!(writer.consumed(), 4096);
    assert!(writer.send(8, 4));
    assert_eq!(taken(&mut ring), [(8, 4)]);
    // A record that ends with its chunk is followed by the next chunk, too.
    assert!(writer.send(4096 - 16 - 8, 5));
    assert_eq!(writer.written().load(Ordering::SeqCst), 8192);
    assert_eq!(taken(&mut ring), [(4096 - 16 - 8, 5)]);
}

#[test]
fn records_that_end_with_their_chunks_leave_zeros() {
    let (mut writer, mut ring) = pair(4 << 20);
    for round in 0..50 {
        // Slightly more than a chunk, at once.
        for _ in 0..(2 << 20) / 1024 + 3 {
            assert!(writer.send(1024 - RING_WORD as u64, 1), "{round}");
        }
        taken(&mut ring);
    }
}

#[test]
fn an_incomplete_record_holds_back_those_after_it() {
    let (mut writer, mut ring) = pair(4096);
    assert!(writer.send(8, 1));
    let open = writer.reserve(32).unwrap();
    assert!(writer.send(8, 3));
    assert_eq!(taken(&mut ring), [(8, 1)]);
    writer.fill(&open, 32, 2);
    assert_eq!(taken(&mut ring), []);
    writer.complete(&open, 30, open.room);
    assert_eq!(taken(&mut ring), [(30, 2), (8, 3)]);
}

#[test]
fn room_that_was_not_needed_is_given_back() {
    let (mut writer, mut ring) = pair(8192);
    for round in 0..1000 {
        let open = writer.reserve(5000).unwrap();
        writer.fill(&open, 100, 1);
        writer.end_large(&open, 100);
        // A record of an interrupt prevents the rest of the room from being released.
        let open = writer.reserve(5000).unwrap();
        assert!(writer.send(8, 3), "{round}");
        writer.fill(&open, 200, 2);
        writer.end_large(&open, 200);
        assert_eq!(taken(&mut ring), [(100, 1), (200, 2), (8, 3)]);
    }
    assert_eq!(writer.lost, 0);
}

#[test]
fn records_without_room_are_counted() {
    let (mut writer, mut ring) = pair(4096);
    let sent = (0..1000).filter(|_| writer.send(24, 1)).count();
    assert_eq!(sent, 4096 / 32);
    assert_eq!(writer.lost, 1000 - sent as u64);
    assert_eq!(ring.consume(5, |_| {}), Ok(5));
    // No room is released twice, and none is lost.
    assert_eq!((0..10).filter(|_| writer.send(24, 2)).count(), 5);
    assert_eq!(taken(&mut ring).len(), sent);
}

#[test]
fn interrupts_while_room_is_taken() {
    let (mut writer, mut ring) = pair(1 << 20);
    let mut more = 0;
    let open = writer.take_room(room(8), |writer| {
        more += 1;
        if more < 4 {
            assert!(writer.send(8, more));
        }
    });
    let open = open.unwrap();
    writer.fill(&open, 8, 9);
    writer.complete(&open, 8, open.room);
    assert_eq!(taken(&mut ring), [(8, 1), (8, 2), (8, 3), (8, 9)]);
    // Without an end of interrupts the record is lost.
    assert!(
        writer
            .take_room(room(8), |writer| assert!(writer.send(8, 5)))
            .is_none()
    );
    assert_eq!((writer.lost, taken(&mut ring).len()), (1, MOST_TRIES));
}

#[test]
fn each_cpu_has_its_ring() {
    let mut pairs = pairs(16 << 10, 3);
    for (number, (writer, _)) in (1..).zip(&mut pairs) {
        assert!(
            writer.send(8, number) && writer.send(16000, number) && writer.send(70_000, number)
        );
    }
    for (number, (_, ring)) in (1..).zip(&mut pairs) {
        assert_eq!(
            taken(ring),
            [(8, number), (16000, number), (70_000, number)]
        );
    }
}

#[test]
fn rings_of_longer_records_have_room_for_them() {
    let usual = RingShape::new(4096, 0);
    assert_eq!(usual.most_record(), MOST_RECORD as u64);
    let longer = RingShape::new(4096, 100_000);
    assert!(longer.most_record() >= MOST_RECORD as u64 + 100_000);
    assert_eq!(
        longer.element_bytes(),
        4096 + longer.most_record() + RING_WORD as u64
    );
    // Older kernels refuse an element of more than 4 MiB.
    let most = RingShape::new(
        1 << 30,
        (crate::shared::MOST_COPY - crate::shared::USUAL_COPY) as u32,
    );
    assert!(most.element_bytes() < 4 << 20);
}

#[test]
fn impossible_sizes_are_an_error() {
    for (size, room) in [
        (8, 8),
        (8, 17),
        (MOST_RECORD as u64 + 1, RING_SLACK as u64),
        (8, 1 << 30),
    ] {
        let (mut writer, mut ring) = pair(4096);
        let open = writer.reserve(8).unwrap();
        writer.complete(&open, size, room);
        assert_eq!(ring.consume(1, |_| {}), Err(Damaged));
    }
}

/// All records that were sent arrive in order and once while the writer runs, and all others are
/// counted.
#[test]
fn a_writer_with_interrupts_beside_the_consumer() {
    const RECORDS: u64 = 300_000;
    for bytes in [4096, 64 << 10, 4 << 20] {
        let (mut writer, mut ring) = pair(bytes);
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = ended.clone();
        let thread = std::thread::spawn(move || {
            let mut sent = [0u64; 2];
            let number = |writer: &Writer, open: &Open, level: usize, number: u64, size: u64| {
                let at = open.at + RING_WORD as u64;
                writer
                    .chunks
                    .word(at)
                    .unwrap()
                    .store(number << 1 | level as u64, Ordering::Relaxed);
                let last = writer.chunks.at(at + 8, size - 8).unwrap();
                // SAFETY: inside the region, in a record that is not complete.
                unsafe { last.write_bytes(number as u8, size as usize - 8) };
            };
            let mut interrupted = 0;
            for round in 0..RECORDS {
                let size = 8 + round * 31 % 400;
                let mut nested = |writer: &mut Writer, sent: &mut u64| {
                    if let Some(open) = writer.reserve(24) {
                        number(writer, &open, 1, *sent, 24);
                        writer.complete(&open, 24, open.room);
                        *sent += 1;
                    } else {
                        interrupted += 1;
                    }
                };
                let [own, others] = &mut sent;
                let open = writer.take_room(room(size + 64), |writer| {
                    if round % 7 == 0 && *others < round {
                        nested(writer, others);
                    }
                });
                let Some(open) = open else {
                    continue;
                };
                if round % 5 == 0 {
                    nested(&mut writer, others);
                }
                number(&writer, &open, 0, *own, size);
                writer.end_large(&open, size);
                *own += 1;
            }
            is_over.store(true, Ordering::Release);
            let own = writer.lost - interrupted;
            assert_eq!(sent[0] + own, RECORDS);
            sent
        });
        let mut next = [0u64; 2];
        loop {
            let is_last = ended.load(Ordering::Acquire);
            let result = ring.consume(1000, |record| {
                let word = u64::from_ne_bytes(*record.first_chunk().unwrap());
                let (level, number) = ((word & 1) as usize, word >> 1);
                assert_eq!(number, next[level]);
                assert!(record[8..].iter().all(|&byte| byte == number as u8));
                next[level] += 1;
            });
            if result.unwrap() == 0 && is_last {
                break;
            }
        }
        assert_eq!(thread.join().unwrap(), next);
        let (chunks, bytes) = (
            ring.chunks.clone(),
            ring.shape.element_bytes() * ring.shape.chunks,
        );
        let is_zero = |at| chunks.word(at).unwrap().load(Ordering::Relaxed) == 0;
        assert!((0..bytes).step_by(8).all(is_zero), "an empty ring is zero");
    }
}
