//! Processes that run already when they are recorded.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};

use crate::SessionError;

/// A process of this PID namespace.
///
/// A descriptor refers to it rather than its number: numbers are reused, and `/proc` may be missing
/// or that of another PID namespace.
#[derive(Debug)]
pub struct Target {
    number: Pid,
    /// `None` where a sandbox refuses `pidfd_open`.
    descriptor: Option<OwnedFd>,
}

impl Target {
    /// # Errors
    /// If the process does not exist, or the number is that of a thread of another process.
    pub fn find(number: u32) -> Result<Target, SessionError> {
        let none = SessionError::NoProcess(number);
        let Some(pid) = i32::try_from(number).ok().and_then(Pid::from_raw) else {
            return Err(none);
        };
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Some(descriptor),
            Err(Errno::SRCH) => return Err(none),
            // Kernels differ in the error for a thread that does not lead its process.
            Err(Errno::INVAL | Errno::NOENT) => {
                return Err(match process_of(number) {
                    Some(process) if process != number => SessionError::Thread {
                        thread: number,
                        process,
                    },
                    _ => none,
                });
            }
            Err(_) if test_kill_process(pid) == Err(Errno::SRCH) => return Err(none),
            Err(_) => None,
        };
        Ok(Target {
            number: pid,
            descriptor,
        })
    }

    /// True if the process has ended with all of its threads, even if its parent has not waited for
    /// it.
    pub fn has_ended(&self) -> bool {
        let Some(descriptor) = &self.descriptor else {
            return test_kill_process(self.number) == Err(Errno::SRCH);
        };
        let mut asked = [PollFd::new(descriptor, PollFlags::IN)];
        poll(&mut asked, Some(&Timespec::default())).is_ok_and(|found| found > 0)
    }
}

/// The process of a thread, if `/proc` lists it.
fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    process.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_ended_when_it_could_be_waited_for() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let target = Target::find(child.id()).unwrap();
        assert!(!target.has_ended());
        drop(child.stdin.take());
        while !target.has_ended() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(matches!(
            Target::find(u32::MAX),
            Err(SessionError::NoProcess(_))
        ));
    }

    #[test]
    fn a_thread_is_no_process() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            let _ = ended.recv();
        });
        let number = told.recv().unwrap().as_raw_nonzero().get() as u32;
        let found = Target::find(number);
        assert!(
            matches!(found, Err(SessionError::Thread { process, .. }) if process == std::process::id()),
            "{found:?}"
        );
        drop(end);
        thread.join().unwrap();
    }
}
