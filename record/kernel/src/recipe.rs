//! Conversion of records of BPF programs to payloads of events.
//!
//! Both have the same layout, except for text, which has a slot of constant size in a record, and
//! sequences, which have room for the maximum number of elements.

use tracebraid_ctf::schema::{EventClass, FieldClass, IntClass};

use crate::shared;

/// Steps that make the payload of one event class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recipe {
    steps: Vec<RecipeStep>,
}

/// The next part of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecipeStep {
    /// Bytes that are copied unchanged.
    Copy(usize),
    /// Text in a slot of this size.
    Text(usize),
    /// `element` bytes for each element, in a slot for `most` elements; the preceding `count` bytes
    /// contain the number of elements. A sequence at the end of a record is not padded.
    Sequence {
        count: usize,
        element: usize,
        most: usize,
    },
    /// The rest of the record.
    Rest,
}

/// Maximum number of elements of a sequence in a record, by field.
fn most_elements(field: &str) -> usize {
    match field {
        "callstack_kernel" => shared::MOST_KERNEL_FRAMES,
        "callstack_user" => shared::MOST_USER_FRAMES,
        _ => shared::MOST_LEVELS,
    }
}

/// Suffix of text that was cut.
const MARK: &[u8] = b"...";

/// Size of text in records, by event class.
fn slot(event: &str) -> usize {
    match event {
        "sched_process_exec" => shared::PATH_SLOT,
        "irq_handler_entry" => shared::INTERRUPT_SLOT,
        _ => shared::NAME_SLOT,
    }
}

impl Recipe {
    /// The recipe for records of a class of `events.tsdl`.
    pub(crate) fn new(event: &EventClass) -> Recipe {
        let mut recipe = Recipe::default();
        let Some(FieldClass::Struct(payload)) = &event.payload else {
            return recipe;
        };
        let mut count = 0;
        for member in &payload.members {
            match &member.class {
                FieldClass::Int(int) => {
                    count = bytes(int);
                    recipe.copy(count);
                }
                FieldClass::Array {
                    element, length, ..
                } => recipe.copy(element_bytes(element) * *length as usize),
                FieldClass::StaticStr { length, .. } => recipe.copy(*length as usize),
                FieldClass::Str { .. } => recipe.steps.push(RecipeStep::Text(slot(&event.name))),
                FieldClass::Sequence { element, .. } => recipe.steps.push(RecipeStep::Sequence {
                    count,
                    element: element_bytes(element),
                    most: most_elements(&member.name),
                }),
                _ => recipe.steps.push(RecipeStep::Rest),
            }
        }
        recipe
    }

    fn copy(&mut self, bytes: usize) {
        match self.steps.last_mut() {
            Some(RecipeStep::Copy(before)) => *before += bytes,
            _ => self.steps.push(RecipeStep::Copy(bytes)),
        }
    }

    /// Writes the payload; `None` if the record is too short.
    pub(crate) fn write(&self, record: &[u8], to: &mut Vec<u8>) -> Option<()> {
        let mut rest = record;
        let mut copied: &[u8] = &[];
        for step in &self.steps {
            match *step {
                RecipeStep::Copy(bytes) => {
                    copied = take(&mut rest, bytes)?;
                    to.extend_from_slice(copied);
                }
                RecipeStep::Text(slot) => {
                    let text = take(&mut rest, slot)?.split(|&byte| byte == 0).next()?;
                    to.extend_from_slice(text);
                    // Names that fill a slot of the least size are complete, since the kernel's
                    // names are not longer.
                    if slot > shared::NAME_SLOT && text.len() + 1 >= slot {
                        to.extend_from_slice(MARK);
                    }
                    to.push(0);
                }
                RecipeStep::Sequence {
                    count,
                    element,
                    most,
                } => {
                    let behind = copied.len().checked_sub(count)?;
                    let count = copied.get(behind..)?.iter().rev();
                    let count = count.fold(0, |count, &byte| count << 8 | usize::from(byte));
                    let slot = (element * most).min(rest.len());
                    let elements = take(&mut rest, slot)?;
                    to.extend_from_slice(elements.get(..element.checked_mul(count)?)?);
                }
                RecipeStep::Rest => to.extend_from_slice(std::mem::take(&mut rest)),
            }
        }
        Some(())
    }
}

/// Takes `bytes` bytes from the front.
fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(bytes)?;
    *rest = left;
    Some(taken)
}

fn bytes(int: &IntClass) -> usize {
    int.length as usize / 8
}

fn element_bytes(element: &FieldClass) -> usize {
    match element {
        FieldClass::Int(int) => bytes(int),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::schema;

    fn recipe(name: &str) -> Recipe {
        let class = schema(&crate::calls::calls());
        let event = class.streams[0]
            .events
            .iter()
            .find(|event| event.name == *name);
        Recipe::new(event.unwrap())
    }

    fn written(name: &str, record: &[u8]) -> Option<Vec<u8>> {
        let mut to = Vec::new();
        recipe(name).write(record, &mut to)?;
        Some(to)
    }

    #[test]
    fn most_records_are_copied_in_one_piece() {
        assert_eq!(recipe("sched_switch").steps, [RecipeStep::Copy(56)]);
        assert_eq!(recipe("block_rq_issue").steps, [RecipeStep::Copy(44)]);
        assert_eq!(recipe("lttng_statedump_start").steps, []);
    }

    #[test]
    fn text_ends_where_it_ends() {
        let mut record = [0u8; 36];
        record[0] = 7;
        record[4..8].copy_from_slice(b"eth0");
        assert_eq!(
            written("irq_handler_entry", &record).unwrap(),
            b"\x07\0\0\0eth0\0"
        );
        // Text that the kernel cut is marked.
        record[4..35].fill(b'x');
        let cut = written("irq_handler_entry", &record).unwrap();
        assert_eq!((cut.len(), &cut[34..]), (4 + 31 + 3 + 1, &b"x...\0"[..]));
        record[35] = b'x';
        assert_eq!(
            written("irq_handler_entry", &record).unwrap().len(),
            4 + 32 + 3 + 1
        );
        assert_eq!(written("irq_handler_entry", &record[..20]), None);
    }

    #[test]
    fn a_fork_has_as_many_numbers_as_there_are_namespaces() {
        let mut record = vec![1u8; 48];
        record.push(2);
        record.extend((0u8..32).map(|byte| byte + 100));
        record.extend([7; 8]);
        let payload = written("sched_process_fork", &record).unwrap();
        assert_eq!(payload.len(), 49 + 8 + 8);
        assert_eq!(payload[49..57], [100, 101, 102, 103, 104, 105, 106, 107]);
        assert_eq!(payload[57..], [7; 8]);
        // More elements than the record has room for.
        record[48] = 9;
        assert_eq!(written("sched_process_fork", &record), None);
    }

    #[test]
    fn a_stack_has_as_many_frames_as_were_found() {
        let mut record = vec![5u8; 36];
        record.extend(2u32.to_le_bytes());
        record.extend([6; 48 * 8]);
        record.extend([[7, 0, 0, 0], [1, 0, 0, 0]].concat());
        record.extend([8; 8]);
        let payload = written("tracebraid_syscall_stack", &record).unwrap();
        assert_eq!(payload.len(), 36 + 4 + 2 * 8 + 4 + 4 + 8);
        assert_eq!(
            payload[36..56],
            [[2, 0, 0, 0].as_slice(), &[6; 16]].concat()
        );
        assert_eq!(payload[60..], [[1, 0, 0, 0].as_slice(), &[8; 8]].concat());
        // More elements than the record contains.
        record[36 + 4 + 48 * 8 + 4] = 2;
        assert_eq!(written("tracebraid_syscall_stack", &record), None);
    }

    #[test]
    fn headers_of_packets_are_copied_as_they_are() {
        let mut record = vec![9u8; 12];
        record.extend(b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        record.extend([1, 69, 0]);
        let payload = written("net_dev_queue", &record).unwrap();
        assert_eq!(payload[12..], *b"lo\0\x01\x45\0");
    }
}
