//! Threads, and the files of their processes.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Payload, Process, Sink, ids, numbers};
use crate::tasks::{Proc, Task};

/// `PF_KTHREAD`.
const KERNEL_THREAD: u32 = 0x20_0000;
/// `EXIT_DEAD` and `EXIT_ZOMBIE`.
const DEAD: u32 = 0x10;
const ZOMBIE: u32 = 0x20;
/// Numbers of lttng-modules' state dump: the mode of a thread is unknown.
const MODE_UNKNOWN: i32 = 5;
const SUBMODE_NONE: i32 = 0;

/// Records all threads of this PID namespace, then the open files of their processes, in the order
/// of lttng-modules.
pub(super) fn dump(tasks: &[Task], proc: Option<Proc>, to: &mut impl Sink) {
    tasks.iter().for_each(|task| thread(task, to));
    for process in super::processes(tasks, proc, false) {
        files(process, to);
    }
}

/// The process of a thread, if `/proc` lists it.
pub(super) fn of_task(task: &Task, proc: Option<Proc>) -> Option<Process> {
    let number = task.number_in(proc?)?;
    Some(Process {
        pid: task.pid,
        number,
    })
}

/// The state of a thread in lttng-modules' numbering.
fn status(task: &Task) -> i32 {
    match (task.exit_state, task.state) {
        (DEAD, _) => 7,
        (ZOMBIE, _) => 4,
        (_, 0) => 2,
        _ => 5,
    }
}

fn thread(task: &Task, to: &mut impl Sink) {
    let is_kernel = task.flags & KERNEL_THREAD != 0;
    let name = task
        .name
        .split(|&byte| byte == 0)
        .next()
        .unwrap_or_default();
    let state = Payload::default()
        .int(task.tid as i32)
        .int(task.pid as i32)
        .int(task.parent as i32)
        .name(name)
        .int(i32::from(is_kernel))
        .int(MODE_UNKNOWN)
        .int(SUBMODE_NONE)
        .int(status(task))
        .int(task.cpu as i32)
        // Threads of a process share the file table, so the process id stands for the table's
        // address.
        .long(u64::from(task.pid));
    to.event_at(task.time, ids::PROCESS, &state.0);
    for (level, numbers) in task.numbers().iter().enumerate() {
        let payload = Payload::default()
            .int(task.tid as i32)
            .int(numbers.tid as i32)
            .int(numbers.pid as i32)
            .int(numbers.parent as i32)
            .int(level as i32)
            .int(numbers.namespace as i32);
        to.event_at(task.time, ids::NAMESPACE, &payload.0);
    }
}

fn files(process: Process, to: &mut impl Sink) {
    let at = Path::new("/proc").join(process.number.to_string());
    for fd in numbers(&at.join("fd")) {
        file(&at, process.pid, fd, to);
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
    fn a_file_that_this_process_has_open_has_the_number_of_event_records() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut found = Collected::default();
        let number = std::process::id();
        files(Process { pid: 7, number }, &mut found);
        let path = file.path().as_os_str().as_bytes();
        let has_path = |(id, payload): &&(u16, Vec<u8>)| {
            *id == ids::FILE
                && payload[..8] == 7u64.to_le_bytes()
                && payload[20..].starts_with(path)
        };
        assert_eq!(found.0.iter().filter(has_path).count(), 1);
    }

    #[test]
    fn a_thread_is_in_the_state_that_the_kernel_has() {
        let status_of = |exit_state, state| {
            let mut task = Task::default();
            (task.exit_state, task.state) = (exit_state, state);
            status(&task)
        };
        assert_eq!(status_of(0, 0), 2);
        assert_eq!(status_of(0, 1), 5);
        assert_eq!(status_of(ZOMBIE, 1), 4);
        assert_eq!(status_of(DEAD, 0), 7);
    }
}
