//! Perfetto traces, read by a strict decoder.
#![allow(missing_docs)]

use tracebraid_export::perfetto::{Slice, Switch, Trace, Waking};

/// A field: its number and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field<'a> {
    Number(u32, u64),
    Fixed(u32, u64),
    Bytes(u32, &'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in 0..10 {
        let (&byte, rest) = bytes.split_first().expect("the number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * shift);
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a number has ten bytes at most");
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = u32::try_from(key >> 3).expect("a number of a field");
        assert!(number > 0);
        fields.push(match key & 7 {
            0 => Field::Number(number, varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                Field::Fixed(number, u64::from_le_bytes(*value))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("a length");
                let (value, rest) = bytes.split_at_checked(length).expect("enough bytes");
                bytes = rest;
                Field::Bytes(number, value)
            }
            kind => panic!("no kind {kind} is written"),
        });
    }
    fields
}

fn text<'a>(fields: &[Field<'a>], number: u32) -> Option<&'a str> {
    fields.iter().find_map(|field| match field {
        Field::Bytes(of, bytes) if *of == number => {
            Some(std::str::from_utf8(bytes).expect("UTF-8"))
        }
        _ => None,
    })
}

fn message<'a>(fields: &[Field<'a>], number: u32) -> Option<Vec<Field<'a>>> {
    fields.iter().find_map(|field| match field {
        Field::Bytes(of, bytes) if *of == number => Some(self::fields(bytes)),
        _ => None,
    })
}

fn integer(fields: &[Field<'_>], number: u32) -> Option<u64> {
    fields.iter().find_map(|field| match field {
        Field::Number(of, value) if *of == number => Some(*value),
        _ => None,
    })
}

#[test]
fn slices_stand_on_their_tracks() {
    let mut trace = Trace::default();
    let parent = trace.track("a path", None);
    let child = trace.track("a thread", Some(parent));
    let slice = Slice {
        begin: 1_795_224_871_746_359_570,
        end: 1_795_224_871_746_359_600,
        name: "running",
        category: "running",
        notes: &[("detail", "CPU 3")],
        arrows: &[7, 300],
    };
    trace.slice(child, &slice);
    let bytes = trace.into_bytes();
    let packets: Vec<Vec<Field<'_>>> = fields(&bytes)
        .into_iter()
        .map(|field| match field {
            Field::Bytes(1, packet) => fields(packet),
            other => panic!("{other:?} is no packet"),
        })
        .collect();
    assert_eq!(packets.len(), 4);
    // All packets belong to one sequence, which begins with the first packet.
    assert!(packets.iter().all(|packet| integer(packet, 10) == Some(1)));
    let begins: Vec<_> = packets.iter().map(|packet| integer(packet, 13)).collect();
    assert_eq!(begins, [Some(1), None, None, None]);
    let tracks: Vec<_> = packets[..2]
        .iter()
        .map(|packet| message(packet, 60).expect("a track"))
        .collect();
    assert_eq!(
        (integer(&tracks[0], 1), text(&tracks[0], 2)),
        (Some(1), Some("a path"))
    );
    assert_eq!(
        (integer(&tracks[1], 1), integer(&tracks[1], 5)),
        (Some(2), Some(1))
    );
    let times: Vec<_> = packets[2..]
        .iter()
        .map(|packet| integer(packet, 8))
        .collect();
    assert_eq!(
        times,
        [
            Some(1_795_224_871_746_359_570),
            Some(1_795_224_871_746_359_600)
        ]
    );
    let events: Vec<_> = packets[2..]
        .iter()
        .map(|packet| message(packet, 11).expect("an event"))
        .collect();
    for (event, kind) in events.iter().zip([1, 2]) {
        assert_eq!(
            (integer(event, 9), integer(event, 11)),
            (Some(kind), Some(2))
        );
    }
    assert_eq!(
        (text(&events[0], 22), text(&events[0], 23)),
        (Some("running"), Some("running"))
    );
    let note = message(&events[0], 4).expect("a note");
    assert_eq!(
        (text(&note, 10), text(&note, 6)),
        (Some("detail"), Some("CPU 3"))
    );
    let arrows: Vec<_> = events[0]
        .iter()
        .filter(|field| matches!(field, Field::Fixed(47, _)))
        .collect();
    assert_eq!(arrows, [&Field::Fixed(47, 7), &Field::Fixed(47, 300)]);
}

#[test]
fn scheduling_has_the_kernels_own_events() {
    let mut trace = Trace::default();
    trace.waking(&Waking {
        cpu: 3,
        time: 1000,
        by: 41,
        woken: (42, "woken"),
    });
    trace.switch(&Switch {
        cpu: 3,
        time: 2000,
        from: (0, "swapper"),
        state: 0,
        to: (42, "woken"),
    });
    let bytes = trace.into_bytes();
    let events: Vec<Vec<Field<'_>>> = fields(&bytes)
        .into_iter()
        .map(|field| match field {
            Field::Bytes(1, packet) => {
                let bundle = message(&fields(packet), 1).expect("a bundle");
                assert_eq!(integer(&bundle, 1), Some(3));
                message(&bundle, 2).expect("an event")
            }
            other => panic!("{other:?} is no packet"),
        })
        .collect();
    let heads: Vec<_> = events
        .iter()
        .map(|event| (integer(event, 1), integer(event, 2)))
        .collect();
    assert_eq!(heads, [(Some(1000), Some(41)), (Some(2000), Some(0))]);
    let waking = message(&events[0], 20).expect("a wake-up");
    assert_eq!(
        (text(&waking, 1), integer(&waking, 2), integer(&waking, 5)),
        (Some("woken"), Some(42), Some(3))
    );
    let switch = message(&events[1], 4).expect("a switch");
    assert_eq!(
        (text(&switch, 1), integer(&switch, 2), integer(&switch, 4)),
        (Some("swapper"), Some(0), Some(0))
    );
    assert_eq!(
        (text(&switch, 5), integer(&switch, 6)),
        (Some("woken"), Some(42))
    );
}
