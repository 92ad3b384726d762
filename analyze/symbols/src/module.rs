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
    /// Where debug information of such a file is, below a directory of debug information. None for
    /// an id of one byte.
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

/// What of a file is where in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placed {
    /// At the module's first address is what is at that offset in the file, in bytes; as
    /// `/proc/PID/maps` tells it.
    Part(u64),
    /// The loader put all of the file there as the file says, from that address on; as LTTng-UST
    /// tells it.
    Image(u64),
}

/// A file, or a part of one, in a process's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Module {
    /// Its first address.
    pub begin: u64,
    /// Behind its last address.
    pub end: u64,
    /// What is there.
    pub placed: Placed,
    /// The file.
    pub path: PathBuf,
    /// Its build id when it was mapped, if it had one and somebody looked.
    pub build_id: Option<BuildId>,
}

impl Module {
    /// What is left of it from that address on.
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
