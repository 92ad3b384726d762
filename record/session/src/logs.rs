//! Messages of background sessions: one file for each, beside its socket.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::SessionError;
use crate::control::socket;

/// An empty log is useless, but that of a session that has just begun is empty, too.
const BEGINNING: Duration = Duration::from_secs(60);
/// How long the log of an ended session is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The path of the log of a background session.
///
/// # Errors
/// If the name is invalid, or the directory cannot be created.
pub fn path(name: &str) -> Result<PathBuf, SessionError> {
    Ok(socket(name)?.with_extension("log"))
}

/// Removes the log of a session that ended without a message.
pub fn ended(name: &str) {
    if let Ok(path) = path(name)
        && fs::metadata(&path).is_ok_and(|about| about.len() == 0)
    {
        let _ = fs::remove_file(path);
    }
}

/// Removes logs of sessions that ended long ago, and empty logs of sessions that were killed.
pub(crate) fn tidy(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        let Ok(about) = entry.metadata() else {
            continue;
        };
        let age = about
            .modified()
            .ok()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        let most = if about.len() == 0 { BEGINNING } else { KEPT };
        if is_log && age.is_some_and(|age| age > most) && !path.with_extension("sock").exists() {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_go_when_they_are_of_no_use_any_more() {
        let directory = tempfile::tempdir().unwrap();
        let day = Duration::from_secs(24 * 3600);
        for (name, text, age) in [
            ("begins.log", "", Duration::ZERO),
            ("killed.log", "", day),
            ("yesterday.log", "error: no room", day),
            ("old.log", "error: no room", 8 * day),
            ("runs.log", "warning: much", 8 * day),
            ("runs.sock", "", 8 * day),
            ("mine.txt", "", 8 * day),
        ] {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        tidy(directory.path());
        let left = fs::read_dir(directory.path()).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(
            left,
            [
                "begins.log",
                "mine.txt",
                "runs.log",
                "runs.sock",
                "yesterday.log"
            ]
        );
    }
}
