//! Maps of functions that just-in-time compilers generated: lines of address, size and name
//! (Linux's `perf-PID.map`).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Generated functions by address.
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    /// In ascending order of addresses; of several functions at the same address, the last one in
    /// the file.
    functions: Vec<Function>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    begin: u64,
    end: u64,
    name: Box<str>,
}

/// Maximum length of a line; longer lines are invalid.
const MOST_BYTES: u64 = 1 << 16;

impl PerfMap {
    /// Reads a file. Invalid lines are skipped, because the program may still be writing the last
    /// line.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(path: &Path) -> io::Result<PerfMap> {
        let mut file = BufReader::new(File::open(path)?);
        let mut functions = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = io::Read::take(&mut file, MOST_BYTES).read_until(b'\n', &mut line)?;
            if read == 0 {
                break;
            }
            functions.extend(function(&String::from_utf8_lossy(&line)));
        }
        Ok(PerfMap::new(functions))
    }

    fn new(mut functions: Vec<Function>) -> PerfMap {
        functions.sort_by_key(|function| function.begin);
        functions.reverse();
        functions.dedup_by_key(|function| function.begin);
        functions.reverse();
        PerfMap { functions }
    }

    /// Name of the function at an address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self
            .functions
            .partition_point(|function| function.begin <= address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        (address < function.end).then_some(&*function.name)
    }
}

fn function(line: &str) -> Option<Function> {
    let mut parts = line.trim_end().splitn(3, ' ');
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (begin, size) = (number(parts.next()?)?, number(parts.next()?)?);
    let name = parts.next().filter(|name| !name.is_empty())?;
    Some(Function {
        begin,
        end: begin.checked_add(size)?,
        name: name.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_last_word_on_an_address_counts() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let text = "1000 10 py::first:/a b.py\n0x2000 0x20 second\nnonsense\n1000 8 py::again\n3000 zz x\n4000 1";
        file.write_all(text.as_bytes()).unwrap();
        let map = PerfMap::open(file.path()).unwrap();
        assert_eq!(map.name(0x1000), Some("py::again"));
        assert_eq!(map.name(0x1008), None);
        assert_eq!(map.name(0x201f), Some("second"));
        assert_eq!(map.name(0x2020), None);
        assert_eq!(map.name(0x3000), None);
        assert_eq!(map.name(0), None);
    }
}
