//! A file that was mapped into a process to be executed.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

/// What a linker wrote into a file to tell it from all others.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BuildId(pub Vec<u8>);

impl fmt::Debug for BuildId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{self}")
    }
}

impl fmt::Display for BuildId {
    /// In hexadecimal digits, as everybody writes it.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
    }
}

impl BuildId {
    /// Where debug information of such a file is, below a directory of debug information. None for an id of one byte.
    pub(crate) fn debug_file(&self) -> Option<PathBuf> {
        let (first, rest) = self.0.split_first()?;
        let mut name = String::new();
        rest.iter().try_for_each(|byte| write!(name, "{byte:02x}")).ok()?;
        let name = (!rest.is_empty()).then(|| format!("{name}.debug"))?;
        Some(PathBuf::from(format!(".build-id/{first:02x}")).join(name))
    }
}

/// A part of a file in a process's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its first address.
    pub begin: u64,
    /// Behind its last address.
    pub end: u64,
    /// Where in the file that part begins, in bytes.
    pub offset: u64,
    /// The file.
    pub path: PathBuf,
    /// Its build id when it was mapped, if it had one and somebody looked.
    pub build_id: Option<BuildId>,
}

impl Module {
    /// Where in the file what is at that address is.
    pub(crate) fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.begin).wrapping_add(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_information_is_found_by_build_id() {
        let id = BuildId(vec![0xab, 0x01, 0xff]);
        assert_eq!(id.to_string(), "ab01ff");
        assert_eq!(id.debug_file(), Some(PathBuf::from(".build-id/ab/01ff.debug")));
        assert_eq!(BuildId(vec![1]).debug_file(), None);
        assert_eq!(BuildId(vec![]).debug_file(), None);
    }
}
