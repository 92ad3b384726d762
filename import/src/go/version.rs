//! The head of a file: the version of the format.

use crate::error::ImportError;

/// Bytes of `go 1.26 trace\0\0\0`.
pub(super) const HEAD_BYTES: u64 = 16;

/// The minor version of Go that introduced the format: 22, 23, 25 or 26.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u8);

/// True if a file with these first bytes is an execution trace of any version of Go.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    minor(head).is_some()
}

fn minor(head: &[u8]) -> Option<u8> {
    let rest = head.strip_prefix(b"go 1.")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at_checked(digits)?;
    let is_head = rest.starts_with(b" trace");
    let digits = std::str::from_utf8(digits).ok()?;
    digits.parse().ok().filter(|_| is_head)
}

impl Version {
    /// The version that the first bytes of a file contain.
    pub(super) fn of(head: &[u8]) -> Result<Version, ImportError> {
        let Some(minor) = minor(head) else {
            return Err(ImportError::malformed(
                0,
                "this is no execution trace of Go",
            ));
        };
        match minor {
            22 | 23 | 25 | 26 => Ok(Version(minor)),
            ..22 => Err(ImportError::Unsupported(format!(
                "this execution trace has the format of Go 1.{minor}, which has no thread ids: record \
                 it with a program built by Go 1.22 or later"
            ))),
            _ => Err(ImportError::Unsupported(format!(
                "this execution trace has the format of Go 1.{minor}, and the latest known one is \
                 that of Go 1.26: use a later version of tracebraid, or build the program with Go 1.26"
            ))),
        }
    }

    /// Whether the ends of generations are marked.
    pub(super) fn marks_ends(self) -> bool {
        self.0 >= 26
    }

    /// Whether generations have a snapshot of the clocks.
    pub(super) fn has_snapshots(self) -> bool {
        self.0 >= 25
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_known_or_explained() {
        let of = |minor: &str| Version::of(format!("go 1.{minor} trace\0\0\0").as_bytes());
        for minor in ["22", "23", "25", "26"] {
            assert_eq!(of(minor).expect("known").to_string(), format!("1.{minor}"));
        }
        for (minor, remedy) in [
            ("5", "1.22 or later"),
            ("21", "1.22 or later"),
            ("27", "later version"),
        ] {
            let error = of(minor).expect_err("unknown").to_string();
            assert!(error.contains(&format!("Go 1.{minor},")), "{error}");
            assert!(error.contains(remedy), "{error}");
        }
        assert!(!is_magic(b"go 1.x trace\0\0\0\0"));
        assert!(!is_magic(b"go 1.26 tra"));
    }
}
