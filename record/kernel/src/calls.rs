//! The fields recorded for each system call: the tables `calls.txt` and, for 32-bit programs,
//! `compat.txt`.

use crate::shapes::Shape;

/// A system call.
#[derive(Debug)]
pub(crate) struct Call {
    /// The number on this machine.
    pub(crate) number: u16,
    pub(crate) name: &'static str,
    pub(crate) entry: Vec<Field>,
    /// Fields after the result.
    pub(crate) exit: Vec<Field>,
}

/// A field of a call's event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// The value of an argument, with its size in bytes.
    Value {
        name: &'static str,
        argument: u8,
        class: &'static str,
        bytes: u8,
    },
    /// Text to which an argument points.
    Text { name: &'static str, argument: u8 },
    /// A structure decoded from memory to which an argument points.
    Shape { shape: Shape, argument: u8 },
}

/// The column of the table with this machine's numbers.
#[cfg(target_arch = "x86_64")]
const COLUMN: usize = 0;
#[cfg(not(target_arch = "x86_64"))]
const COLUMN: usize = 1;

/// All system calls of this machine.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Calls of programs with the machine's word size.
    pub(crate) own: Vec<Call>,
    /// Calls of 32-bit programs.
    pub(crate) compat: Vec<Call>,
}

pub(crate) fn calls() -> Calls {
    let has_compat = cfg!(target_arch = "x86_64");
    let compat = include_str!("compat.txt");
    Calls {
        own: table(include_str!("calls.txt"), [COLUMN, 2]),
        compat: table(if has_compat { compat } else { "" }, [0, 1]),
    }
}

/// The calls of a table with number and name in the given columns.
fn table(text: &'static str, columns: [usize; 2]) -> Vec<Call> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| call(line, columns)).collect()
}

fn call(line: &'static str, [number, name]: [usize; 2]) -> Option<Call> {
    let mut parts = line.split('|').map(str::split_whitespace);
    let head: Vec<&str> = parts.next()?.collect();
    let number = head.get(number)?.parse().ok()?;
    let name = head.get(name)?;
    let mut fields = || {
        parts
            .next()
            .into_iter()
            .flatten()
            .filter_map(field)
            .collect()
    };
    Some(Call {
        number,
        name,
        entry: fields(),
        exit: fields(),
    })
}

fn field(text: &'static str) -> Option<Field> {
    let mut parts = text.split(':');
    let name = parts.next()?;
    let argument = parts
        .next()
        .map_or(Some(0), |argument| argument.parse().ok())?;
    if let Some(shape) = name.strip_prefix('@') {
        let shape = Shape::named(shape)?;
        return Some(Field::Shape { shape, argument });
    }
    Some(match parts.next()? {
        "str" => Field::Text { name, argument },
        class => Field::Value {
            name,
            argument,
            class,
            bytes: bytes_of(class)?,
        },
    })
}

/// Size in bytes of a class whose name ends with its bits.
fn bytes_of(class: &str) -> Option<u8> {
    let bits: u8 = class
        .trim_start_matches(|letter: char| letter.is_ascii_alphabetic())
        .parse()
        .ok()?;
    Some(bits / 8)
}

impl Field {
    /// The member of a structure, in TSDL.
    pub(crate) fn tsdl(&self) -> String {
        match self {
            Field::Value { name, class, .. } => format!("{class} _{name};"),
            Field::Text { name, .. } => format!("string _{name};"),
            Field::Shape { shape, .. } => shape.tsdl(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
        text.lines().filter(|line| !line.starts_with('#'))
    }

    #[test]
    fn every_line_is_understood_whole() {
        let (own, compat) = (include_str!("calls.txt"), include_str!("compat.txt"));
        for line in lines(own).chain(lines(compat)) {
            for text in line.split('|').skip(1).flat_map(str::split_whitespace) {
                assert!(field(text).is_some(), "{text} in {line}");
            }
        }
        for line in lines(compat) {
            assert!(call(line, [0, 1]).is_some(), "{line}");
        }
        for line in lines(own) {
            let numbers: Vec<&str> = line.split_whitespace().take(2).collect();
            let numbers: Vec<i16> = numbers
                .iter()
                .map(|number| number.parse().unwrap())
                .collect();
            let is_here = numbers[COLUMN] >= 0;
            assert_eq!(call(line, [COLUMN, 2]).is_some(), is_here, "{line}");
        }
    }

    #[test]
    fn numbers_and_names_are_distinct() {
        let Calls { own, compat } = calls();
        assert!(own.len() > 250);
        for calls in [own, compat] {
            let numbers: HashSet<u16> = calls.iter().map(|call| call.number).collect();
            let names: HashSet<&str> = calls.iter().map(|call| call.name).collect();
            assert_eq!((numbers.len(), names.len()), (calls.len(), calls.len()));
        }
    }

    #[test]
    fn a_call_has_at_most_three_parts_and_six_arguments() {
        let has_part = |field: &Field| match field {
            Field::Value { .. } => false,
            Field::Text { .. } => true,
            Field::Shape { shape, .. } => shape.part().is_some(),
        };
        let Calls { own, compat } = calls();
        for call in own.into_iter().chain(compat) {
            for fields in [&call.entry, &call.exit] {
                assert!(
                    fields.iter().filter(|field| has_part(field)).count() <= 3,
                    "{}",
                    call.name
                );
                for field in fields {
                    let (Field::Value { argument, .. }
                    | Field::Text { argument, .. }
                    | Field::Shape { argument, .. }) = field;
                    assert!(*argument < 6, "{}", call.name);
                }
            }
        }
    }
}
