//! Threads, and the files of their processes.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Payload, Sink, ids, numbers};

/// `PF_KTHREAD`.
const KERNEL_THREAD: u64 = 0x20_0000;
/// Numbers of lttng-modules' statedump: nobody knows what a thread is doing, and in what.
const MODE_UNKNOWN: i32 = 5;
const SUBMODE_NONE: i32 = 0;

/// Tells of all threads and open files.
pub(super) fn dump(proc: &Path, to: &mut impl Sink) {
    for pid in numbers(proc) {
        let process = proc.join(pid.to_string());
        for tid in numbers(&process.join("task")) {
            thread(&process, pid, tid, to);
        }
        for fd in numbers(&process.join("fd")) {
            file(&process, pid, fd, to);
        }
    }
}

/// What `/proc/PID/task/TID/stat` tells.
struct Stat<'s> {
    name: &'s [u8],
    state: u8,
    parent: i32,
    flags: u64,
    cpu: i32,
}

impl<'s> Stat<'s> {
    /// A name may have blanks and brackets: it ends with the last bracket.
    fn parse(text: &'s [u8]) -> Option<Stat<'s>> {
        let begin = text.iter().position(|&byte| byte == b'(')? + 1;
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        Some(Stat {
            name: text.get(begin..end)?,
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            flags: fields.get(6)?.parse().ok()?,
            cpu: fields.get(36)?.parse().ok()?,
        })
    }

    /// As lttng-modules numbers them.
    fn status(&self) -> i32 {
        match self.state {
            b'R' => 2,
            b'Z' => 4,
            b'X' => 7,
            _ => 5,
        }
    }
}

fn thread(process: &Path, pid: u32, tid: u32, to: &mut impl Sink) {
    let task = process.join("task").join(tid.to_string());
    let Ok(text) = fs::read(task.join("stat")) else {
        return;
    };
    let Some(stat) = Stat::parse(&text) else {
        return;
    };
    let (pid, tid) = (pid as i32, tid as i32);
    let is_kernel = stat.flags & KERNEL_THREAD != 0;
    let state = Payload::default()
        .int(tid)
        .int(pid)
        .int(stat.parent)
        .name(stat.name);
    let state = state
        .int(i32::from(is_kernel))
        .int(MODE_UNKNOWN)
        .int(SUBMODE_NONE);
    // Where the table of files lies nobody tells, but that threads of a process share it.
    let state = state.int(stat.status()).int(stat.cpu).long(pid as u64);
    to.event(ids::PROCESS, &state.0);
    namespaces(&task, [tid, stat.parent], to);
}

/// The numbers of a thread in the namespaces of process ids that it is in.
fn namespaces(task: &Path, [tid, parent]: [i32; 2], to: &mut impl Sink) {
    let Ok(status) = fs::read_to_string(task.join("status")) else {
        return;
    };
    let of = |key: &str| -> Vec<i32> {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default()
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect()
    };
    let inum = fs::read_link(task.join("ns/pid")).ok().and_then(|link| {
        let text = link
            .to_str()?
            .strip_prefix("pid:[")?
            .strip_suffix(']')?
            .to_owned();
        text.parse::<u32>().ok()
    });
    let (tids, pids) = (of("NSpid:"), of("NStgid:"));
    for (level, (vtid, vpid)) in tids.iter().zip(&pids).enumerate() {
        let vparent = if level == 0 { parent } else { 0 };
        let numbers = Payload::default()
            .int(tid)
            .int(*vtid)
            .int(*vpid)
            .int(vparent)
            .int(level as i32);
        let is_own = level + 1 == tids.len();
        let numbers = numbers.int(inum.filter(|_| is_own).unwrap_or(0) as i32);
        to.event(ids::NAMESPACE, &numbers.0);
    }
}

fn file(process: &Path, pid: u32, fd: u32, to: &mut impl Sink) {
    let Ok(path) = fs::read_link(process.join("fd").join(fd.to_string())) else {
        return;
    };
    let info = fs::read_to_string(process.join("fdinfo").join(fd.to_string())).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags
        .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
        .unwrap_or(0);
    // O_RDONLY, O_WRONLY, O_RDWR are one less than the bits for reading and writing.
    let mode = (flags & 3) + 1;
    let file = Payload::default()
        .long(u64::from(pid))
        .int(fd as i32)
        .int(flags)
        .int(mode);
    to.event(ids::FILE, &file.text(path.as_os_str().as_bytes()).0);
}

#[cfg(test)]
mod tests {
    use super::super::Collected;
    use super::*;

    #[test]
    fn names_may_have_brackets_and_blanks() {
        let text = b"7 (a) b (c) S 1 7 7 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.name, b"a) b (c");
        assert_eq!(
            (stat.state, stat.parent, stat.cpu, stat.status()),
            (b'S', 1, 3, 5)
        );
        assert!(stat.flags & KERNEL_THREAD != 0);
        assert!(Stat::parse(b"7 (a").is_none());
    }

    #[test]
    fn this_process_is_told_of_with_a_file_that_it_has_open() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut found = Collected::default();
        dump(Path::new("/proc"), &mut found);
        let own = std::process::id() as i32;
        let is_own = |(id, payload): &&(u16, Vec<u8>)| {
            *id == ids::PROCESS && payload[..8] == [own.to_le_bytes(); 2].concat()
        };
        assert_eq!(found.0.iter().filter(is_own).count(), 1);
        let path = file.path().as_os_str().as_bytes();
        let has_path = |(id, payload): &&(u16, Vec<u8>)| {
            *id == ids::FILE
                && payload[..8] == u64::from(std::process::id()).to_le_bytes()
                && payload[20..].starts_with(path)
        };
        assert_eq!(found.0.iter().filter(has_path).count(), 1);
    }
}
