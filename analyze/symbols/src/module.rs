//! An executable file that is mapped into a process.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

/// Unique identifier that the linker writes into a file.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BuildId(pub Vec<u8>);

impl fmt::Debug for BuildId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{self}")
    }
}

impl fmt::Display for BuildId {
    /// Lower-case hexadecimal digits.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
    }
}

impl BuildId {
    /// Path of the debug information of such a file, relative to a directory of debug information.
    /// `None` for an id of one byte.
    pub(crate) fn debug_file(&self) -> Option<PathBuf> {
        let (first, rest) = self.0.split_first()?;
        let mut name = String::new();
        rest.iter()
            .try_for_each(|byte| write!(name, "{byte:02x}"))
            .ok()?;
        let name = (!rest.is_empty()).then(|| format!("{name}.debug"))?;
        Some(PathBuf::from(format!(".build-id/{first:02x}")).join(name))
    }
}

/// Relation between offsets of a file and addresses in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placed {
    /// The first address of the module is at this offset in the file, in bytes, as in
    /// `/proc/PID/maps`.
    Part(u64),
    /// The loader placed the whole file as its program headers specify, from this address on, as in
    /// LTTng-UST.
    Image(u64),
}

/// A file, or a part of a file, in a process's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// First address.
    pub begin: u64,
    /// Address after the last one.
    pub end: u64,
    /// Relation to the offsets of the file.
    pub placed: Placed,
    /// Path of the file.
    pub path: PathBuf,
    /// Build id at the time of mapping, if it was recorded.
    pub build_id: Option<BuildId>,
}

impl Module {
    /// The rest of the module from an address on.
    pub(crate) fn from(&self, begin: u64) -> Module {
        let placed = match self.placed {
            Placed::Part(offset) => {
                Placed::Part(begin.wrapping_sub(self.begin).wrapping_add(offset))
            }
            Placed::Image(base) => Placed::Image(base),
        };
        Module {
            begin,
            placed,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_information_is_found_by_build_id() {
        let id = BuildId(vec![0xab, 0x01, 0xff]);
        assert_eq!(id.to_string(), "ab01ff");
        assert_eq!(
            id.debug_file(),
            Some(PathBuf::from(".build-id/ab/01ff.debug"))
        );
        assert_eq!(BuildId(vec![1]).debug_file(), None);
        assert_eq!(BuildId(vec![]).debug_file(), None);
    }
}
