//! Maps of code compiled at run time (`/tmp/perf-PID.map`), which are copied into the recording.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use tracebraid_kernel_recorder::Processes;

/// Directory to which runtimes write the maps.
const PLACE: &str = "/tmp";

/// Maximum size; larger maps are not copied.
const MOST_BYTES: u64 = 512 << 20;

/// Tolerance when comparing times: the kernel gives the start of a process in hundredths of a
/// second, file times have the resolution of the tick, and the wall clock may have been adjusted
/// meanwhile.
const SLACK: Duration = Duration::from_secs(1);

/// Copies the maps that processes have written since `since`, or that the running process of that
/// number has written, into a directory. A runtime names its map by its process id in its own PID
/// namespace; the copy has the id in the initial namespace, as in event records.
pub(crate) fn keep(directory: &Path, since: SystemTime, processes: Option<&Processes>) {
    let listed = processes
        .and_then(|processes| processes.numbers().ok())
        .unwrap_or_default();
    keep_own(directory, since, processes, &listed);
    for &[initial, number, own] in &listed {
        let to = directory.join(format!("perf-{initial}.map"));
        if !to.exists()
            && let Ok(file) = open_in(number, own)
        {
            let _ = copy(number, file, &to, since);
        }
    }
}

/// Copies the maps in this process's own file system. Their processes may have ended.
fn keep_own(
    directory: &Path,
    since: SystemTime,
    processes: Option<&Processes>,
    listed: &[[u32; 3]],
) {
    for entry in fs::read_dir(PLACE).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| {
            let digits = name.strip_prefix("perf-")?.strip_suffix(".map")?;
            digits.parse::<u32>().ok()
        });
        let Some(pid) = pid else {
            continue;
        };
        let initial = match processes {
            Some(processes) => processes.initial(pid),
            None => Some(pid),
        };
        let Some(initial) = initial else {
            continue;
        };
        let process = listed.iter().find(|[found, ..]| *found == initial);
        let number = process.map_or(pid, |[_, number, _]| *number);
        let to = directory.join(format!("perf-{initial}.map"));
        let _ = open(&entry.path()).and_then(|file| copy(number, file, &to, since));
    }
}

/// All users may create files there: only regular files are opened.
const FLAGS: OFlag = OFlag::O_NOFOLLOW
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(FLAGS.bits()).open(path)
}

/// Opens the map of a process, which may be in a container: symbolic links there are not followed
/// to the outside.
fn open_in(number: u32, own: u32) -> io::Result<File> {
    let root = File::open(format!("/proc/{number}/root"))?;
    let path = format!("tmp/perf-{own}.map");
    let how = OpenHow::new()
        .flags(FLAGS | OFlag::O_RDONLY)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    Ok(File::from(openat2(&root, path.as_str(), how)?))
}

/// Copies the map of the process that has this number under `/proc`, if it exists.
fn copy(number: u32, mut file: File, to: &Path, since: SystemTime) -> io::Result<()> {
    let about = file.metadata()?;
    let written = about.modified()?;
    if !about.is_file()
        || about.nlink() > 1
        || about.len() > MOST_BYTES
        || !(written >= since || is_of_running(number, &about, written))
    {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    let part = to.with_extension("part");
    io::copy(&mut file, &mut File::create(&part)?)?;
    fs::rename(part, to)
}

/// True if a map was written by the running process of this number and not by an earlier process
/// with the same number.
fn is_of_running(pid: u32, about: &fs::Metadata, written: SystemTime) -> bool {
    let process = fs::metadata(format!("/proc/{pid}"));
    let is_its_users = process.is_ok_and(|process| process.uid() == about.uid());
    is_its_users && begun(pid).is_some_and(|begun| written + SLACK >= begun)
}

/// Start time of a process.
fn begun(pid: u32) -> Option<SystemTime> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Field 22, in ticks since boot; field 2 may contain any character.
    let (_, behind) = stat.rsplit_once(')')?;
    let ticks: u64 = behind.split_whitespace().nth(19)?.parse().ok()?;
    let in_a_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).ok()??).ok()?;
    let begun = Duration::from_millis(ticks.checked_mul(1000)?.checked_div(in_a_second)?);
    let up = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?);
    SystemTime::now().checked_sub(up.saturating_sub(begun))
}

#[cfg(test)]
mod tests {
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
        let to_map = to.join("perf-9.map");
        let copy = |since| copy(u32::MAX, open(&from).unwrap(), &to_map, since).unwrap();
        // No process has this number.
        copy(SystemTime::now() + hour);
        assert!(!to.exists());
        copy(SystemTime::now() - hour);
        assert_eq!(fs::read_to_string(&to_map).unwrap(), "1000 10 f\n");
        let link = directory.path().join("perf-2.map");
        std::os::unix::fs::symlink(&from, &link).unwrap();
        assert!(open(&link).is_err());
    }

    #[test]
    fn of_a_running_process_only_its_own_map_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("symbols");
        let mut process = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = process.id();
        let from = directory.path().join(format!("perf-{pid}.map"));
        let later = SystemTime::now() + Duration::from_secs(3600);
        let keeps = |age: u64| {
            fs::write(&from, "1000 10 f\n").unwrap();
            let file = File::options().write(true).open(&from).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age))
                .unwrap();
            copy(pid, open(&from).unwrap(), &to.join("perf-7.map"), later).unwrap();
            fs::remove_dir_all(&to).is_ok()
        };
        let (own, earlier) = (keeps(0), keeps(3000));
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(own, "written before recording began");
        assert!(!earlier, "written by an earlier process of the same number");
    }
}
