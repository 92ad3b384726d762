//! Numbers of system calls, for tracers that give these only (`raw_syscalls`).

use crate::syscall::{Abi, Syscall};

/// System calls by number, of one machine.
#[derive(Clone, Debug)]
pub(crate) struct Numbers(std::sync::Arc<[Syscall]>);

impl Numbers {
    pub(crate) fn new(abi: Abi) -> Numbers {
        let numbered = || Syscall::all().filter_map(|call| Some((usize::from(call.number(abi)?), call)));
        let most = numbered().map(|(number, _)| number + 1).max().unwrap_or(0);
        let mut calls = vec![Syscall::OTHER; most];
        for (number, call) in numbered() {
            if let Some(place) = calls.get_mut(number) {
                *place = call;
            }
        }
        Numbers(calls.into())
    }

    #[inline]
    pub(crate) fn get(&self, number: i64) -> Syscall {
        usize::try_from(number)
            .ok()
            .and_then(|at| self.0.get(at).copied())
            .unwrap_or(Syscall::OTHER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_machine() {
        let of = |machine| Numbers::new(Abi::of_machine(machine));
        assert_eq!(of(Some("aarch64")).get(63).name(), "read");
        assert_eq!(of(Some("i686")).get(3).name(), "read");
        assert_eq!(of(Some("armv7l")).get(341).name(), "sync_file_range2");
        assert_eq!(of(None).get(0).name(), "read");
        assert_eq!(of(None).get(202).name(), "futex");
        assert_eq!(of(None).get(-1), Syscall::OTHER);
        assert_eq!(of(None).get(400), Syscall::OTHER);
    }
}
