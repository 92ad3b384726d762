//! Programs that give up root: they are recorded as the user that they become, or the loss is
//! reported.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tracebraid_probe::{control, finish};
use tracebraid_testkit::skip::skipped;

use crate::support::{Session, compile, library_directory, read};

const COUNT: u64 = 50_000;

fn users() -> PathBuf {
    compile("cc", "users.c", "users", &[])
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A session that all users, or only root, can access; `None` without root.
fn session(options: &str, mode: u32) -> Option<Session> {
    let session = Session::new(options);
    set_mode(session.path(), mode);
    let is_root = fs::metadata(session.path()).unwrap().uid() == 0;
    if !is_root {
        skipped("only root can become another user");
    }
    is_root.then_some(session)
}

fn run(session: &Session, what: &str) -> String {
    let mut command = session.command(&users(), &[what, &COUNT.to_string()]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn owner(path: &Path) -> u32 {
    fs::metadata(path).unwrap().uid()
}

#[test]
fn a_worker_that_gives_up_root_is_recorded() {
    let options = ["", "mode = ring\npacket_size = 64K\npackets = 64\n"];
    for session in options.iter().filter_map(|options| session(options, 0o755)) {
        assert_eq!(run(&session, "worker"), "");
        session.finish();
        let traces = session.traces();
        assert_eq!(traces.len(), 2);
        for trace in traces {
            let read = read(&trace);
            assert_eq!(read.discarded, 0);
            if owner(&trace) == 0 {
                assert_eq!(
                    (read.count("test:master"), read.count("test:numbered")),
                    (2, 0)
                );
            } else {
                assert_eq!(owner(&trace), 65534);
                assert_eq!(read.numbers("test:numbered"), Vec::from_iter(0..COUNT));
            }
        }
    }
}

#[test]
fn what_others_may_do_in_the_directories_is_no_more_than_they_need() {
    let Some(session) = session("", 0o755) else {
        return;
    };
    run(&session, "worker");
    let mode = |name: &str| fs::metadata(session.path().join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("ust"), mode("ust/pid")), (0o711, 0o1733));
    for trace in session.traces() {
        assert_eq!(fs::metadata(trace).unwrap().mode() & 0o027, 0);
    }
}

#[test]
fn a_process_that_gives_up_root_begins_anew() {
    let options = ["", "mode = ring\npacket_size = 64K\npackets = 128\n"];
    for session in options.iter().filter_map(|options| session(options, 0o755)) {
        assert_eq!(run(&session, "self"), "");
        for trace in session.traces() {
            // Slots of classes that are not registered again do not count.
            let classes = control::Control::open(&trace).unwrap().classes().unwrap();
            assert!(classes.iter().all(|class| class.name.starts_with("test:")));
        }
        session.finish();
        let (mut numbers, mut after, mut lost) = (Vec::new(), 0, 0);
        let traces = session.traces();
        for trace in &traces {
            let read = read(trace);
            numbers.extend(read.numbers("test:numbered"));
            after += read.count("test:after") as u64;
            lost += read.discarded;
        }
        numbers.sort_unstable();
        assert_eq!(numbers.len() as u64 + after + lost, 4 * COUNT, "{traces:?}");
        assert_eq!((lost, traces.len() <= 2), (0, true));
        assert_eq!(numbers, Vec::from_iter(0..2 * COUNT));
    }
}

#[test]
fn what_cannot_be_recorded_of_a_worker_is_counted_as_lost() {
    let Some(session) = session("", 0o700) else {
        return;
    };
    assert_eq!(run(&session, "worker"), "");
    let read = session.read();
    assert_eq!(
        (read.count("test:master"), read.count("test:numbered")),
        (2, 0)
    );
    assert_eq!(read.discarded, COUNT);
}

#[test]
fn a_worker_whose_class_is_off_has_lost_nothing() {
    let Some(session) = session("disable = test:numbered\n", 0o700) else {
        return;
    };
    run(&session, "worker");
    assert_eq!(session.read().discarded, 0);
}

/// Runs the program as another user from its beginning; that user must be able to read it.
fn as_another(session: &Session, place: &Path) -> String {
    set_mode(place, 0o755);
    fs::copy(users(), place.join("users")).unwrap();
    let library = "libtracebraid_probe.so";
    fs::copy(library_directory().join(library), place.join(library)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command
        .arg(place.join("users"))
        .args(["again", &COUNT.to_string()]);
    command
        .env("LD_LIBRARY_PATH", place)
        .env("TRACEBRAID_SESSION", session.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_program_of_another_user_is_recorded_or_says_that_it_is_not() {
    let place = tempfile::tempdir().unwrap();
    let Some(reached) = session("", 0o755) else {
        return;
    };
    tracebraid_probe::parents::prepare(reached.path()).unwrap();
    assert_eq!(as_another(&reached, place.path()), "");
    assert_eq!(reached.read().numbers("test:numbered").len() as u64, COUNT);

    let unreached = session("", 0o700).unwrap();
    tracebraid_probe::parents::prepare(unreached.path()).unwrap();
    let said = as_another(&unreached, place.path());
    assert!(
        said.contains("is not recorded") && said.contains("permission denied"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
    // Nor does it use default options in place of options that it cannot read.
    let unread = session("mode = ring\n", 0o755).unwrap();
    tracebraid_probe::parents::prepare(unread.path()).unwrap();
    set_mode(&unread.path().join("probe.conf"), 0o600);
    assert!(as_another(&unread, place.path()).contains("is not recorded"));
    assert!(unread.traces().is_empty());
    tracebraid_probe::parents::remove_if_empty(unread.path());
    assert!(!unread.path().join("ust").exists());
}

#[test]
fn what_another_user_puts_there_leads_nowhere_else() {
    let session = Session::new("");
    let elsewhere = tempfile::tempdir().unwrap();
    let precious = elsewhere.path().join("stream_0_0");
    let copied = Session::new("mode = ring\npacket_size = 4K\npackets = 16\n");
    copied.run(&["limited", "10"]);
    let ring = fs::read_dir(copied.trace())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains(".ring_"))
        .unwrap();
    fs::write(&precious, vec![7; 100_000]).unwrap();
    fs::write(elsewhere.path().join("metadata"), "secret").unwrap();

    let trace = session.path().join("ust/pid/evil-1-20260101-000000");
    fs::create_dir_all(&trace).unwrap();
    fs::copy(&ring, trace.join(".ring_0_0_4096")).unwrap();
    symlink(&precious, trace.join(".finish_stream_0_0")).unwrap();
    symlink(&precious, trace.join("stream_1_0")).unwrap();
    fs::hard_link(&precious, trace.join("stream_2_0")).unwrap();
    symlink(elsewhere.path().join("metadata"), trace.join("metadata")).unwrap();
    symlink(
        elsewhere.path(),
        trace.with_file_name("link-1-20260101-000000"),
    )
    .unwrap();
    symlink(
        elsewhere.path(),
        trace.with_file_name(".link-1-20260101-000000"),
    )
    .unwrap();
    let pipe = std::ffi::CString::new(trace.join(".control").to_str().unwrap()).unwrap();
    // SAFETY: a path with a NUL.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);

    let copy = session.path().join("copy");
    assert_eq!(finish::copy(session.path(), &copy).unwrap(), 0);
    assert_eq!(fs::read_dir(copy.join("ust/pid")).unwrap().count(), 0);
    let finished = finish::finish(session.path()).unwrap();
    assert_eq!(
        (finished.traces, finished.failed.len()),
        (0, 1),
        "{finished:?}"
    );
    fs::remove_file(trace.join(".control")).unwrap();
    fs::remove_file(trace.join("stream_1_0")).unwrap();
    finish::finish(session.path()).unwrap();
    fs::remove_file(trace.join("stream_2_0")).unwrap();
    let finished = finish::finish(session.path()).unwrap();
    assert_eq!(
        (finished.traces, finished.failed.len()),
        (1, 0),
        "{finished:?}"
    );
    assert!(trace.join("stream_0_0").metadata().unwrap().len() > 100);
    assert_eq!(fs::read(&precious).unwrap(), vec![7; 100_000]);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 2);
}
