//! Effects of system calls on files: calls that move bytes, and calls that create, copy and close
//! file descriptors.

use crate::fd::FdType;

/// Effect of a system call on file descriptors. Arguments in parentheses are in the order of the
/// arguments of `SyscallSpec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads from (descriptor); returns the number of bytes.
    Read,
    /// Writes to (descriptor); returns the number of bytes.
    Write,
    /// Moves bytes from the first to the second descriptor; returns their number.
    Copy,
    /// Receives messages from (descriptor); returns their number, not the bytes.
    ReadMessages,
    /// Sends messages to (descriptor); returns their number, not the bytes.
    WriteMessages,
    /// Returns a descriptor of this type; the mask is the close-on-exec bit in (flags).
    Open(FdType, i64),
    /// Returns a socket of (family), (type with flags).
    Socket,
    /// Returns a connection from the socket (descriptor), (flags).
    Accept,
    /// Returns two descriptors in a field of its exit; (flags).
    Pipe,
    /// Returns two sockets of (family), (type with flags) in a field of its exit.
    SocketPair,
    /// Returns a copy of (descriptor).
    Duplicate,
    /// Makes the second descriptor a copy of the first; (flags).
    DuplicateTo,
    /// (descriptor), (command), (argument).
    Control,
    /// Closes (descriptor).
    Close,
    /// Closes from (first) to (last); (flags).
    CloseRange,
    /// Creates a thread or process with (flags); without flags, as `fork` does.
    Clone,
    /// Creates a thread or process with flags in memory, which tracers do not record.
    CloneByMemory,
    /// Gives the thread its own copy of the resources in (flags).
    Unshare,
    /// Writes data of (descriptor), or of all files without one, to the disk.
    Sync,
    /// Connects the socket (descriptor) to an address.
    Connect,
    /// Makes a path, or the file of (descriptor), the working directory.
    ChangeDirectory,
    /// No effect on files.
    Other,
}

impl Action {
    /// True if the call moves bytes and an I/O report counts it.
    pub fn is_io(self) -> bool {
        use Action::*;
        matches!(self, Read | Write | Copy | ReadMessages | WriteMessages)
    }

    /// True if the call moves bytes or changes descriptors or the tables of threads.
    pub fn is_of_descriptors(self) -> bool {
        use Action::*;
        !matches!(self, Sync | Connect | ChangeDirectory | Other)
    }

    /// True if the exit adds no information to the entry.
    pub fn is_done_at_entry(self) -> bool {
        use Action::*;
        matches!(self, Close | CloseRange | Clone | CloneByMemory)
    }
}

/// Flag of `open`, `socket` and similar calls: the descriptor is closed at exec.
pub(crate) const CLOSE_ON_EXEC: i64 = 0o2_000_000;

/// An argument: its names in different tracers, and its index in the call.
pub(crate) type Argument = (&'static [&'static str], u8);

/// A system call with an effect on files.
#[derive(Debug)]
pub struct SyscallSpec {
    /// Name as in the kernel, without prefix.
    pub name: &'static str,
    /// Effect on files.
    pub action: Action,
    pub(crate) arguments: &'static [Argument],
}

macro_rules! call {
    ($name:literal, $action:expr) => {
        SyscallSpec { name: $name, action: $action, arguments: &[] }
    };
    ($name:literal, $action:expr, $($argument:expr),+) => {
        SyscallSpec { name: $name, action: $action, arguments: &[$($argument),+] }
    };
}

const FD: Argument = (&["fd", "ufd", "fildes", "sockfd"], 0);
const FLAGS1: Argument = (&["flags"], 1);
const FAMILY: Argument = (&["family", "domain"], 0);
const TYPE: Argument = (&["type"], 1);
const ADDRESS: Argument = (&["uaddr"], 0);
const OPERATION: Argument = (&["op"], 1);

use Action::*;
use FdType::{Anonymous, File};

/// Calls with an effect on files. Their order is part of the format of partial states.
pub(crate) static TABLE: &[SyscallSpec] = &[
    call!("read", Read, FD),
    call!("write", Write, FD),
    call!("pread64", Read, FD),
    call!("pwrite64", Write, FD),
    call!("readv", Read, FD),
    call!("writev", Write, FD),
    call!("preadv", Read, FD),
    call!("pwritev", Write, FD),
    call!("preadv2", Read, FD),
    call!("pwritev2", Write, FD),
    call!("pread", Read, FD),
    call!("pwrite", Write, FD),
    call!("recvfrom", Read, FD),
    call!("sendto", Write, FD),
    call!("recvmsg", Read, FD),
    call!("sendmsg", Write, FD),
    call!("recv", Read, FD),
    call!("send", Write, FD),
    call!("recvmmsg", ReadMessages, FD),
    call!("recvmmsg_time32", ReadMessages, FD),
    call!("sendmmsg", WriteMessages, FD),
    call!("sendfile64", Copy, (&["in_fd"], 1), (&["out_fd"], 0)),
    call!("sendfile", Copy, (&["in_fd"], 1), (&["out_fd"], 0)),
    call!("splice", Copy, (&["fd_in"], 0), (&["fd_out"], 2)),
    call!(
        "tee",
        Copy,
        (&["fdin", "fd_in"], 0),
        (&["fdout", "fd_out"], 1)
    ),
    call!("copy_file_range", Copy, (&["fd_in"], 0), (&["fd_out"], 2)),
    call!("vmsplice", Write, FD),
    call!("open", Open(File, CLOSE_ON_EXEC), FLAGS1),
    call!(
        "openat",
        Open(File, CLOSE_ON_EXEC),
        (&["flags"], 2),
        (&["dfd", "dirfd"], 0)
    ),
    // The flags are in memory.
    call!(
        "openat2",
        Open(File, 0),
        (&["how"], 2),
        (&["dfd", "dirfd"], 0)
    ),
    call!("creat", Open(File, 0)),
    call!(
        "open_by_handle_at",
        Open(File, CLOSE_ON_EXEC),
        (&["flags"], 2)
    ),
    call!("eventfd", Open(Anonymous, 0)),
    call!("eventfd2", Open(Anonymous, CLOSE_ON_EXEC), FLAGS1),
    call!("epoll_create", Open(Anonymous, 0)),
    call!(
        "epoll_create1",
        Open(Anonymous, CLOSE_ON_EXEC),
        (&["flags"], 0)
    ),
    call!("timerfd_create", Open(Anonymous, CLOSE_ON_EXEC), FLAGS1),
    call!("signalfd", Open(Anonymous, 0)),
    call!("signalfd4", Open(Anonymous, CLOSE_ON_EXEC), (&["flags"], 3)),
    call!("inotify_init", Open(Anonymous, 0)),
    call!(
        "inotify_init1",
        Open(Anonymous, CLOSE_ON_EXEC),
        (&["flags"], 0)
    ),
    call!("fanotify_init", Open(Anonymous, 1), (&["flags"], 0)),
    call!("memfd_create", Open(Anonymous, 1), FLAGS1),
    call!(
        "userfaultfd",
        Open(Anonymous, CLOSE_ON_EXEC),
        (&["flags"], 0)
    ),
    call!("perf_event_open", Open(Anonymous, 8), (&["flags"], 4)),
    call!("pidfd_open", Open(Anonymous, 0)),
    call!("io_uring_setup", Open(Anonymous, 0)),
    call!("mq_open", Open(Anonymous, CLOSE_ON_EXEC), (&["oflag"], 1)),
    call!("socket", Socket, FAMILY, TYPE),
    call!("accept", Accept, FD),
    call!("accept4", Accept, FD, (&["flags"], 3)),
    call!("pipe", Pipe),
    call!("pipe2", Pipe, FLAGS1),
    call!("socketpair", SocketPair, FAMILY, TYPE),
    call!("dup", Duplicate, FD),
    call!("dup2", DuplicateTo, (&["oldfd"], 0), (&["newfd"], 1)),
    call!(
        "dup3",
        DuplicateTo,
        (&["oldfd"], 0),
        (&["newfd"], 1),
        (&["flags"], 2)
    ),
    call!("fcntl", Control, FD, (&["cmd"], 1), (&["arg"], 2)),
    call!("fcntl64", Control, FD, (&["cmd"], 1), (&["arg"], 2)),
    call!("close", Close, FD),
    call!(
        "close_range",
        CloseRange,
        (&["fd", "first"], 0),
        (&["max_fd", "last"], 1),
        (&["flags"], 2)
    ),
    call!("clone", Clone, (&["clone_flags", "flags"], 0)),
    call!("clone3", CloneByMemory),
    call!("fork", Clone),
    call!("vfork", Clone),
    call!("unshare", Unshare, (&["unshare_flags", "flags"], 0)),
    call!("recvmmsg_time64", ReadMessages, FD),
    // Calls without an effect on files, whose arguments reports need all the time.
    call!("futex", Other, ADDRESS, OPERATION),
    call!("futex_time32", Other, ADDRESS, OPERATION),
    call!("futex_time64", Other, ADDRESS, OPERATION),
    call!("futex_wait", Other, ADDRESS),
    call!("futex_wake", Other, ADDRESS),
    call!("sync", Sync),
    call!("fsync", Sync, FD),
    call!("fdatasync", Sync, FD),
    call!("syncfs", Sync, FD),
    call!("sync_file_range", Sync, FD),
    call!("sync_file_range2", Sync, FD),
    call!("connect", Connect, FD),
    call!("chdir", ChangeDirectory),
    call!("fchdir", ChangeDirectory, FD),
];
