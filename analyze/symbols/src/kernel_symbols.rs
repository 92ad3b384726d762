//! Functions of the running kernel, or of a kernel whose symbols perf has stored, in the format of
//! `/proc/kallsyms`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::BuildId;

/// Functions of a kernel and its modules by address.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols {
    /// In ascending order of addresses, without duplicates. A symbol without a name is data, at
    /// which the previous function ends.
    symbols: Vec<Symbol>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Symbol {
    begin: u64,
    name: Option<Box<str>>,
}

/// Maximum length of a line; longer lines are not symbols.
const MOST_LINE: u64 = 1 << 12;
/// Maximum size of a list; a kernel has a few hundred thousand symbols.
const MOST_BYTES: u64 = 1 << 28;
/// Maximum size of a function: addresses farther after the previous symbol belong to no function.
const MOST_SIZE: u64 = 1 << 20;

impl KernelSymbols {
    /// Symbols of the kernel with a build id and with the symbol `reference` at that address: of
    /// the same boot, or without address space randomization. `None` if there is no such list,
    /// because names of another kernel would be wrong.
    ///
    /// Tries the running kernel, and the lists that `perf record` stores in `~/.debug`.
    pub fn of(build_id: &BuildId, reference: (&str, u64)) -> Option<KernelSymbols> {
        let is_running = running().is_some_and(|running| running == *build_id);
        let running = is_running.then(|| PathBuf::from("/proc/kallsyms"));
        let cache = std::env::var_os("HOME").map(|home| {
            let cache = Path::new(&home).join(".debug/[kernel.kallsyms]");
            cache.join(build_id.to_string()).join("kallsyms")
        });
        let files = [running, cache];
        files
            .iter()
            .flatten()
            .find_map(|file| KernelSymbols::open(file, reference).ok().flatten())
    }

    /// Reads the symbols of a list; `None` if the symbol `reference` has another address there.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(file: &Path, (name, address): (&str, u64)) -> io::Result<Option<KernelSymbols>> {
        let mut lines = BufReader::new(File::open(file)?.take(MOST_BYTES));
        let mut found = Vec::new();
        let mut is_it = false;
        let mut line = Vec::new();
        loop {
            line.clear();
            if Read::take(&mut lines, MOST_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            let Some(listed) = Listed::parse(&text) else {
                continue;
            };
            is_it |= (listed.name, listed.address) == (name, address);
            found.push((
                listed.address,
                listed.rank(),
                listed.function().map(Box::from),
            ));
        }
        Ok(is_it.then(|| KernelSymbols::new(found)))
    }

    fn new(mut found: Vec<(u64, Rank, Option<Box<str>>)>) -> KernelSymbols {
        // Among symbols at the same address, the best comes first.
        found.sort_by(|one, other| {
            let by_length = |name: &Option<Box<str>>| name.as_ref().map_or(0, |name| name.len());
            let length = by_length(&other.2).cmp(&by_length(&one.2));
            (one.0, one.1)
                .cmp(&(other.0, other.1))
                .then(length)
                .then(one.2.cmp(&other.2))
        });
        found.dedup_by_key(|symbol| symbol.0);
        let symbol = |(begin, _, name)| Symbol { begin, name };
        KernelSymbols {
            symbols: found.into_iter().map(symbol).collect(),
        }
    }

    /// Name of the function at an address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self
            .symbols
            .partition_point(|symbol| symbol.begin <= address);
        let symbol = self.symbols.get(behind.checked_sub(1)?)?;
        symbol
            .name
            .as_deref()
            .filter(|_| address - symbol.begin < MOST_SIZE)
    }
}

/// Sort key of symbols at the same address: the least is shown.
type Rank = (bool, bool, bool, usize);

/// A line of the list: address, type, name, and the module in brackets.
struct Listed<'l> {
    address: u64,
    kind: u8,
    name: &'l str,
}

impl<'l> Listed<'l> {
    fn parse(line: &'l str) -> Option<Listed<'l>> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = *words.next()?.as_bytes().first()?;
        let name = words.next()?;
        // The kernel shows 0 for all addresses to users without the permission to see them.
        (address != 0).then_some(Listed {
            address,
            kind,
            name,
        })
    }

    /// The name, if the symbol is code.
    fn function(&self) -> Option<&'l str> {
        matches!(self.kind, b't' | b'T' | b'w' | b'W').then_some(self.name)
    }

    /// Order of preference: functions, 64-bit system calls (each has a 32-bit alias), global
    /// symbols, names with fewer leading underscores.
    fn rank(&self) -> Rank {
        let underscores = self.name.len() - self.name.trim_start_matches('_').len();
        let is_for_32_bits = self.name.starts_with("__ia32_");
        (
            self.function().is_none(),
            is_for_32_bits,
            self.kind != b'T',
            underscores,
        )
    }
}

/// Build id of the running kernel.
fn running() -> Option<BuildId> {
    build_id_in_notes(&std::fs::read("/sys/kernel/notes").ok()?)
}

/// Build id in a section of ELF notes.
fn build_id_in_notes(notes: &[u8]) -> Option<BuildId> {
    const BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let word = |at: usize| Some(u32::from_ne_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name_end = 12usize.checked_add(name_size)?;
        let begin = name_end.checked_next_multiple_of(4)?;
        let end = begin.checked_add(size)?;
        if kind == BUILD_ID && rest.get(12..name_end)? == b"GNU\0" {
            return Some(BuildId(rest.get(begin..end)?.to_vec()));
        }
        rest = rest.get(end.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LIST: &str = "ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 t local_first
ffffffff81000100 t helper
ffffffff81000100 T better_name
nonsense
ffffffff81000200 D data
ffffffff81000280 T __ia32_sys_getppid
ffffffff81000280 T __x64_sys_getppid
ffffffff81000300 T last
ffffffffc0000000 t of_module\t[module]
";

    fn listed(text: &str, reference: (&str, u64)) -> Option<KernelSymbols> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text.as_bytes()).expect("a list");
        KernelSymbols::open(file.path(), reference).expect("readable")
    }

    #[test]
    fn functions_are_found_by_address() {
        let symbols = listed(LIST, ("_text", 0xffff_ffff_8100_0000)).expect("the same kernel");
        let name = |address: u64| symbols.name(0xffff_ffff_0000_0000 | address);
        assert_eq!(name(0x8100_0000), Some("_stext"));
        assert_eq!(name(0x8100_01ff), Some("better_name"));
        assert_eq!(name(0x8100_0200), None, "data");
        assert_eq!(name(0x8100_0280), Some("__x64_sys_getppid"));
        assert_eq!(name(0x8100_0300), Some("last"));
        assert_eq!(name(0x8100_0300 + (1 << 20)), None);
        assert_eq!(name(0xc000_0001), Some("of_module"));
        assert_eq!(symbols.name(0x1000), None);
    }

    #[test]
    fn another_boot_names_nothing() {
        assert!(listed(LIST, ("_text", 0xffff_ffff_8200_0000)).is_none());
        assert!(listed("0000000000000000 T _text\n", ("_text", 0)).is_none());
        assert!(KernelSymbols::of(&BuildId(vec![1; 20]), ("_text", 0)).is_none());
    }

    #[test]
    fn build_ids_stand_in_notes() {
        let note = |name: &[u8], kind: u32, text: &[u8]| {
            let words = [name.len() as u32, text.len() as u32, kind];
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            for part in [name, text] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes = [note(b"Linux\0", 3, &[9]), note(b"GNU\0", 3, &[1, 2, 3])].concat();
        assert_eq!(build_id_in_notes(&notes), Some(BuildId(vec![1, 2, 3])));
        assert_eq!(build_id_in_notes(&notes[..20]), None);
        assert_eq!(build_id_in_notes(&[0xff; 40]), None);
    }
}
