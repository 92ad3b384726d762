//! Names of threads.

use serde::{Deserialize, Serialize};

/// A thread's name as the kernel keeps it: at most 16 bytes, the rest null.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Comm(pub [u8; 16]);

/// The kernel cuts a program's name to this at exec.
const EXEC_BYTES: usize = 15;

impl Comm {
    /// From bytes that may end at a null; what is too long is cut.
    pub fn new(bytes: &[u8]) -> Comm {
        let mut comm = [0; 16];
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        for (to, from) in comm.iter_mut().zip(text) {
            *to = *from;
        }
        Comm(comm)
    }

    /// From 16 bytes, of which those behind a null are something else.
    #[inline(always)]
    pub fn terminated(bytes: [u8; 16]) -> Comm {
        const ONES: u128 = u128::MAX / 0xff;
        let word = u128::from_le_bytes(bytes);
        // The lowest bit that is set is the highest of the first byte that is null.
        let nulls = word.wrapping_sub(ONES) & !word & (ONES << 7);
        let kept = u128::MAX.checked_shr(u128::BITS - (nulls.trailing_zeros() & !7));
        Comm((word & kept.unwrap_or(0)).to_le_bytes())
    }

    /// The name that a thread takes when it executes the program at that path.
    pub fn of_program(path: &[u8]) -> Comm {
        let base = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        Comm::new(base.get(..EXEC_BYTES).unwrap_or(base))
    }

    /// Without what a tracer may have left behind the terminating null.
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
