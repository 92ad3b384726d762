//! Maps of what just-in-time compilers made (`/tmp/perf-PID.map`), which are kept with the recording.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use nix::fcntl::OFlag;

/// Where runtimes write them.
const PLACE: &str = "/tmp";

/// Larger ones are not kept.
const MOST_BYTES: u64 = 512 << 20;

/// Copies those that processes have written to since that time, or whose process still runs, into a directory.
pub(crate) fn keep(directory: &Path, since: SystemTime) {
    for entry in fs::read_dir(PLACE).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| {
            let digits = name.strip_prefix("perf-")?.strip_suffix(".map")?;
            digits.parse::<u32>().ok()
        });
        if let Some(pid) = pid {
            let _ = copy(pid, &entry.path(), directory, since);
        }
    }
}

fn copy(pid: u32, from: &Path, to: &Path, since: SystemTime) -> io::Result<()> {
    // Everybody may put things there: what is no plain file is left alone.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(from)?;
    let about = file.metadata()?;
    let process = fs::metadata(format!("/proc/{pid}"));
    let runs = process.as_ref().is_ok_and(|process| process.uid() == about.uid());
    if !about.is_file()
        || about.nlink() > 1
        || about.len() > MOST_BYTES
        || !(runs || about.modified()? >= since)
    {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    let name = from.file_name().unwrap_or_default();
    let part = to.join(name).with_extension("part");
    io::copy(&mut file, &mut File::create(&part)?)?;
    fs::rename(part, to.join(name))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn maps_that_were_written_meanwhile_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (
            directory.path().join("perf-1.map"),
            directory.path().join("symbols"),
        );
        fs::write(&from, "1000 10 f\n").unwrap();
        let hour = Duration::from_secs(3600);
        // No process has this number.
        copy(u32::MAX, &from, &to, SystemTime::now() + hour).unwrap();
        assert!(!to.exists());
        copy(u32::MAX, &from, &to, SystemTime::now() - hour).unwrap();
        assert_eq!(fs::read_to_string(to.join("perf-1.map")).unwrap(), "1000 10 f\n");
        let link = directory.path().join("perf-2.map");
        std::os::unix::fs::symlink(&from, &link).unwrap();
        assert!(copy(u32::MAX, &link, &to, SystemTime::now() - hour).is_err());
    }
}
