//! Names of threads.

use serde::{Deserialize, Serialize};

/// A thread's name as in the kernel: at most 16 bytes, padded with nulls.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// Length in bytes to which the kernel truncates names.
    pub const MOST_BYTES: usize = 15;

    /// Name from bytes that may end at a null; excess bytes are cut.
    pub fn new(bytes: &[u8]) -> Comm {
        let mut comm = [0; 16];
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        for (to, from) in comm.iter_mut().zip(text) {
            *to = *from;
        }
        Comm(comm)
    }

    /// Name from 16 bytes; bytes after a null are cleared.
    #[inline(always)]
    pub fn terminated(bytes: [u8; 16]) -> Comm {
        const ONES: u128 = u128::MAX / 0xff;
        let word = u128::from_le_bytes(bytes);
        // The lowest set bit is the highest bit of the first null byte.
        let nulls = word.wrapping_sub(ONES) & !word & (ONES << 7);
        let kept = u128::MAX.checked_shr(u128::BITS - (nulls.trailing_zeros() & !7));
        Comm((word & kept.unwrap_or(0)).to_le_bytes())
    }

    /// The name that a thread takes when it executes the program at `path`.
    pub fn of_program(path: &[u8]) -> Comm {
        let base = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        Comm::new(base.get(..Comm::MOST_BYTES).unwrap_or(base))
    }

    /// The name as text, without bytes that a tracer may have left after the terminating null.
    pub fn text(&self) -> String {
        let text = self.0.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_like_the_kernel_cuts_them() {
        assert_eq!(
            Comm::of_program(b"/usr/bin/a-program-with-a-long-name").text(),
            "a-program-with-"
        );
        assert_eq!(Comm::of_program(b"ls").text(), "ls");
        assert_eq!(Comm(*b"bash\0garbage\0\0\0\0").text(), "bash");
        assert_eq!(Comm::new(b"sixteen bytes ok").text(), "sixteen bytes ok");
    }

    #[test]
    fn what_follows_a_null_is_left_out() {
        for bytes in [
            b"eth0\0\x01garbage!!!",
            b"sixteen bytes ok",
            &[0; 16],
            b"fifteen bytes..\0",
            b"a\0\0b\0ccccccccccc",
        ] {
            assert_eq!(Comm::terminated(*bytes), Comm::new(bytes));
        }
    }
}
