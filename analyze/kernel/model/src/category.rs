//! Subjects of system calls.

use serde::{Deserialize, Serialize};

use crate::action::Action;

/// Subject of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Opens files and creates descriptors other than sockets.
    Open,
    /// Reads from a descriptor.
    Read,
    /// Writes to a descriptor.
    Write,
    /// Moves bytes from one descriptor to another.
    Copy,
    /// Waits until data is on its medium.
    Sync,
    /// Copies, closes and changes descriptors.
    Descriptor,
    /// Files, directories, their attributes, mounts.
    File,
    /// I/O that is submitted and completes later.
    AsyncIo,
    /// Sockets, except reading and writing.
    Network,
    /// Futexes.
    Futex,
    /// Sleeps for a time.
    Sleep,
    /// Waits for any of several descriptors.
    Poll,
    /// Creates, ends and awaits processes and threads, and returns their ids.
    Process,
    /// Priorities, policies and CPUs of threads.
    Schedule,
    /// Mappings, locking and placement of memory.
    Memory,
    /// Signals.
    Signal,
    /// Semaphores, shared memory and message queues.
    Ipc,
    /// Clocks and timers, except sleeping.
    Clock,
    /// Users, groups, capabilities, keys and restrictions.
    Security,
    /// The machine: modules, limits, names; and all calls without another category.
    System,
    /// Waits of user-level threads, which are no system calls.
    UserLevel,
}

/// Classes of calls whose latencies an I/O report contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoClass {
    /// Returns a descriptor. For `fcntl`, only commands that copy a descriptor: the caller must
    /// check the command. (lttng-analyses: `open`, `openat`, `socket`, `dup`, `dup2`, `dup3`,
    /// `fcntl`.)
    Open,
    /// Reads. (lttng-analyses: `read`, `readv`, `pread`, `pread64`, `preadv`, `recvmsg`,
    /// `recvfrom`.)
    Read,
    /// Writes. (lttng-analyses: `write`, `writev`, `pwrite`, `pwrite64`, `pwritev`, `sendmsg`,
    /// `sendto`.)
    Write,
    /// Waits until data is on its medium. (lttng-analyses: `sync`, `fsync`, `fdatasync`,
    /// `sync_file_range`.)
    Sync,
}

impl IoClass {
    /// All classes, in the order of reports.
    pub const ALL: [IoClass; 4] = [IoClass::Open, IoClass::Read, IoClass::Write, IoClass::Sync];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            IoClass::Open => "open",
            IoClass::Read => "read",
            IoClass::Write => "write",
            IoClass::Sync => "sync",
        }
    }

    /// Class of a call. A call that moves bytes between descriptors reads and writes, and has no
    /// class.
    pub(crate) fn of(action: Action, category: Category) -> Option<IoClass> {
        use Action::*;
        match action {
            Read | ReadMessages => Some(IoClass::Read),
            Write | WriteMessages => Some(IoClass::Write),
            Open(..) | Socket | Accept | Pipe | SocketPair | Duplicate | DuplicateTo | Control => {
                Some(IoClass::Open)
            }
            _ => (category == Category::Sync).then_some(IoClass::Sync),
        }
    }
}

impl Category {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Category::Open => "open",
            Category::Read => "read",
            Category::Write => "write",
            Category::Copy => "copy",
            Category::Sync => "sync",
            Category::Descriptor => "descriptor",
            Category::File => "file",
            Category::AsyncIo => "async-io",
            Category::Network => "network",
            Category::Futex => "futex",
            Category::Sleep => "sleep",
            Category::Poll => "poll",
            Category::Process => "process",
            Category::Schedule => "schedule",
            Category::Memory => "memory",
            Category::Signal => "signal",
            Category::Ipc => "ipc",
            Category::Clock => "clock",
            Category::Security => "security",
            Category::System => "system",
            Category::UserLevel => "user-level",
        }
    }
}

/// Each call occurs once.
pub(crate) static CATEGORIES: &[(Category, &str)] = &[
    (
        Category::Open,
        "open openat openat2 creat open_by_handle_at eventfd eventfd2 epoll_create epoll_create1
         timerfd_create signalfd signalfd4 inotify_init inotify_init1 fanotify_init memfd_create memfd_secret
         userfaultfd perf_event_open pidfd_open pidfd_getfd pipe pipe2",
    ),
    (
        Category::Read,
        "read pread pread64 readv preadv preadv2 recv recvfrom recvmsg recvmmsg recvmmsg_time32
         recvmmsg_time64 readahead",
    ),
    (
        Category::Write,
        "write pwrite pwrite64 writev pwritev pwritev2 send sendto sendmsg sendmmsg vmsplice",
    ),
    (Category::Copy, "sendfile sendfile64 splice tee copy_file_range"),
    (
        Category::Sync,
        "sync fsync fdatasync sync_file_range sync_file_range2 syncfs msync",
    ),
    (
        Category::Descriptor,
        "close close_range dup dup2 dup3 fcntl fcntl64 ioctl flock lseek llseek",
    ),
    (
        Category::File,
        "access faccessat faccessat2 chdir fchdir chmod fchmod fchmodat fchmodat2 chown chown16 fchown
         fchown16 fchownat lchown lchown16 chroot fadvise64 fadvise64_64 fallocate fanotify_mark
         inotify_add_watch inotify_rm_watch file_getattr file_setattr fsconfig fsmount fsopen fspick stat
         fstat lstat stat64 fstat64 lstat64 fstatat64 newstat newfstat newlstat newfstatat statx statfs
         statfs64 fstatfs fstatfs64 ustat statmount listmount ftruncate ftruncate64 truncate truncate64
         futimesat futimesat_time32 utime utime32 utimes utimes_time32 utimensat utimensat_time32
         utimensat_time64 getcwd getdents getdents64 old_readdir getxattr lgetxattr fgetxattr getxattrat
         setxattr lsetxattr fsetxattr setxattrat listxattr llistxattr flistxattr listxattrat removexattr
         lremovexattr fremovexattr removexattrat link linkat symlink symlinkat unlink unlinkat rename
         renameat renameat2 readlink readlinkat mkdir mkdirat rmdir mknod mknodat umask mount umount
         oldumount mount_setattr move_mount open_tree open_tree_attr pivot_root name_to_handle_at
         lookup_dcookie quotactl quotactl_fd cachestat sysfs nfsservctl",
    ),
    (
        Category::AsyncIo,
        "io_setup io_destroy io_submit io_cancel io_getevents io_getevents_time32 io_pgetevents
         io_pgetevents_time32 io_pgetevents_time64 io_uring_setup io_uring_enter io_uring_register",
    ),
    (
        Category::Network,
        "socket socketpair socketcall bind listen accept accept4 connect shutdown getsockname getpeername
         getsockopt setsockopt",
    ),
    (
        Category::Futex,
        "futex futex_time32 futex_time64 futex_wait futex_wake futex_waitv futex_requeue get_robust_list
         set_robust_list",
    ),
    (
        Category::Sleep,
        "nanosleep nanosleep_time32 clock_nanosleep clock_nanosleep_time32 clock_nanosleep_time64",
    ),
    (
        Category::Poll,
        "poll ppoll ppoll_time32 ppoll_time64 select old_select pselect6 pselect6_time32 pselect6_time64
         epoll_wait epoll_wait_old epoll_pwait epoll_pwait2 epoll_ctl epoll_ctl_old",
    ),
    (
        Category::Process,
        "clone clone3 fork vfork execve execveat exit exit_group wait4 waitid waitpid unshare setns getpid
         getppid gettid getpgid getpgrp getsid setpgid setsid set_tid_address get_thread_area set_thread_area
         arch_prctl prctl personality ptrace kcmp process_madvise process_mrelease process_vm_readv
         process_vm_writev rseq restart_syscall listns uprobe uretprobe modify_ldt times getrusage",
    ),
    (
        Category::Schedule,
        "sched_get_priority_max sched_get_priority_min sched_getaffinity sched_setaffinity sched_getattr
         sched_setattr sched_getparam sched_setparam sched_getscheduler sched_setscheduler
         sched_rr_get_interval sched_rr_get_interval_time32 sched_rr_get_interval_time64 sched_yield
         getpriority setpriority nice ioprio_get ioprio_set getcpu membarrier idle",
    ),
    (
        Category::Memory,
        "brk mmap mmap2 mmap_pgoff old_mmap munmap mremap mprotect madvise mincore mlock mlock2 mlockall
         munlock munlockall mbind get_mempolicy set_mempolicy set_mempolicy_home_node migrate_pages
         move_pages remap_file_pages map_shadow_stack mseal pkey_alloc pkey_free pkey_mprotect swapon swapoff",
    ),
    (
        Category::Signal,
        "kill tkill tgkill pidfd_send_signal rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
         rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time32 rt_sigtimedwait_time64
         rt_tgsigqueueinfo sigaction sigaltstack signal sigpending sigprocmask sigreturn sigsuspend sgetmask
         ssetmask pause",
    ),
    (
        Category::Ipc,
        "ipc msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time32 semtimedop_time64
         shmat shmctl shmdt shmget mq_open mq_getsetattr mq_notify mq_timedreceive mq_timedreceive_time32
         mq_timedreceive_time64 mq_timedsend mq_timedsend_time32 mq_timedsend_time64 mq_unlink",
    ),
    (
        Category::Clock,
        "adjtimex adjtimex_time32 clock_adjtime clock_adjtime32 clock_adjtime64 clock_getres
         clock_getres_time32 clock_getres_time64 clock_gettime clock_gettime32 clock_gettime64 clock_settime
         clock_settime32 clock_settime64 gettimeofday settimeofday time time32 stime stime32 ftime alarm
         getitimer setitimer timer_create timer_delete timer_getoverrun timer_gettime timer_gettime32
         timer_gettime64 timer_settime timer_settime32 timer_settime64 timerfd_gettime timerfd_gettime32
         timerfd_gettime64 timerfd_settime timerfd_settime32 timerfd_settime64",
    ),
    (
        Category::Security,
        "add_key request_key keyctl capget capset getuid getuid16 geteuid geteuid16 getgid getgid16 getegid
         getegid16 getgroups getgroups16 getresuid getresuid16 getresgid getresgid16 setuid setuid16 setgid
         setgid16 setgroups setgroups16 setresuid setresuid16 setresgid setresgid16 setreuid setreuid16
         setregid setregid16 setfsuid setfsuid16 setfsgid setfsgid16 landlock_add_rule
         landlock_create_ruleset landlock_restrict_self lsm_get_self_attr lsm_list_modules
         lsm_set_self_attr seccomp security",
    ),
    (
        Category::System,
        "acct afs_syscall bdflush bpf break create_module delete_module finit_module init_module
         query_module get_kernel_syms getpmsg putpmsg getrandom getrlimit old_getrlimit setrlimit prlimit64
         gtty stty ioperm iopl kexec_file_load kexec_load lock mpx newuname olduname uname
         pciconfig_iobase pciconfig_read pciconfig_write prof profil reboot setdomainname sethostname sysctl
         sysinfo syslog tuxcall ulimit uselib vhangup vm86 vm86old vserver",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::syscall::Syscall;

    #[test]
    fn every_call_has_one_category() {
        let mut times: BTreeMap<&str, u32> =
            Syscall::table().map(|call| (call.name(), 0)).collect();
        for (category, names) in CATEGORIES {
            for name in names.split_whitespace() {
                *times
                    .get_mut(name)
                    .unwrap_or_else(|| panic!("{category:?}: no call {name}")) += 1;
            }
        }
        let wrong: Vec<_> = times.into_iter().filter(|(_, times)| *times != 1).collect();
        assert_eq!(wrong, [], "calls with no or several categories");
    }

    #[test]
    fn classes_of_io_are_those_of_lttng_analyses_at_least() {
        for (class, names) in [
            (IoClass::Open, "open openat socket fcntl dup dup2 dup3"),
            (
                IoClass::Read,
                "read recvmsg recvfrom readv pread pread64 preadv",
            ),
            (
                IoClass::Write,
                "write sendmsg sendto writev pwrite pwrite64 pwritev",
            ),
            (IoClass::Sync, "sync sync_file_range fsync fdatasync"),
        ] {
            for name in names.split_whitespace() {
                assert_eq!(
                    Syscall::by_name(name).unwrap().io_class(),
                    Some(class),
                    "{name}"
                );
            }
        }
        for name in ["close", "splice", "sendfile64", "futex", "mmap"] {
            assert_eq!(Syscall::by_name(name).unwrap().io_class(), None, "{name}");
        }
    }
}
