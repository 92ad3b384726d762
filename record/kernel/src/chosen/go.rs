//! Goroutines: where the runtime of a Go program parks a goroutine, and where it makes one ready.
//!
//! `runtime.gopark` is called by the goroutine that is about to wait, with the reason as its third
//! argument. `runtime.ready` gets the goroutine that may continue. `runtime.goready` is inlined, so
//! it cannot be probed; `ready` runs on the stack of the scheduler (g0), hence the goroutine that
//! caused it is that of the thread (`m.curg`). The register of the current goroutine is r14 (x28 on
//! arm64; "Go internal ABI specification").
//!
//! Programs often lack DWARF, so offsets are stored by version. They follow from
//! `runtime/runtime2.go`: `g.goid` comes after `g.sched`, which lost a word (`ret`) in Go 1.25, and
//! after `g.syscallbp`, which exists since Go 1.23.

use std::ops::Range;

use super::argument::{Architecture, Argument, Source, ValueClass};
use super::executable::Executable;

/// Offsets in the runtime's structures, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offsets {
    /// `g.goid`
    goid: i32,
    /// `m.curg`
    current: i32,
}

/// `g.m`, the same since Go 1.17.
const MACHINE: i32 = 48;

/// Arguments are in registers since Go 1.17 (amd64) and 1.18 (arm64).
const LEAST: u32 = 18;
/// Latest verified minor version.
const LATEST: u32 = 26;

/// Upper bound; there are about forty reasons.
const MOST_REASONS: u64 = 128;
const MOST_REASON: usize = 100;

/// The version of Go that built a program, as `go version` prints it.
fn version(build: &[u8]) -> Option<String> {
    const MAGIC: &[u8] = b"\xff Go buildinf:";
    /// The version follows as text, not as an address.
    const INLINE: u8 = 2;
    if !build.starts_with(MAGIC) || build.get(15)? & INLINE == 0 {
        return None;
    }
    let (&length, rest) = build.get(32..)?.split_first()?;
    // A variable-length number, of which a single byte suffices for a version.
    let text = rest.get(..usize::from(length)).filter(|_| length < 128)?;
    String::from_utf8(text.to_vec()).ok()
}

/// The minor number of `go1.26.8`, `go1.27-devel_...` or `devel go1.27-...`.
fn minor(version: &str) -> Option<u32> {
    let (_, rest) = version.split_once("go1.")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

impl Offsets {
    /// # Errors
    /// A message, if the version is not supported.
    pub(crate) fn of(program: &Executable) -> Result<Offsets, String> {
        let path = program.path.display();
        let version = program.go_build.as_deref().and_then(version);
        let version =
            version.ok_or_else(|| format!("{path}: not a Go program, or built before Go 1.18"))?;
        let minor =
            minor(&version).ok_or_else(|| format!("{path}: unknown version of Go: {version}"))?;
        match minor {
            LEAST..=22 => Ok(Offsets {
                goid: 152,
                current: 192,
            }),
            23 | 24 => Ok(Offsets {
                goid: 160,
                current: 192,
            }),
            25..=LATEST => Ok(Offsets {
                goid: 152,
                current: 184,
            }),
            _ => Err(format!(
                "{path}: built by {version}; goroutine waits can be recorded for Go 1.{LEAST} to 1.{LATEST}"
            )),
        }
    }

    /// The id of the goroutine to whose structure a register points.
    fn goid(self, register: u16) -> Argument {
        let source = Source::Memory {
            base: Some(register),
            index: None,
            displacement: self.goid.into(),
        };
        let class = ValueClass::NUMBER;
        Argument { source, class }
    }

    /// Arguments of `go_park`: `goid`, `reason`.
    pub(crate) fn park(self, machine: Architecture) -> [Argument; 2] {
        let reason = ValueClass {
            bytes: 1,
            ..ValueClass::NUMBER
        };
        [
            self.goid(current(machine)),
            Argument::register(arguments(machine)[2], reason),
        ]
    }

    /// Arguments of `go_ready`: `goid`, `by`.
    pub(crate) fn ready(self, machine: Architecture) -> [Argument; 2] {
        let source = Source::Chain {
            base: current(machine),
            displacements: [MACHINE, self.current, self.goid],
        };
        let class = ValueClass::NUMBER;
        [self.goid(arguments(machine)[0]), Argument { source, class }]
    }
}

/// The register of the current goroutine.
fn current(machine: Architecture) -> u16 {
    match machine {
        Architecture::X86 => 8,
        Architecture::Arm => 28 * 8,
    }
}

/// Registers of a function's first arguments: rax, rbx, rcx; x0, x1, x2.
fn arguments(machine: Architecture) -> [u16; 3] {
    match machine {
        Architecture::X86 => [80, 40, 88],
        Architecture::Arm => [0, 8, 16],
    }
}

/// Names of wait reasons, by number, as the runtime prints them; empty if the program has no
/// symbols or is position-independent (its pointers are not in the file).
pub(crate) fn reasons(program: &Executable) -> Vec<String> {
    let Some(table) = program.symbol("runtime.waitReasonStrings") else {
        return Vec::new();
    };
    let count = (table.bytes / 16).min(MOST_REASONS);
    let reason = |number: u64| {
        let head = program.bytes(table.address + 16 * number, 16)?;
        let (address, length) = head.split_first_chunk::<8>()?;
        let length = u64::from_le_bytes(*length.first_chunk()?);
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= MOST_REASON)?;
        let text = program.bytes(u64::from_le_bytes(*address), length)?;
        String::from_utf8(text).ok()
    };
    (0..count)
        .map(|number| reason(number).unwrap_or_default())
        .collect()
}

/// The address of a function, by the symbol table or, in stripped programs, by Go's own table.
pub(crate) fn function(program: &Executable, name: &str) -> Option<u64> {
    let symbol = program.symbol(name).filter(|symbol| symbol.is_function());
    match symbol {
        Some(symbol) => Some(symbol.address),
        None => in_table(program.go_functions.as_deref()?, name, program.text),
    }
}

/// Bounds of the function that contains an address, from Go's table; they include the padding after
/// the function.
pub(crate) fn extent(program: &Executable, address: u64) -> Option<Range<u64>> {
    let begins = begins(program.go_functions.as_deref()?, program.text)?;
    let after = begins.partition_point(|begin| *begin <= address);
    Some(*begins.get(after.checked_sub(1)?)?..*begins.get(after)?)
}

/// The header of the table: number of functions, base address of their offsets, and offsets of the
/// names and of the entries in the table.
struct Head {
    count: usize,
    begin: u64,
    names: usize,
    functions: usize,
}

/// The layout since Go 1.20 (`internal/abi`, `pclntab.go`): a head of numbers, names, and pairs of
/// offsets of functions and of their descriptions.
fn head(table: &[u8], text: u64) -> Option<Head> {
    const MAGIC: u32 = 0xffff_fff1;
    let large = |at: usize| Some(u64::from_le_bytes(*table.get(at..)?.first_chunk()?));
    let place = |at: usize| usize::try_from(large(at)?).ok();
    if small(table, 0)? != MAGIC || *table.get(7)? != 8 {
        return None;
    }
    Some(Head {
        count: place(8)?,
        // Newer versions omit the address.
        begin: large(24).filter(|begin| *begin != 0).unwrap_or(text),
        names: place(32)?,
        functions: place(64)?,
    })
}

fn small(table: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*table.get(at..)?.first_chunk()?))
}

fn in_table(table: &[u8], name: &str, text: u64) -> Option<u64> {
    let head = head(table, text)?;
    let wanted = [name.as_bytes(), b"\0"].concat();
    for number in 0..head.count {
        let entry = head.functions.checked_add(number.checked_mul(8)?)?;
        let description = head
            .functions
            .checked_add(small(table, entry.checked_add(4)?)? as usize)?;
        let at = head
            .names
            .checked_add(small(table, description.checked_add(4)?)? as usize)?;
        if table.get(at..)?.starts_with(&wanted) {
            return head.begin.checked_add(small(table, entry)?.into());
        }
    }
    None
}

/// Addresses of all functions, in order, and the end of the last one.
fn begins(table: &[u8], text: u64) -> Option<Vec<u64>> {
    let head = head(table, text)?;
    let entries = table
        .get(head.functions..)?
        .chunks(8)
        .take(head.count.checked_add(1)?);
    let begins: Option<Vec<u64>> = entries
        .map(|entry| head.begin.checked_add(small(entry, 0)?.into()))
        .collect();
    begins.filter(|begins| begins.is_sorted())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(version: &str) -> Vec<u8> {
        let mut build = b"\xff Go buildinf:".to_vec();
        build.extend([8, 2]);
        build.resize(32, 0);
        build.push(version.len() as u8);
        build.extend(version.bytes());
        build
    }

    #[test]
    fn offsets_are_those_of_the_version() {
        let of = |version: &str| {
            let program = Executable {
                go_build: Some(build(version)),
                ..Executable::default()
            };
            Offsets::of(&program).map(|offsets| (offsets.goid, offsets.current))
        };
        assert_eq!(of("go1.22.5"), Ok((152, 192)));
        assert_eq!(of("go1.24"), Ok((160, 192)));
        assert_eq!(of("go1.26.8"), Ok((152, 184)));
        assert_eq!(of("go1.26-devel_1234567"), Ok((152, 184)));
        assert!(of("go1.99").unwrap_err().contains("go1.99"));
        assert!(of("go1.17.1").is_err() && of("gccgo").is_err());
        assert!(Offsets::of(&Executable::default()).is_err());
    }

    #[test]
    fn functions_of_a_stripped_program_have_bounds() {
        let mut table = vec![0; 72];
        table[..4].copy_from_slice(&0xffff_fff1u32.to_le_bytes());
        table[7] = 8;
        for (at, number) in [(8, 2u64), (24, 0x1000), (64, 72)] {
            table[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        // Two functions, and the end of the last one.
        for number in [0x10u32, 0, 0x20, 0, 0x28] {
            table.extend(number.to_le_bytes());
        }
        let program = Executable {
            go_functions: Some(table),
            ..Executable::default()
        };
        assert_eq!(extent(&program, 0x1010), Some(0x1010..0x1020));
        assert_eq!(extent(&program, 0x1027), Some(0x1020..0x1028));
        assert_eq!(extent(&program, 0x100f), None);
        assert_eq!(extent(&program, 0x1028), None);
    }

    #[test]
    fn functions_of_a_stripped_program_are_found() {
        let mut table = vec![0; 72];
        table[..4].copy_from_slice(&0xffff_fff1u32.to_le_bytes());
        table[7] = 8;
        for (at, number) in [(8, 2u64), (24, 0x1000), (32, 72), (64, 80)] {
            table[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        table.extend(b"a.b\0a.c\0");
        // Two pairs, then two descriptions.
        for number in [0x10u32, 16, 0x20, 24, 0x10, 0, 0x20, 4] {
            table.extend(number.to_le_bytes());
        }
        assert_eq!(in_table(&table, "a.c", 5), Some(0x1020));
        assert_eq!(in_table(&table, "a.b", 5), Some(0x1010));
        assert_eq!(in_table(&table, "a", 5), None);
        table[24..32].fill(0);
        assert_eq!(in_table(&table, "a.c", 0x5000), Some(0x5020));
        for cut in 0..table.len() {
            in_table(&table[..cut], "a.c", 0);
        }
        table[8..16].fill(0xff);
        assert_eq!(in_table(&table, "x", 0), None);
    }
}
