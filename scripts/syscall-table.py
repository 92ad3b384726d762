#!/usr/bin/env python3
"""Writes analyze/kernel/model/src/calls.rs: every system call of Linux with its numbers and the
names of its arguments.

    scripts/syscall-table.py --x86-64 FILE --i386 FILE --generic FILE --arm FILE \\
        --prototypes linux/syscalls.h > analyze/kernel/model/src/calls.rs

The first four are files with unconditional lines `__NR_name ... number`: the kernel's `unistd_64.h`
and `unistd_32.h`, or the output of bindgen (`general.rs` of the crate linux-raw-sys, by
architecture: for tables that the kernel build generates, and for tables newer than the installed
headers). Prototypes are those of the kernel's `include/linux/syscalls.h`.
"""

import argparse
import re

ABIS = ["x86_64", "i386", "generic", "arm"]

# Calls whose number has a different name than the kernel function that implements the call. Tracers
# use the name of the function.
LONG = {
    "stat": "newstat", "fstat": "newfstat", "lstat": "newlstat", "uname": "newuname",
    "sendfile": "sendfile64", "umount2": "umount", "_sysctl": "sysctl",
}
SHORT = {
    "stat": "newstat", "fstat": "newfstat", "lstat": "newlstat", "uname": "newuname",
    "oldstat": "stat", "oldfstat": "fstat", "oldlstat": "lstat", "oldolduname": "olduname",
    "olduname": "uname", "umount": "oldumount", "umount2": "umount", "select": "old_select",
    "_newselect": "select", "mmap": "old_mmap", "getrlimit": "old_getrlimit",
    "ugetrlimit": "getrlimit", "readdir": "old_readdir", "_llseek": "llseek",
    "_sysctl": "sysctl", "arm_fadvise64_64": "fadvise64_64", "arm_sync_file_range": "sync_file_range2",
}
# In 32-bit tables `NAME` takes 16-bit ids, and `NAME32` is the call that other tables name `NAME`.
IDS = [
    "chown", "lchown", "fchown", "getuid", "getgid", "geteuid", "getegid", "setuid", "setgid",
    "setreuid", "setregid", "getgroups", "setgroups", "setresuid", "getresuid", "setresgid",
    "getresgid", "setfsuid", "setfsgid",
]

# Functions that no unistd.h names: those to which the same numbers led in other kernels, and the
# variants with 32-bit times to which 32-bit numbers lead since Linux 5.1.
MORE = [
    "pread", "pwrite", "mmap_pgoff", "chown16", "lchown16", "fchown16",
    "futex_time32", "nanosleep_time32", "clock_gettime32", "clock_settime32", "clock_getres_time32",
    "clock_nanosleep_time32", "clock_adjtime32", "timer_gettime32", "timer_settime32",
    "timerfd_gettime32", "timerfd_settime32", "utime32", "utimes_time32", "utimensat_time32",
    "futimesat_time32", "stime32", "time32", "adjtimex_time32", "ppoll_time32", "pselect6_time32",
    "recvmmsg_time32", "io_getevents_time32", "io_pgetevents_time32", "semtimedop_time32",
    "mq_timedsend_time32", "mq_timedreceive_time32", "rt_sigtimedwait_time32",
    "sched_rr_get_interval_time32",
]

# Newer than the headers from which the table was made: Linux 6.19.
NEWER = {"listns": 470}

# Prototypes without names.
UNNAMED = {
    "accept": "fd upeer_sockaddr upeer_addrlen", "accept4": "fd upeer_sockaddr upeer_addrlen flags",
    "bind": "fd umyaddr addrlen", "clone": "clone_flags|flags newsp parent_tidptr|parent_tid child_tidptr|child_tid tls",
    "connect": "fd uservaddr addrlen", "getpeername": "fd usockaddr usockaddr_len",
    "getsockname": "fd usockaddr usockaddr_len", "io_submit": "ctx_id nr iocbpp", "listen": "fd backlog",
    "old_readdir": "fd dirent count", "olduname": "name", "uname": "name",
    "ppoll": "ufds nfds tsp sigmask sigsetsize", "pselect6": "n inp outp exp tsp|tvp sig",
    "recv": "fd ubuf size flags", "recvfrom": "fd ubuf size flags addr addr_len",
    "rt_sigaction": "sig act oact sigsetsize", "send": "fd buff len flags",
    "sendto": "fd buff len flags addr addr_len", "shutdown": "fd how", "sigaction": "sig act oact",
    "socket": "family type protocol", "socketpair": "family type protocol usockvec",
    "mmap": "addr len prot flags fd off|offset", "mmap2": "addr len prot flags fd pgoff",
    "old_mmap": "arg", "sysctl": "args", "modify_ldt": "func ptr bytecount", "arch_prctl": "option arg2",
    "iopl": "level", "set_thread_area": "u_info", "get_thread_area": "u_info", "bdflush": "func data",
    "sigreturn": "", "rt_sigreturn": "",
    "cachestat": "fd cstat_range cstat flags", "fchmodat2": "dfd filename mode flags",
    "futex_wake": "uaddr mask nr flags", "futex_wait": "uaddr val mask flags timeout clockid",
    "futex_requeue": "waiters flags nr_wake nr_requeue", "mseal": "start len flags",
    "statmount": "req buf bufsize flags", "listmount": "req mnt_ids nr_mnt_ids flags",
    "map_shadow_stack": "addr size flags",
}
# Other names that lttng-modules or perf use for an argument of the prototype.
OTHER_NAMES = {
    "sendmmsg": {"msg": "mmsg"}, "clock_adjtime": {"tx": "utx"}, "getcpu": {"cpu": "cpup", "node": "nodep", "cache": "tcache"},
    "readlinkat": {"path": "pathname"}, "inotify_add_watch": {"path": "pathname"},
    "keyctl": {"cmd": "option"}, "waitid": {"pid": "upid"}, "wait4": {"pid": "upid"},
    "request_key": {"_type": "type", "_description": "description", "_callout_info": "callout_info"},
    "add_key": {"_type": "type", "_description": "description", "_payload": "payload", "destringid": "ringid"},
    "mq_getsetattr": {"mqstat": "u_mqstat", "omqstat": "u_omqstat"}, "mq_notify": {"notification": "u_notification"},
    "mq_timedreceive": {"msg_ptr": "u_msg_ptr", "msg_prio": "u_msg_prio", "abs_timeout": "u_abs_timeout"},
    "mq_timedsend": {"msg_ptr": "u_msg_ptr", "abs_timeout": "u_abs_timeout"},
    "mq_unlink": {"name": "u_name"}, "mq_open": {"name": "u_name", "attr": "u_attr"},
    "statfs64": {"path": "pathname"}, "statfs": {"path": "pathname"}, "epoll_ctl": {"op": "op_enum"},
    "io_setup": {"nr_reqs": "nr_events", "ctx": "ctxp"}, "madvise": {"len": "len_in"},
    "rt_sigprocmask": {"set": "nset"}, "sigprocmask": {"set": "nset"}, "poll": {"timeout": "timeout_msecs"},
    "llseek": {"whence": "origin"}, "lseek": {"whence": "origin"}, "symlink": {"old": "oldname", "new": "newname"},
    "sigpending": {"uset": "set"}, "migrate_pages": {"from": "old_nodes", "to": "new_nodes"},
    "semtimedop": {"sops": "tsops"}, "semop": {"sops": "tsops"}, "shmget": {"flag": "shmflg"},
    "tee": {"fdin": "fd_in", "fdout": "fd_out"}, "close_range": {"fd": "first", "max_fd": "last"},
    **{name: {"path": "pathname"} for name in [
        "setxattr", "lsetxattr", "getxattr", "lgetxattr", "listxattr", "llistxattr", "removexattr", "lremovexattr"]},
}

TYPES = {"int", "long", "char", "__user", "fd_set", "size_t", "void"}


def numbers(path, abi):
    """Numbers by name of the kernel function."""
    rename = LONG if abi in ("x86_64", "generic") else SHORT
    if abi not in ("x86_64", "generic"):
        rename = rename | {name: name + "16" for name in IDS} | {name + "32": name for name in IDS}
    found = {}
    for line in open(path):
        match = re.search(r"\b__NR_(\w+)(?:: u32 =)?\s+(\d+)\b", line)
        # Skips macros that describe groups of numbers.
        if match and not match[1].endswith(("syscalls", "BASE", "MASK")):
            found[rename.get(match[1], match[1])] = int(match[2])
    return found | NEWER | ({"uprobe": 336} if abi == "x86_64" else {})


def prototypes(path):
    """Names of arguments by name of the call."""
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    found = {}
    for name, arguments in re.findall(r"asmlinkage long sys_(\w+)\(([^;]*?)\);", text, re.S):
        words = [re.findall(r"\w+", argument) for argument in arguments.split(",")]
        names = [argument[-1] for argument in words if argument != ["void"]]
        if not TYPES & set(names):
            found.setdefault(name, names)
    for name, others in OTHER_NAMES.items():
        assert set(others) <= set(found[name]), name
        found[name] = [f"{argument}|{others[argument]}" if argument in others else argument for argument in found[name]]
    return found | {name: arguments.split() for name, arguments in UNNAMED.items()}


def arguments_of(name, known):
    base = re.sub(r"(_time32|_time64|32|64|16)$", "", name)
    older = {"newstat": "stat", "newlstat": "lstat", "newfstat": "fstat", "mmap_pgoff": "mmap2",
             "clock_settime64": "clock_settime", "sync_file_range2": "sync_file_range2"}
    for candidate in (name, base, older.get(name)):
        if candidate in known:
            return known[candidate]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for abi in ABIS:
        parser.add_argument("--" + abi.replace("_", "-"), required=True)
    parser.add_argument("--prototypes", required=True)
    options = vars(parser.parse_args())
    tables = [numbers(options[abi], abi) for abi in ABIS]
    known = prototypes(options["prototypes"])
    names = sorted({name for table in tables for name in table} | set(MORE))
    print("//! Every system call, by name. Written by `scripts/syscall-table.py`, not by hand.\n")
    print("/// A system call: the name of the kernel's function without prefix; its numbers on x86-64, i386,\n"
          "/// the generic table and 32-bit ARM, or -1; its arguments in order, separated by blanks, with\n"
          "/// alternative names separated by bars.")
    print("pub(crate) type Call = (&'static str, [i16; 4], &'static str);\n")
    print("/// Sorted by name.\n#[rustfmt::skip]\npub(crate) static CALLS: &[Call] = &[")
    for name in names:
        row = ", ".join(str(table.get(name, -1)) for table in tables)
        print(f'    ("{name}", [{row}], "{" ".join(arguments_of(name, known))}"),')
    print("];")


if __name__ == "__main__":
    main()
