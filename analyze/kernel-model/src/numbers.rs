//! Numbers of system calls, for tracers that give these only (`raw_syscalls`).

use crate::syscall::Syscall;

/// x86-64.
#[rustfmt::skip]
const X86_64: &[(i64, &str)] = &[
    (0, "read"), (1, "write"), (2, "open"), (3, "close"), (17, "pread64"), (18, "pwrite64"), (19, "readv"),
    (20, "writev"), (22, "pipe"), (32, "dup"), (33, "dup2"), (40, "sendfile64"), (41, "socket"), (43, "accept"),
    (44, "sendto"), (45, "recvfrom"), (46, "sendmsg"), (47, "recvmsg"), (53, "socketpair"), (56, "clone"), (57, "fork"),
    (58, "vfork"), (72, "fcntl"),
    (85, "creat"), (213, "epoll_create"), (240, "mq_open"), (253, "inotify_init"), (257, "openat"), (272, "unshare"),
    (275, "splice"), (276, "tee"), (278, "vmsplice"), (282, "signalfd"), (283, "timerfd_create"),
    (284, "eventfd"), (288, "accept4"), (289, "signalfd4"), (290, "eventfd2"), (291, "epoll_create1"),
    (292, "dup3"), (293, "pipe2"), (294, "inotify_init1"), (295, "preadv"), (296, "pwritev"),
    (298, "perf_event_open"), (299, "recvmmsg"), (300, "fanotify_init"), (304, "open_by_handle_at"),
    (307, "sendmmsg"), (319, "memfd_create"), (323, "userfaultfd"), (326, "copy_file_range"), (327, "preadv2"),
    (328, "pwritev2"), (425, "io_uring_setup"), (434, "pidfd_open"), (435, "clone3"), (436, "close_range"),
    (437, "openat2"),
];

/// AArch64, RISC-V and whatever else uses the generic table.
#[rustfmt::skip]
const GENERIC: &[(i64, &str)] = &[
    (19, "eventfd2"), (20, "epoll_create1"), (23, "dup"), (24, "dup3"), (25, "fcntl"), (26, "inotify_init1"),
    (56, "openat"), (57, "close"), (59, "pipe2"), (63, "read"), (64, "write"), (65, "readv"), (66, "writev"),
    (67, "pread64"), (68, "pwrite64"), (69, "preadv"), (70, "pwritev"), (71, "sendfile64"), (74, "signalfd4"),
    (75, "vmsplice"), (76, "splice"), (77, "tee"), (85, "timerfd_create"), (97, "unshare"), (180, "mq_open"), (198, "socket"),
    (199, "socketpair"), (202, "accept"), (206, "sendto"), (207, "recvfrom"), (211, "sendmsg"), (212, "recvmsg"),
    (220, "clone"), (241, "perf_event_open"), (242, "accept4"), (243, "recvmmsg"), (262, "fanotify_init"),
    (265, "open_by_handle_at"), (269, "sendmmsg"), (279, "memfd_create"), (282, "userfaultfd"),
    (285, "copy_file_range"), (286, "preadv2"), (287, "pwritev2"), (425, "io_uring_setup"), (434, "pidfd_open"),
    (435, "clone3"), (436, "close_range"), (437, "openat2"),
];

/// System calls by number, for the machine that the trace's environment names (x86-64 if none).
#[derive(Clone, Debug)]
pub(crate) struct Numbers(Vec<Syscall>);

impl Numbers {
    pub(crate) fn of_machine(machine: Option<&str>) -> Numbers {
        let generic = machine.is_some_and(|name| {
            ["aarch64", "arm64", "riscv", "loongarch"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        });
        let table = if generic { GENERIC } else { X86_64 };
        let most = table
            .iter()
            .map(|(number, _)| *number as usize + 1)
            .max()
            .unwrap_or(0);
        let mut calls = vec![Syscall::OTHER; most];
        for (number, name) in table {
            if let (Some(place), Some(call)) = (calls.get_mut(*number as usize), Syscall::by_name(name)) {
                *place = call;
            }
        }
        Numbers(calls)
    }

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
    fn every_number_names_a_call_of_the_table() {
        for (number, name) in X86_64.iter().chain(GENERIC) {
            assert!(Syscall::by_name(name).is_some(), "{number} {name}");
        }
        assert_eq!(Numbers::of_machine(Some("aarch64")).get(63).name(), "read");
        assert_eq!(Numbers::of_machine(None).get(0).name(), "read");
        assert_eq!(Numbers::of_machine(None).get(-1), Syscall::OTHER);
    }
}
