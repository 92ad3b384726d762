//! Names of kernel functions, which are not available after the recording: each is recorded when it
//! first occurs.

use std::collections::HashSet;
use std::fs;
use std::thread::{self, JoinHandle};

use crate::state::Payload;

/// Addresses and names, in the order of addresses.
type Symbols = Vec<(u64, Box<str>)>;

#[derive(Debug, Default)]
pub(crate) struct KernelSymbols {
    /// Reads the symbols in the background, until the first is needed: they take megabytes, and
    /// would delay the start of the recording.
    reading: Option<JoinHandle<Symbols>>,
    symbols: Symbols,
    /// Addresses of recorded functions.
    told: HashSet<u64>,
}

impl KernelSymbols {
    /// Reads `/proc/kallsyms`; no symbols if it hides addresses.
    pub(crate) fn read() -> KernelSymbols {
        let read = || parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default());
        let reading = thread::Builder::new()
            .name("tracebraid-names".into())
            .spawn(read);
        KernelSymbols {
            reading: reading.ok(),
            ..KernelSymbols::default()
        }
    }

    /// The payload of `tracebraid_kernel_symbol` for the function at an address, unless it has been
    /// recorded.
    pub(crate) fn tell(&mut self, address: u64) -> Option<Vec<u8>> {
        if let Some(reading) = self.reading.take() {
            self.symbols = reading.join().unwrap_or_default();
        }
        let behind = self.symbols.partition_point(|(begin, _)| *begin <= address);
        let (begin, name) = self.symbols.get(behind.checked_sub(1)?)?;
        let end = self.symbols.get(behind).map_or(*begin, |(end, _)| *end);
        let is_new = self.told.insert(*begin);
        is_new.then(|| payload(*begin, end, name))
    }

    /// The payloads of all recorded functions, again.
    pub(crate) fn told(&self) -> impl Iterator<Item = Vec<u8>> {
        let ends = self.symbols.iter().skip(1).map(|(end, _)| *end);
        let all = self.symbols.iter().zip(ends);
        all.filter(|((begin, _), _)| self.told.contains(begin))
            .map(|((begin, name), end)| payload(*begin, end, name))
    }
}

fn parse(text: &str) -> Symbols {
    let symbol = |line: &str| {
        let mut parts = line.split_ascii_whitespace();
        let address = u64::from_str_radix(parts.next()?, 16)
            .ok()
            .filter(|&at| at != 0)?;
        let is_code = matches!(parts.next()?, "t" | "T" | "w" | "W");
        is_code.then_some((address, Box::from(parts.next()?)))
    };
    let mut symbols: Symbols = text.lines().filter_map(symbol).collect();
    symbols.sort_unstable();
    // If a function has several names, any of the names is correct.
    symbols.dedup_by_key(|(address, _)| *address);
    symbols
}

fn payload(begin: u64, end: u64, name: &str) -> Vec<u8> {
    let payload = Payload::default().long(begin).long(end - begin);
    payload.text(name.as_bytes()).bytes_of()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _text
ffffffff81000000 T startup
ffffffff81000100 t do_it
ffffffff81000180 d no_code
ffffffff81000200 T last [module]
0000000000000000 T hidden
";

    #[test]
    fn a_function_is_told_of_once() {
        let mut symbols = KernelSymbols {
            symbols: parse(TEXT),
            ..KernelSymbols::default()
        };
        let told = symbols.tell(0xffff_ffff_8100_01ff).unwrap();
        assert_eq!(told[..8], 0xffff_ffff_8100_0100u64.to_le_bytes());
        assert_eq!(told[8..16], 0x100u64.to_le_bytes());
        assert_eq!(told[16..], *b"do_it\0");
        assert_eq!(symbols.tell(0xffff_ffff_8100_0100), None);
        assert!(symbols.tell(0xffff_ffff_8100_0200).is_some());
        assert_eq!(symbols.tell(0xffff_ffff_8000_0000), None);
        assert_eq!(symbols.told().next(), Some(told));
    }
}
