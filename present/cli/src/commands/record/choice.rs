//! Options that choose kernel events, system calls and buffer sizes.

use std::str::FromStr;

use tracebraid_session::kernel::{GROUPS, Group, Syscalls};

use crate::fold;

/// Groups of kernel events.
#[derive(Clone, Debug)]
pub(crate) struct Groups(pub(super) Vec<Group>);

impl Groups {
    /// True if a group was selected by its name, not with all others.
    pub(super) fn is_named(&self, group: Group) -> bool {
        self.0.contains(&group) && self.0.len() < GROUPS.len()
    }
}

impl FromStr for Groups {
    type Err = String;

    fn from_str(text: &str) -> Result<Groups, String> {
        Ok(Groups(match text {
            "all" => GROUPS.to_vec(),
            "none" => Vec::new(),
            names => names
                .split(',')
                .map(|name| name.trim().parse())
                .collect::<Result<_, _>>()?,
        }))
    }
}

/// The system calls to record.
#[derive(Clone, Debug)]
pub(crate) struct Traced(pub(super) Syscalls);

impl FromStr for Traced {
    type Err = String;

    fn from_str(text: &str) -> Result<Traced, String> {
        Ok(Traced(match text {
            "all" => Syscalls::All,
            "none" => Syscalls::None,
            names => Syscalls::Only(
                names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .collect(),
            ),
        }))
    }
}

/// Sizes of a ring in bytes; the kernel accepts only powers of two that are whole pages.
const RINGS: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

/// Parses the size of a ring in bytes.
///
/// # Errors
/// When the kernel does not accept the size.
pub(crate) fn ring(text: &str) -> Result<u32, String> {
    let bytes = fold::size(text)?;
    if !bytes.is_power_of_two() || !RINGS.contains(&bytes) {
        return Err("expected a power of two from 4K to 1G".to_owned());
    }
    Ok(bytes as u32)
}
