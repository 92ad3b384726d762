//! Numbers of system calls, for tracers that record only numbers (`raw_syscalls`).

use std::sync::Arc;

use crate::syscall::{Abi, Syscall};

/// System calls of a machine by number.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(Arc<Tables>);

#[derive(Debug)]
struct Tables {
    calls: Vec<Syscall>,
    of_arm: [Syscall; OF_ARM.len()],
    abi: Abi,
}

/// Upper bound of call numbers. Linux has no greater numbers, except on MIPS, whose three tables
/// begin at 4000, 5000 and 6000.
const MOST: usize = 1024;
const MOST_OF_MIPS: usize = 7000;

/// Calls that only 32-bit ARM has, from 0x0f0000 on (`__ARM_NR_BASE`).
const ARM_BASE: i64 = 0x0f_0000;
const OF_ARM: [&str; 7] = [
    "",
    "breakpoint",
    "cacheflush",
    "usr26",
    "usr32",
    "set_tls",
    "get_tls",
];

/// Set in numbers of x32 programs on x86-64 (`__X32_SYSCALL_BIT`).
const X32: i64 = 0x4000_0000;

impl Numbers {
    /// The calls of a machine (named as by `uname -m`), or of its 32-bit programs. A number that
    /// the table lacks becomes a call named after it: `syscall_463`.
    pub(crate) fn new(machine: Option<&str>, compat: bool) -> Numbers {
        let abi = Abi::of_machine(machine);
        let (abi, prefix) = match compat {
            false => (abi, ""),
            true => (abi.compat(), "compat_"),
        };
        let most = match machine.is_some_and(|machine| machine.starts_with("mips")) {
            true => MOST_OF_MIPS,
            false => MOST,
        };
        let mut calls = vec![Syscall::OTHER; most];
        for call in Syscall::table() {
            if let Some(place) = call
                .number(abi)
                .and_then(|number| calls.get_mut(usize::from(number)))
            {
                *place = call;
            }
        }
        for (number, call) in calls.iter_mut().enumerate() {
            if *call == Syscall::OTHER {
                *call = Syscall::named(&format!("{prefix}syscall_{number}"));
            }
        }
        let of_arm = match abi {
            Abi::Arm => OF_ARM.map(Syscall::named),
            _ => [Syscall::OTHER; OF_ARM.len()],
        };
        Numbers(Arc::new(Tables { calls, of_arm, abi }))
    }

    #[inline]
    pub(crate) fn get(&self, number: i64) -> Syscall {
        let call = usize::try_from(number)
            .ok()
            .and_then(|at| self.0.calls.get(at));
        call.copied().unwrap_or_else(|| self.rare(number))
    }

    #[cold]
    fn rare(&self, number: i64) -> Syscall {
        let tables = &*self.0;
        let found = match tables.abi {
            Abi::X86_64 if number & X32 != 0 => usize::try_from(number & !X32)
                .ok()
                .and_then(|at| tables.calls.get(at)),
            Abi::Arm => {
                let at = usize::try_from(number.wrapping_sub(ARM_BASE)).ok();
                at.filter(|&at| at > 0).and_then(|at| tables.of_arm.get(at))
            }
            _ => None,
        };
        found.copied().unwrap_or(Syscall::OTHER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_machine() {
        let of = |machine| Numbers::new(machine, false);
        assert_eq!(of(Some("aarch64")).get(63).name(), "read");
        assert_eq!(of(Some("i686")).get(3).name(), "read");
        assert_eq!(of(Some("armv7l")).get(341).name(), "sync_file_range2");
        assert_eq!(of(None).get(0).name(), "read");
        assert_eq!(of(None).get(202).name(), "futex");
        assert_eq!(of(None).get(-1), Syscall::OTHER);
        assert_eq!(of(None).get(400).name(), "syscall_400");
        assert_eq!(of(None).get(1 << 40), Syscall::OTHER);
    }

    #[test]
    fn what_the_table_lacks_has_the_name_of_its_number() {
        let of = |machine, compat, number| Numbers::new(Some(machine), compat).get(number).name();
        // Tables of other machines are not x86-64's.
        assert_eq!(of("ppc64le", false, 3), "syscall_3");
        assert_eq!(of("mips64", false, 5000), "syscall_5000");
        assert_eq!(of("s390x", true, 3), "compat_syscall_3");
        assert_eq!(of("x86_64", true, 1000), "compat_syscall_1000");
        assert_eq!(of("armv7l", false, 0x0f_0002), "cacheflush");
        assert_eq!(of("aarch64", true, 0x0f_0005), "set_tls");
        assert_eq!(of("armv7l", false, 0x0f_0000), "other");
        assert_eq!(of("x86_64", false, 0x4000_0000), "read");
    }
}
