//! Descriptor tables of threads, in the plainest form.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use tracebraid_kernel_model::FdType;

use crate::events::Record;
use crate::model_io::{ANONYMOUS, Call};

/// The file of a descriptor: its type, and its name as in `files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub kind: FdType,
    pub name: String,
}

impl Held {
    /// No file is known to be open.
    fn nothing() -> Held {
        held(FdType::Unknown, "unknown")
    }
}

pub fn held(kind: FdType, name: impl Into<String>) -> Held {
    let name = name.into();
    Held { kind, name }
}

/// States of a descriptor with their times, the latest last.
type History = Vec<(i64, Held, bool)>;

/// Trace, and the id of the process that had the table first, or a number below -1.
type Table = (u32, i32);

/// Number of further threads that use a table, whether they belong to several processes, and
/// whether the process of that id has another table now.
#[derive(Default)]
struct Users {
    others: u32,
    processes: bool,
    lent: bool,
}

/// Histories of descriptors by table, and of threads' processes and tables.
#[derive(Default)]
pub struct Descriptors {
    histories: HashMap<Table, BTreeMap<i32, History>>,
    users: HashMap<Table, Users>,
    threads: HashMap<(u32, i32), Vec<(i64, i32, i32)>>,
    /// For threads whose creation was not recorded: process and table of the thread that created
    /// them.
    makers: HashMap<(u32, i32), (i32, i32)>,
    /// Flags of a thread's last `clone`.
    clones: HashMap<(u32, i32), i64>,
    addresses: HashMap<(u32, i64), i32>,
    numbered: i32,
}

const CLONE_FILES: i64 = 0x400;
const CLONE_THREAD: i64 = 0x10000;

impl Descriptors {
    /// Process and table of a thread at a time.
    fn belonging(&self, trace: u32, tid: i32, time: i64) -> (i32, i32) {
        let history = self
            .threads
            .get(&(trace, tid))
            .map(Vec::as_slice)
            .unwrap_or_default();
        let last = history.iter().rev().find(|(since, _, _)| *since <= time);
        last.map_or((tid, tid), |(_, pid, table)| (*pid, *table))
    }

    pub fn table(&self, trace: u32, tid: i32, time: i64) -> Table {
        (trace, self.belonging(trace, tid, time).1)
    }

    fn table_of_process(&self, trace: u32, pid: i32) -> Table {
        match self.belonging(trace, pid, i64::MAX) {
            (same, table) if same == pid => (trace, table),
            _ => (trace, pid),
        }
    }

    pub fn kind(&self, table: Table, fd: i32, time: i64) -> (FdType, bool) {
        let (held, cloexec) = self.held(table, fd, time);
        (held.kind, cloexec)
    }

    pub fn held(&self, table: Table, fd: i32, time: i64) -> (Held, bool) {
        let history = self.histories.get(&table).and_then(|fds| fds.get(&fd));
        let found =
            history.and_then(|history| history.iter().rev().find(|(since, _, _)| *since <= time));
        found.map_or((Held::nothing(), false), |(_, held, cloexec)| {
            (held.clone(), *cloexec)
        })
    }

    /// True if a descriptor has referred to the same file since a time.
    pub fn is_same(&self, table: Table, fd: i32, since: i64) -> bool {
        let then = self.held(table, fd, since).0;
        let history = self.histories.get(&table).and_then(|fds| fds.get(&fd));
        let mut later = history
            .into_iter()
            .flatten()
            .filter(|(time, _, _)| *time > since);
        later.all(|(_, held, _)| *held == then)
    }

    fn set(&mut self, table: Table, fd: i32, time: i64, held: Held, cloexec: bool) {
        let cloexec = cloexec && held.kind != FdType::Unknown;
        if fd != -1 && self.held(table, fd, i64::MAX) != (held.clone(), cloexec) {
            let history = self
                .histories
                .entry(table)
                .or_default()
                .entry(fd)
                .or_default();
            history.push((time, held, cloexec));
        }
    }

    /// All tables.
    pub fn tables(&self) -> impl Iterator<Item = Table> {
        self.histories.keys().copied()
    }

    /// Number of threads that share a table, minus one.
    pub fn others(&self, table: Table) -> u32 {
        self.users.get(&table).map_or(0, |users| users.others)
    }

    pub fn fds(&self, table: Table) -> Vec<i32> {
        self.histories
            .get(&table)
            .map(|fds| fds.keys().copied().collect())
            .unwrap_or_default()
    }

    fn close_all(&mut self, table: Table, time: i64) {
        for fd in self.fds(table) {
            self.set(table, fd, time, Held::nothing(), false);
        }
    }

    fn copy(&mut self, from: Table, to: Table, time: i64) {
        self.close_all(to, time);
        for fd in self.fds(from) {
            let (kind, cloexec) = self.held(from, fd, i64::MAX);
            self.set(to, fd, time, kind, cloexec);
        }
        self.users.insert(to, Users::default());
    }

    fn put(&mut self, trace: u32, tid: i32, time: i64, pid: i32, table: i32) {
        self.threads
            .entry((trace, tid))
            .or_default()
            .push((time, pid, table));
    }

    fn leave(&mut self, table: Table) {
        let users = self.users.entry(table).or_default();
        users.others -= 1;
        users.processes &= users.others > 0;
    }

    /// Gives a thread a private copy of its table.
    fn unshare(&mut self, trace: u32, tid: i32, time: i64) -> Table {
        let (pid, old) = self.belonging(trace, tid, i64::MAX);
        if self.users.entry((trace, old)).or_default().others == 0 {
            return (trace, old);
        }
        self.numbered += 1;
        let new = (trace, -1 - self.numbered);
        self.copy((trace, old), new, time);
        self.put(trace, tid, time, pid, new.1);
        self.leave((trace, old));
        self.users.entry((trace, old)).or_default().lent |= old == tid;
        new
    }

    fn member(&mut self, trace: u32, tid: i32, time: i64, pid: i32) {
        let (before, own) = self.belonging(trace, tid, i64::MAX);
        if before == pid {
            return;
        }
        let maker = self
            .makers
            .remove(&(trace, tid))
            .filter(|(process, _)| *process == pid);
        let table = match maker {
            Some((_, table)) => (trace, table),
            None => self.table_of_process(trace, pid),
        };
        let history = self
            .threads
            .get(&(trace, tid))
            .and_then(|history| history.last());
        let own_since = history.map_or(i64::MIN, |(since, _, _)| *since);
        self.put(trace, tid, time, pid, table.1);
        if own == tid {
            for fd in self.fds((trace, tid)) {
                let (kind, cloexec) = self.held((trace, tid), fd, i64::MAX);
                let changed = self.histories[&(trace, tid)][&fd]
                    .last()
                    .map(|(time, _, _)| *time);
                if changed > Some(own_since) && self.kind(table, fd, i64::MAX).0 == FdType::Unknown
                {
                    self.set(table, fd, time, kind, cloexec);
                }
                self.set((trace, tid), fd, time, Held::nothing(), false);
            }
            self.users.entry(table).or_default().others += 1;
        }
    }

    fn fork(&mut self, trace: u32, running: i32, time: i64, event: &Record) {
        let parent = event.id("parent_tid").unwrap_or(running);
        let child = event.id("child_tid").unwrap();
        if let Some(pid) = event.id("parent_pid") {
            self.member(trace, parent, time, pid);
        }
        let (parent_pid, parent_table) = self.belonging(trace, parent, i64::MAX);
        let told = event.id("child_pid");
        let flags = self.clones.remove(&(trace, parent));
        let flags = flags
            .filter(|flags| told.is_none_or(|pid| (pid != child) == (flags & CLONE_THREAD != 0)));
        let by_flags = match flags {
            Some(flags) if flags & CLONE_THREAD != 0 => parent_pid,
            _ => child,
        };
        let pid = told.unwrap_or(by_flags);
        let shared = match flags {
            Some(flags) => (flags & CLONE_FILES != 0).then_some((trace, parent_table)),
            None if pid == child => None,
            None if pid == parent_pid => Some((trace, parent_table)),
            None => Some(self.table_of_process(trace, pid)),
        };
        self.makers.remove(&(trace, child));
        if told.is_none() && flags.is_none() {
            self.makers
                .insert((trace, child), (parent_pid, parent_table));
        }
        match shared {
            Some(table) => {
                self.put(trace, child, time, pid, table.1);
                let users = self.users.entry(table).or_default();
                users.others += 1;
                users.processes |= pid != parent_pid;
            }
            None => {
                let mut table = (trace, child);
                if self.users.get(&table).is_some_and(|users| users.lent) {
                    self.numbered += 1;
                    table.1 = -1 - self.numbered;
                }
                self.put(trace, child, time, pid, table.1);
                self.copy((trace, parent_table), table, time);
            }
        }
    }

    /// State dump: the process has its table at an address.
    fn dumped(&mut self, trace: u32, pid: i32, time: i64, address: i64) {
        let known = self.threads.contains_key(&(trace, pid));
        let mut fds = self.fds((trace, pid)).into_iter();
        let known = known
            || fds.any(|fd| self.kind((trace, pid), fd, i64::MAX) != (FdType::Unknown, false));
        let first = *self.addresses.entry((trace, address)).or_insert(pid);
        if first == pid {
            return;
        }
        if known {
            self.addresses.insert((trace, address), pid);
            return;
        }
        let table = self.table_of_process(trace, first);
        self.put(trace, pid, time, pid, table.1);
        let users = self.users.entry(table).or_default();
        users.others += 1;
        users.processes = true;
    }

    /// Events other than system calls.
    pub fn event(&mut self, trace: u32, running: i32, time: i64, event: &Record) {
        match event.name.as_str() {
            "sched_process_fork" => self.fork(trace, running, time, event),
            "sched_process_exec" => {
                let tid = event.id("tid").or(event.id("pid")).unwrap();
                let mut table = self.table(trace, tid, i64::MAX);
                if self.users.get(&table).is_some_and(|users| users.processes) {
                    table = self.unshare(trace, tid, time);
                }
                for fd in self.fds(table) {
                    if self.kind(table, fd, i64::MAX).1 {
                        self.set(table, fd, time, Held::nothing(), false);
                    }
                }
            }
            "sched_process_exit" => {
                let table = self.table(trace, event.id("tid").unwrap(), i64::MAX);
                if self.users.entry(table).or_default().others > 0 {
                    self.leave(table);
                } else {
                    self.users.entry(table).or_default().lent = false;
                    self.close_all(table, time);
                }
            }
            "lttng_statedump_process_state" => {
                let (tid, pid) = (event.id("tid").unwrap(), event.id("pid").unwrap());
                if let Some(address) = event.int("file_table_address") {
                    self.dumped(trace, pid, time, address);
                }
                self.member(trace, tid, time, pid);
            }
            "lttng_statedump_file_descriptor" => {
                let by_table = || {
                    self.addresses
                        .get(&(trace, event.int("file_table_address")?))
                        .copied()
                };
                let Some(pid) = event.id("pid").or_else(by_table) else {
                    return;
                };
                let table = self.table_of_process(trace, pid);
                let path = event.text("filename").unwrap_or_default();
                let kind = match path {
                    path if path.starts_with("/memfd:") => FdType::Anonymous,
                    path if path.starts_with('/') => opened(path),
                    path if path.starts_with("socket:") => FdType::Socket,
                    path if path.starts_with("pipe:") => FdType::Pipe,
                    path if path.starts_with("anon_inode:") || path.starts_with("inotify") => {
                        FdType::Anonymous
                    }
                    _ => FdType::Unknown,
                };
                let fd = event.id("fd").unwrap();
                if self.kind(table, fd, i64::MAX).0 == FdType::Unknown {
                    let cloexec = event.int("flags").is_some_and(|flags| flags & 0x80000 != 0);
                    self.set(table, fd, time, held(kind, path), cloexec);
                }
            }
            _ => {}
        }
    }

    /// The entry of a call whose exit contains no further information.
    pub fn entry(&mut self, trace: u32, tid: i32, time: i64, name: &str, event: &Record) {
        let table = self.table(trace, tid, i64::MAX);
        match name {
            "close" => self.set(table, event.id("fd").unwrap(), time, Held::nothing(), false),
            "close_range" => {
                let (first, last) = (
                    event.int("fd").unwrap() as u32,
                    event.int("max_fd").unwrap() as u32,
                );
                let flags = event.int("flags").unwrap();
                let table = if flags & 2 != 0 {
                    self.unshare(trace, tid, time)
                } else {
                    table
                };
                for fd in self.fds(table) {
                    let kind = self.held(table, fd, i64::MAX).0;
                    match (first..=last).contains(&(fd as u32)) {
                        true if flags & 4 != 0 => self.set(table, fd, time, kind, true),
                        true => self.set(table, fd, time, Held::nothing(), false),
                        false => {}
                    }
                }
            }
            _ => {
                let flags = match name {
                    "clone" => event.int("clone_flags").or(event.int("flags")),
                    "clone3" => None,
                    _ => Some(0),
                };
                match flags {
                    Some(flags) => self.clones.insert((trace, tid), flags),
                    None => self.clones.remove(&(trace, tid)),
                };
            }
        }
    }

    /// A completed call.
    pub fn call(&mut self, call: &Call) {
        let result = call.exit.int("ret").unwrap();
        if call.name == "connect" && matches!(result, 0 | -115) {
            let table = self.table(call.trace, call.tid, i64::MAX);
            let fd = call.entry.id("fd").unwrap();
            if let Some(address) = peer(&call.entry) {
                let cloexec = self.kind(table, fd, i64::MAX).1;
                let what = held(FdType::Network, format!("socket {address}"));
                self.set(table, fd, call.exit_time, what, cloexec);
            }
            return;
        }
        if result < 0 {
            return;
        }
        let time = call.exit_time;
        let table = self.table(call.trace, call.tid, i64::MAX);
        let has =
            |field: &str, mask: i64| call.entry.int(field).is_some_and(|flags| flags & mask != 0);
        let socket = |kind: FdType| held(kind, socket(kind));
        let family = |family: i64| match family {
            1 => FdType::Unix,
            2 | 10 | 17 => FdType::Network,
            _ => FdType::Socket,
        };
        let anonymous = || held(FdType::Anonymous, anonymous(&call.name, &call.entry));
        let made = result as i32;
        let pair = |field: &str| {
            call.exit
                .lists
                .get(field)
                .filter(|list| list.len() == 2)
                .cloned()
        };
        match call.name.as_str() {
            "open" | "openat" | "openat2" | "creat" => {
                let path = self.path(table, call.entry_time, &call.name, &call.entry);
                let cloexec = call.name.len() < 7 && call.name != "creat" && has("flags", 0x80000);
                let given = call.entry.text("filename").or(call.entry.text("pathname"));
                let kind = opened(given.unwrap_or_default());
                self.set(table, made, time, held(kind, path), cloexec);
            }
            "memfd_create" => self.set(table, made, time, anonymous(), has("flags", 1)),
            "perf_event_open" => self.set(table, made, time, anonymous(), has("flags", 8)),
            "eventfd" | "epoll_create" | "signalfd" | "inotify_init" | "pidfd_open" => {
                self.set(table, made, time, anonymous(), false);
            }
            name if ANONYMOUS.contains(&name) => {
                self.set(table, made, time, anonymous(), has("flags", 0x80000));
            }
            "socket" => {
                let kind = socket(call.entry.int("family").map_or(FdType::Socket, family));
                self.set(table, made, time, kind, has("type", 0x80000));
            }
            "accept" | "accept4" => {
                let listening = call
                    .entry
                    .id("fd")
                    .or(call.entry.id("sockfd"))
                    .unwrap_or(-1);
                let told = call
                    .exit
                    .int("family")
                    .filter(|&family| family > 0)
                    .map(family);
                let kind = told.unwrap_or(match self.kind(table, listening, i64::MAX).0 {
                    FdType::Unknown => FdType::Socket,
                    kind => kind,
                });
                let peer = peer(&call.exit).map(|address| format!("socket from {}", address.ip()));
                let what = peer.map_or(socket(kind), |name| held(kind, name));
                self.set(table, made, time, what, has("flags", 0x80000));
            }
            "pipe" | "pipe2" => {
                for fd in pair("fildes").unwrap_or_default() {
                    self.set(
                        table,
                        fd as i32,
                        time,
                        held(FdType::Pipe, "pipe"),
                        call.name == "pipe2" && has("flags", 0x80000),
                    );
                }
            }
            "socketpair" => {
                let kind = socket(call.entry.int("family").map_or(FdType::Socket, family));
                for fd in pair("socket").unwrap_or_default() {
                    self.set(table, fd as i32, time, kind.clone(), has("type", 0x80000));
                }
            }
            "dup" => {
                let old = call
                    .entry
                    .id("fildes")
                    .or(call.entry.id("fd"))
                    .unwrap_or(-1);
                let kind = self.held(table, old, i64::MAX).0;
                self.set(table, made, time, kind, false);
            }
            "dup2" | "dup3" => {
                let old = call.entry.id("oldfd").unwrap_or(-1);
                if old != made {
                    let kind = self.held(table, old, i64::MAX).0;
                    self.set(
                        table,
                        made,
                        time,
                        kind,
                        call.name == "dup3" && has("flags", 0x80000),
                    );
                }
            }
            "fcntl" => {
                let fd = call.entry.id("fd").unwrap_or(-1);
                let kind = self.held(table, fd, i64::MAX).0;
                match call.entry.int("cmd").unwrap_or(-1) {
                    0 => self.set(table, made, time, kind, false),
                    1030 => self.set(table, made, time, kind, true),
                    2 => self.set(table, fd, time, kind, has("arg", 1)),
                    _ => {}
                }
            }
            "unshare" if has("unshare_flags", CLONE_FILES) => {
                self.unshare(call.trace, call.tid, time);
            }
            _ => {}
        }
    }

    /// The path by which a call opens a file, as far as it is known.
    pub fn path(&self, table: Table, time: i64, call: &str, entry: &Record) -> String {
        let Some(path) = entry.text("filename").or(entry.text("pathname")) else {
            return "unnamed file".to_owned();
        };
        let directory = match call {
            "openat" | "openat2" => entry.id("dfd").or(entry.id("dirfd")),
            _ => None,
        };
        let directory = directory.map(|fd| self.held(table, fd, time).0);
        match directory {
            Some(held)
                if held.kind.has_path() && held.name.starts_with('/') && !path.starts_with('/') =>
            {
                format!("{}/{path}", held.name.trim_end_matches('/'))
            }
            _ => path.to_owned(),
        }
    }
}

/// Type of file at an absolute path.
fn opened(path: &str) -> FdType {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["", "proc" | "sys", ..] | ["", "dev"] => FdType::Virtual,
        ["", "dev", "pts" | "console" | "ptmx", ..] => FdType::Terminal,
        ["", "dev", device, ..] if device.starts_with("tty") => FdType::Terminal,
        ["", "dev", device]
            if ["sd", "vd", "loop", "nvme"]
                .iter()
                .any(|start| device.starts_with(start)) =>
        {
            FdType::File
        }
        ["", "dev", ..] => FdType::Virtual,
        _ => FdType::File,
    }
}

/// Name of a socket. `accept` may be called on a descriptor that is known as another type.
pub fn socket(kind: FdType) -> String {
    match kind {
        FdType::Network => "network socket",
        FdType::Unix => "unix socket",
        FdType::File | FdType::Terminal | FdType::Virtual => "unnamed file",
        FdType::Pipe => "pipe",
        FdType::Anonymous => "anon_inode",
        FdType::Socket | FdType::Unknown => "socket",
    }
    .to_owned()
}

/// Name of a file that is neither regular nor a socket nor a pipe.
pub fn anonymous(call: &str, entry: &Record) -> String {
    let name = match call {
        "memfd_create" => {
            let name = entry.text("uname").or(entry.text("name"));
            return name.map_or("anon_inode".to_owned(), |name| format!("/memfd:{name}"));
        }
        "inotify_init" | "inotify_init1" => return "anon_inode:inotify".to_owned(),
        "epoll_create" | "epoll_create1" => "eventpoll",
        "eventfd" | "eventfd2" => "eventfd",
        "timerfd_create" => "timerfd",
        "signalfd" | "signalfd4" => "signalfd",
        "perf_event_open" => "perf_event",
        "pidfd_open" => "pidfd",
        other => panic!("{other} makes no anonymous file"),
    };
    format!("anon_inode:[{name}]")
}

/// The address passed to `connect` or returned by `accept`.
pub fn peer(event: &Record) -> Option<SocketAddr> {
    let bytes = |name: &str| -> Option<Vec<u8>> {
        Some(
            event
                .lists
                .get(name)?
                .iter()
                .map(|&byte| byte as u8)
                .collect(),
        )
    };
    let port = event.int("dport").or(event.int("sport"))? as u16;
    let address = match event.int("family")? {
        2 => IpAddr::from(<[u8; 4]>::try_from(bytes("v4addr")?).ok()?),
        10 => IpAddr::from(<[u8; 16]>::try_from(bytes("v6addr")?).ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}
