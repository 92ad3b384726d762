//! USDT probes of a program, from its notes (`.note.stapsdt`).
//!
//! The format is that of SystemTap's `sys/sdt.h`: three addresses, then provider, name and
//! arguments, each NUL-terminated.

/// A probe at one address; inlined code has several with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Addresses in the file: of the instruction, of `.stapsdt.base` at the time of linking, and of
    /// the counter that is nonzero while the probe is in use (0 if there is no counter).
    pub(crate) address: u64,
    pub(crate) base: u64,
    pub(crate) semaphore: u64,
    pub(crate) provider: String,
    pub(crate) name: String,
    /// See [`super::argument`].
    pub(crate) arguments: String,
}

const OWNER: &[u8] = b"stapsdt\0";
const TYPE: u32 = 3;

/// The probes in the note section of a little-endian 64-bit file. Truncated notes are ignored.
pub(crate) fn probes(mut notes: &[u8]) -> Vec<Probe> {
    let mut probes = Vec::new();
    while let Some((note, rest)) = next_note(notes) {
        probes.extend(note);
        notes = rest;
    }
    probes
}

/// The probe in the next note, if the note describes one, and the remaining notes.
fn next_note(notes: &[u8]) -> Option<(Option<Probe>, &[u8])> {
    let (head, rest) = notes.split_first_chunk::<12>()?;
    let number = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let (name_size, size, class) = (number(0)? as usize, number(4)? as usize, number(8)?);
    let (owner, rest) = take_padded(rest, name_size)?;
    let (description, rest) = take_padded(rest, size)?;
    let is_probe = owner == OWNER && class == TYPE;
    let probe = is_probe.then(|| parse(description)).flatten();
    Some((probe, rest))
}

/// Takes bytes and their padding to a multiple of four, which may be missing at the end.
fn take_padded(bytes: &[u8], size: usize) -> Option<(&[u8], &[u8])> {
    let (taken, rest) = bytes.split_at_checked(size)?;
    let padding = size.next_multiple_of(4) - size;
    Some((taken, rest.get(padding..).unwrap_or_default()))
}

fn parse(description: &[u8]) -> Option<Probe> {
    let (numbers, rest) = description.split_first_chunk::<24>()?;
    let number = |at: usize| Some(u64::from_le_bytes(*numbers.get(at..)?.first_chunk()?));
    let mut texts = rest.split(|&byte| byte == 0);
    let mut text = || String::from_utf8(texts.next()?.to_vec()).ok();
    Some(Probe {
        address: number(0)?,
        base: number(8)?,
        semaphore: number(16)?,
        provider: text()?,
        name: text()?,
        arguments: text()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(probe: &Probe) -> Vec<u8> {
        let mut description = Vec::new();
        for number in [probe.address, probe.base, probe.semaphore] {
            description.extend(number.to_le_bytes());
        }
        for text in [&probe.provider, &probe.name, &probe.arguments] {
            description.extend(text.bytes());
            description.push(0);
        }
        note(OWNER, TYPE, &description)
    }

    fn note(owner: &[u8], class: u32, description: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for number in [owner.len() as u32, description.len() as u32, class] {
            note.extend(number.to_le_bytes());
        }
        for part in [owner, description] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    fn any_probe() -> impl Strategy<Value = Probe> {
        let text = || "[a-z_]{0,9}";
        (any::<[u64; 3]>(), text(), text(), "[-0-9a-z@%(), ]{0,20}").prop_map(
            |([address, base, semaphore], provider, name, arguments)| Probe {
                address,
                base,
                semaphore,
                provider,
                name,
                arguments,
            },
        )
    }

    #[test]
    fn other_notes_are_passed_over() {
        let probe = Probe {
            address: 1,
            base: 2,
            semaphore: 0,
            provider: "p".into(),
            name: "n".into(),
            arguments: "-4@%eax".into(),
        };
        let mut notes = note(b"GNU\0", 1, b"abc");
        notes.extend(encode(&probe));
        notes.extend(note(OWNER, 4, &[0; 30]));
        notes.extend(note(OWNER, TYPE, &[0; 23]));
        notes.extend(encode(&probe));
        assert_eq!(probes(&notes), [probe.clone(), probe]);
    }

    proptest! {
        #[test]
        fn probes_come_back_as_far_as_the_notes_go(
            wanted in prop::collection::vec(any_probe(), 0..5),
            cut in any::<prop::sample::Index>(),
        ) {
            let notes: Vec<u8> = wanted.iter().flat_map(encode).collect();
            prop_assert_eq!(&probes(&notes), &wanted);
            let found = probes(&notes[..cut.index(notes.len() + 1)]);
            prop_assert!(found.len() <= wanted.len());
            prop_assert_eq!(&found[..], &wanted[..found.len()]);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            probes(&bytes);
        }
    }
}
