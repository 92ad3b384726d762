//! Perfetto, read by a plain decoder.

use std::collections::{BTreeMap, BTreeSet};

use tracebraid_export::levels::PerfettoWriter;
use tracebraid_levels::exported::{Kind, LinkKind};

use crate::played::{Played, play};

/// A field of a message: number, and integer or bytes.
type Field<'a> = (u32, u64, &'a [u8]);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in 0..10 {
        let (&byte, rest) = bytes.split_first().expect("the number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * shift);
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = (key >> 3) as u32;
        let length = match key & 7 {
            0 => {
                fields.push((number, varint(&mut bytes), &[][..]));
                continue;
            }
            1 => 8,
            _ => varint(&mut bytes) as usize,
        };
        let (content, rest) = bytes.split_at(length);
        let value = content.try_into().map_or(0, u64::from_le_bytes);
        fields.push((number, value, content));
        bytes = rest;
    }
    fields
}

fn one<'a>(fields: &[Field<'a>], number: u32) -> Option<Field<'a>> {
    fields.iter().copied().find(|field| field.0 == number)
}

fn text<'a>(fields: &[Field<'a>], number: u32) -> &'a str {
    let bytes = one(fields, number).map_or(&[][..], |field| field.2);
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[derive(Default)]
struct Decoded {
    sums: BTreeMap<(String, String), i64>,
    /// Arrows that end, all of which have begun.
    ended: u64,
    instants: BTreeMap<String, u64>,
}

/// Decodes a trace as Perfetto does: slices nest, and arrows end after they begin.
fn decode(bytes: &[u8]) -> Decoded {
    let mut decoded = Decoded::default();
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
    let mut begun = BTreeSet::new();
    let mut last = 0;
    for (_, _, packet) in fields(bytes) {
        let packet = fields(packet);
        if let Some((_, _, track)) = one(&packet, 60) {
            let track = fields(track);
            let id = one(&track, 1).expect("an id").1;
            tracks.insert(id, text(&track, 2).to_owned());
            continue;
        }
        let time = one(&packet, 8).expect("a time").1;
        assert!(time >= last, "in the order of time");
        last = time;
        let event = fields(one(&packet, 11).expect("an event").2);
        let track = one(&event, 11).expect("a track").1;
        let name = text(&event, 23).to_owned();
        let stack = open.entry(track).or_default();
        match one(&event, 9).expect("a kind").1 {
            1 => stack.push((name, time)),
            2 => {
                let (name, since) = stack.pop().expect("a slice is open");
                let key = (tracks[&track].clone(), name);
                *decoded.sums.entry(key).or_default() += (time - since) as i64;
            }
            _ => {
                *decoded
                    .instants
                    .entry(text(&event, 22).to_owned())
                    .or_default() += 1
            }
        }
        for (number, arrow, _) in &event {
            match number {
                47 => assert!(begun.insert(*arrow), "an arrow begins once"),
                48 => {
                    assert!(
                        begun.remove(arrow),
                        "an arrow ends after its begin, and once"
                    );
                    decoded.ended += 1;
                }
                _ => {}
            }
        }
    }
    assert!(open.values().all(Vec::is_empty));
    decoded
}

fn expected(played: &Played) -> BTreeMap<(String, String), i64> {
    let mut sums = BTreeMap::new();
    for kind in [Kind::Cpu, Kind::Lwp, Kind::Thread] {
        for ((title, name), sum) in played.of(kind) {
            *sums.entry((title, name)).or_default() += sum;
        }
    }
    sums
}

#[test]
fn slices_are_the_states_and_arrows_the_links() {
    for seed in 0..3 {
        let mut bytes = Vec::new();
        let played = play(seed, 3000, &mut PerfettoWriter::new(&mut bytes));
        let mut decoded = decode(&bytes);
        decoded.sums.retain(|(track, _), _| track != "functions");
        assert_eq!(decoded.sums, expected(&played));
        assert_eq!(decoded.instants["event"], played.events);
        // Each wake-up is an instant of both.
        let wakes = played.links[&LinkKind::WakeUp];
        assert_eq!(decoded.instants["wake-up"], 2 * wakes);
        assert!(decoded.ended > wakes);
        assert!(decoded.ended <= played.links.values().sum());
    }
}
