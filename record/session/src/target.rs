//! Processes that are to be recorded.

use std::fs;

use crate::SessionError;

/// Checks that there is a process of that number.
///
/// # Errors
/// When there is none, or it is the number of a thread of another one.
pub fn check_process(number: u32) -> Result<(), SessionError> {
    let status = fs::read_to_string(format!("/proc/{number}/status"));
    let status = status.map_err(|_| SessionError::NoProcess(number))?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    match process.and_then(|process| process.trim().parse().ok()) {
        Some(process) if process != number => Err(SessionError::Thread {
            thread: number,
            process,
        }),
        _ => Ok(()),
    }
}
