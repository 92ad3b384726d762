//! The Python interpreter of a process: the location of its function frames, and the names of the
//! functions.
//!
//! BPF reads the frames (`bpf/python.h`) of processes in which this module has found an
//! interpreter: their program or library exports the interpreter's state. Offsets are those of
//! CPython 3.11 and 3.12 on 64-bit machines; from 3.13 on the interpreter contains them itself
//! (`_Py_DebugOffsets`).

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use object::{Object, ObjectSymbol};

use super::Mapping;
use super::modules::open;
use crate::raw::{u32_at, u64_at};
use crate::shared;
use crate::state::Payload;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Python {
    /// Encoded `struct python`.
    pub(crate) encoded: [u8; shared::PYTHON_SIZE],
    /// Address range of the function that interprets functions.
    pub(crate) evaluates: [u64; 2],
}

/// Offsets in the types of the interpreter, in the order of `struct python`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offsets {
    /// Offset of the list of interpreters in `_PyRuntime`.
    interpreters: u64,
    others: [u16; 17],
}

/// Marks a missing field.
const NONE: u16 = 0xFFFF;

/// CPython 3.11 (`Include/internal/pycore_*.h`, by `offsetof`).
const PYTHON_3_11: Offsets = Offsets {
    interpreters: 40,
    others: [
        0, 16, 8, 152, 56, 8, 48, 32, 69, 68, 112, 128, 72, 16, 32, 48, 72,
    ],
};

/// CPython 3.12.
const PYTHON_3_12: Offsets = Offsets {
    interpreters: 40,
    others: [
        0, 72, 8, 136, 56, 0, 8, 0, 70, NONE, 112, 128, 68, 16, 32, 40, 56,
    ],
};

/// The first bytes of an interpreter's table from 3.13 on.
const COOKIE: &[u8; 8] = b"xdebugpy";
/// Version whose table has this layout: 3.13.
const KNOWN_TABLE: u64 = 0x030D;

impl Offsets {
    /// The offsets in the table of an interpreter.
    fn of_table(table: &[u8]) -> Option<Offsets> {
        let word = |place: usize| u64_at(table, 8 * place);
        let is_known = table.starts_with(COOKIE) && word(1)? >> 16 == KNOWN_TABLE && word(2)? == 0;
        is_known.then_some(())?;
        let short = |place: usize| u16::try_from(word(place)?).ok();
        let (ascii, pointer) = (short(UNICODE + 3)?, 8);
        Some(Offsets {
            interpreters: word(RUNTIME + 2)?,
            others: [
                short(INTERPRETER + 2)?,
                short(INTERPRETER + 3)?,
                short(THREAD + 2)?,
                short(THREAD + 5)?,
                short(THREAD + 4)?,
                NONE,
                short(FRAME + 1)?,
                short(FRAME + 2)?,
                short(FRAME + 5)?,
                NONE,
                short(CODE + 1)?,
                short(CODE + 3)?,
                short(CODE + 5)?,
                short(UNICODE + 2)?,
                short(UNICODE + 1)?,
                ascii,
                // Other strings have their length and a pointer to UTF-8 in front.
                ascii + 2 * pointer,
            ],
        })
    }

    fn encode(&self, runtime: u64) -> [u8; shared::PYTHON_SIZE] {
        let mut bytes = [0; shared::PYTHON_SIZE];
        let others = self.others.iter().flat_map(|offset| offset.to_ne_bytes());
        let address = runtime.wrapping_add(self.interpreters).to_ne_bytes();
        bytes
            .iter_mut()
            .zip(address.into_iter().chain(others))
            .for_each(|(place, byte)| *place = byte);
        bytes
    }
}

/// Offsets of the parts of the table, in words (`struct _Py_DebugOffsets` of 3.13).
const RUNTIME: usize = 3;
const INTERPRETER: usize = RUNTIME + 3;
const THREAD: usize = INTERPRETER + 13;
const FRAME: usize = THREAD + 9;
const CODE: usize = FRAME + 6;
const UNICODE: usize = CODE + 10 + 2 + 4 + 3 + 3 + 3 + 2 + 3 + 3;
const TABLE_BYTES: usize = 8 * (UNICODE + 4);

/// The minor version of a Python 3 program or library, from its path.
fn version(path: &[u8]) -> Option<u32> {
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    let name = name.strip_prefix(b"lib").unwrap_or(name);
    let rest = std::str::from_utf8(name.strip_prefix(b"python3.")?).ok()?;
    let digits = rest
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok()
}

/// The interpreter in a mapping, if its version is supported.
pub(crate) fn find(mapping: &Mapping) -> Option<Python> {
    let version = version(&mapping.path)?;
    let cache = object::ReadCache::new(open(mapping)?);
    let file = object::File::parse(&cache).ok()?;
    let named = |name: &[u8]| {
        file.dynamic_symbols()
            .find(|symbol| symbol.name_bytes() == Ok(name))
    };
    let (runtime, evaluates) = (named(b"_PyRuntime")?, named(b"_PyEval_EvalFrameDefault")?);
    // Address of the mapping in the file's own numbering.
    let segment = object::Object::segments(&file).find(|segment| {
        let (offset, bytes) = object::ObjectSegment::file_range(segment);
        (offset..offset + bytes).contains(&mapping.offset)
    })?;
    let (offset, _) = object::ObjectSegment::file_range(&segment);
    let address =
        object::ObjectSegment::address(&segment).wrapping_add(mapping.offset.wrapping_sub(offset));
    let bias = mapping.begin.wrapping_sub(address);
    let runtime = runtime.address().wrapping_add(bias);
    let begin = evaluates.address().wrapping_add(bias);
    let offsets = match version {
        11 => PYTHON_3_11,
        12 => PYTHON_3_12,
        _ => {
            let mut table = [0; TABLE_BYTES];
            let memory = File::open(format!("/proc/{}/mem", mapping.number)).ok()?;
            memory.read_exact_at(&mut table, runtime).ok()?;
            Offsets::of_table(&table)?
        }
    };
    Some(Python {
        encoded: offsets.encode(runtime),
        evaluates: [begin, begin.wrapping_add(evaluates.size())],
    })
}

/// Payloads of recorded functions, which are repeated in traces whose beginning is dropped.
#[derive(Debug, Default)]
pub(crate) struct Functions(HashMap<(u32, u64), Vec<u8>>);

/// Offsets in a record (`struct python_function`), after its head.
const LINE: usize = 4;
const CODE_ADDRESS: usize = 8;
const TEXTS: [usize; 2] = [16, 24];
const NAME: usize = 32;
const PATH: usize = NAME + shared::PYTHON_TEXT;

impl Functions {
    /// The payload of `tracebraid_code_symbol` for a record; `None` if the record is malformed.
    pub(crate) fn add(&mut self, record: &[u8]) -> Option<Vec<u8>> {
        let text = |head: usize, at: usize| {
            let (bytes, width) = (u32_at(record, head)? as usize, u32_at(record, head + 4)?);
            let bytes = record.get(at..)?.get(..bytes.min(shared::PYTHON_TEXT))?;
            Some(decoded(bytes, width))
        };
        let [name, path] = [text(TEXTS[0], NAME)?, text(TEXTS[1], PATH)?];
        let (pid, code) = (u32_at(record, 0)?, u64_at(record, CODE_ADDRESS)?);
        let payload = Payload::default().int(pid as i32).long(code);
        let payload = payload.text(name.as_bytes()).text(path.as_bytes());
        let payload = payload.int(u32_at(record, LINE)? as i32).bytes_of();
        self.0.insert((pid, code), payload.clone());
        Some(payload)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.0.values()
    }

    pub(crate) fn forget(&mut self, pid: u32) {
        self.0.retain(|&(other, _), _| other != pid);
    }
}

/// Decodes a string of the interpreter; `width` is the size of a character in bytes: 1 (Latin-1), 2
/// (UCS-2) or 4 (UCS-4).
fn decoded(bytes: &[u8], width: u32) -> String {
    let letters = bytes
        .chunks_exact(width.clamp(1, 4) as usize)
        .map(|letter| {
            let number = letter
                .iter()
                .rev()
                .fold(0, |number, &byte| number << 8 | u32::from(byte));
            char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
        });
    letters.collect()
}

/// Replaces the interpreter's frames by Python functions. `functions` are innermost first; the
/// lowest bit is set on each function at which C called the interpreter.
pub(crate) fn merge(frames: &mut Vec<u64>, functions: &[u64], evaluates: [u64; 2]) {
    let mut rest = functions;
    let mut merged = Vec::with_capacity(frames.len() + functions.len());
    for (place, &frame) in frames.iter().enumerate() {
        // All but the first are return addresses.
        let address = frame.wrapping_sub(u64::from(place > 0));
        if rest.is_empty() || !(evaluates[0]..evaluates[1]).contains(&address) {
            merged.push(frame);
            continue;
        }
        let count = rest
            .iter()
            .position(|function| function & 1 == 1)
            .map_or(rest.len(), |last| last + 1);
        let (own, others) = rest.split_at(count);
        // Stored like a return address, since symbol lookup subtracts one.
        merged.extend(own.iter().map(|function| (function & !1) + 1));
        rest = others;
    }
    // The interpreter's frames were not found: appended functions are still better than none.
    merged.extend(rest.iter().map(|function| (function & !1) + 1));
    *frames = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_libraries_are_known_by_their_names() {
        for (path, expected) in [
            ("/usr/bin/python3.11", Some(11)),
            ("/opt/lib/libpython3.13.so.1.0", Some(13)),
            ("/usr/bin/python3", None),
            ("/usr/bin/python2.7", None),
            ("/usr/bin/perl", None),
        ] {
            assert_eq!(version(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn functions_take_the_place_of_the_interpreter() {
        let mut frames = vec![5, 105, 7, 106, 8];
        merge(&mut frames, &[0x1000, 0x2001, 0x3001], [100, 110]);
        assert_eq!(frames, [5, 0x1001, 0x2001, 7, 0x3001, 8]);
        // A function that has not started has no frame yet.
        let mut frames = vec![105, 7, 106];
        merge(&mut frames, &[0x1001], [100, 110]);
        assert_eq!(frames, [0x1001, 7, 106]);
        // The interpreter's frames were not found.
        let mut frames = vec![5];
        merge(&mut frames, &[0x1001], [100, 110]);
        assert_eq!(frames, [5, 0x1001]);
    }

    #[test]
    fn text_of_all_widths_is_read() {
        assert_eq!(decoded(b"caf\xe9", 1), "café");
        assert_eq!(decoded(&[0x16, 0x04, 0x16], 2), "Ж");
        assert_eq!(decoded(&[0x00, 0xF6, 0x01, 0x00, 1], 4), "😀");
        assert_eq!(decoded(&[0, 0xD8], 2), "\u{FFFD}");
    }
}
