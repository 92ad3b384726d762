//! Messages on frames of call stacks without names, with a remedy for each reason.

use tracebraid_profile::{MissingFiles, NamelessFile, NamelessFrames};

use crate::units::{first_of, grouped, number_of};

/// One line for each reason.
pub(crate) fn lines(nameless: &NamelessFrames) -> Vec<String> {
    let mut lines = Vec::new();
    if !nameless.changed_files.is_empty() {
        lines.push(changed(&nameless.changed_files));
    }
    let MissingFiles {
        gone,
        deleted,
        in_memory,
    } = nameless.missing();
    if !gone.is_empty() {
        lines.push(restorable(&gone));
    }
    if !deleted.is_empty() {
        lines.push(deleted_before(&deleted));
    }
    if !in_memory.is_empty() {
        lines.push(never_on_disk(&in_memory));
    }
    if let Some(stripped) = nameless.stripped() {
        lines.push(format!(
            "{} ({} in all): the files have no symbols: install debug information (packages -dbgsym, -debuginfo), or give its \
             directory with --debug-dir",
            subject(stripped),
            grouped(nameless.program_frames)
        ));
    }
    lines
}

fn changed(files: &[NamelessFile]) -> String {
    let why = match files.len() {
        1 => "the file changed since the recording, or was not identified in it",
        _ => "the files changed since the recording, or were not identified in it",
    };
    format!("{}: {why}", subject(files))
}

fn restorable(files: &[NamelessFile]) -> String {
    let why = match files.len() {
        1 => "the file does not exist or cannot be read",
        _ => "the files do not exist or cannot be read",
    };
    let restore = match files.len() {
        1 => "restore it there (cp -p)",
        _ => "restore them there (cp -p)",
    };
    let by_build_id = match by_build_id(files) {
        Some(advice) => format!(", or {advice}"),
        None => String::new(),
    };
    format!("{}: {why}: {restore}{by_build_id}", subject(files))
}

fn deleted_before(files: &[NamelessFile]) -> String {
    let remedy =
        by_build_id(files).unwrap_or_else(|| "do not delete files during a recording".to_owned());
    let why = match files.len() {
        1 => "the file had been deleted when it was recorded",
        _ => "the files had been deleted when they were recorded",
    };
    format!("{}: {why}: {remedy}", subject(files))
}

fn never_on_disk(files: &[NamelessFile]) -> String {
    let remedy = by_build_id(files).unwrap_or_else(|| {
        "link such programs with --build-id; just-in-time compilers must write perf-PID.map"
            .to_owned()
    });
    let what = match files.len() {
        1 => "a file in memory (memfd)",
        _ => "files in memory (memfd)",
    };
    format!("{}: {what}: {remedy}", subject(files))
}

/// How to find names by the build id of a file, shown for the file with the most frames.
fn by_build_id(files: &[NamelessFile]) -> Option<String> {
    let file = files.iter().find(|file| file.build_id.is_some())?;
    let id = file.build_id.as_ref()?.to_string();
    let (first, rest) = id
        .split_at_checked(2)
        .filter(|(_, rest)| !rest.is_empty())?;
    let copy = match files.len() {
        1 => "copy it".to_owned(),
        _ => format!("copy {}", file.path.display()),
    };
    let others = match files.len() {
        1 => "",
        _ => " (build ids of the others: --format json)",
    };
    Some(format!(
        "{copy} to DIR/.build-id/{first}/{rest}.debug and give --debug-dir DIR{others}"
    ))
}

fn frames(files: &[NamelessFile]) -> u64 {
    files.iter().map(|file| file.frames).sum()
}

/// Beginning of a line: the number of frames, the files and the verb.
fn subject(files: &[NamelessFile]) -> String {
    let frames = frames(files);
    let names = files.iter().map(|file| file.path.display().to_string());
    let verb = if frames == 1 {
        "has no name"
    } else {
        "have no names"
    };
    format!(
        "{} in {} {verb}",
        number_of(frames, "frame", "frames"),
        first_of(names, "other file", "other files")
    )
}

#[cfg(test)]
mod tests {
    use tracebraid_symbols::BuildId;

    use super::*;

    fn file(path: &str, frames: u64, build_id: Option<&[u8]>) -> NamelessFile {
        NamelessFile {
            path: path.into(),
            frames,
            build_id: build_id.map(|id| BuildId(id.to_vec())),
        }
    }

    #[test]
    fn each_reason_has_a_line_with_its_remedy() {
        let nameless = NamelessFrames {
            program_frames: 100,
            changed_files: vec![file("/opt/program", 12, None)],
            missing_files: vec![
                file("/memfd:code", 4, None),
                file("/cont", 3, Some(&[0xab, 1, 2])),
                file("/gone", 1, None),
            ],
            stripped_files: vec![file("/bin/stripped", 25, None)],
        };
        assert_eq!(
            lines(&nameless),
            [
                "12 frames in /opt/program have no names: the file changed since the recording, or was not identified in it",
                "4 frames in /cont, /gone have no names: the files do not exist or cannot be read: restore them there (cp -p), \
                 or copy /cont to DIR/.build-id/ab/0102.debug and give --debug-dir DIR (build ids of the others: \
                 --format json)",
                "4 frames in /memfd:code have no names: a file in memory (memfd): link such programs with --build-id; \
                 just-in-time compilers must write perf-PID.map",
                "25 frames in /bin/stripped have no names (100 in all): the files have no symbols: install debug information (packages \
                 -dbgsym, -debuginfo), or give its directory with --debug-dir",
            ]
        );
    }

    #[test]
    fn a_single_file_is_named_by_its_build_id() {
        let nameless = NamelessFrames {
            missing_files: vec![file("/cont", 1, Some(&[0xab, 1, 2]))],
            ..NamelessFrames::default()
        };
        assert_eq!(
            lines(&nameless),
            [
                "1 frame in /cont has no name: the file does not exist or cannot be read: restore it there (cp -p), or copy it to \
                 DIR/.build-id/ab/0102.debug and give --debug-dir DIR"
            ]
        );
    }

    #[test]
    fn a_file_that_was_deleted_before_cannot_be_restored() {
        let nameless = |build_id| NamelessFrames {
            missing_files: vec![file("/gone (deleted)", 2, build_id)],
            ..NamelessFrames::default()
        };
        let line = |build_id| lines(&nameless(build_id)).concat();
        let start = "2 frames in /gone (deleted) have no names: the file had been deleted when it was recorded: ";
        assert_eq!(
            line(Some(&[0xab, 1])),
            format!("{start}copy it to DIR/.build-id/ab/01.debug and give --debug-dir DIR")
        );
        assert_eq!(
            line(None),
            format!("{start}do not delete files during a recording")
        );
    }

    #[test]
    fn few_frames_without_symbols_are_not_worth_a_line() {
        let nameless = NamelessFrames {
            program_frames: 100,
            stripped_files: vec![file("/bin/stripped", 24, None)],
            ..NamelessFrames::default()
        };
        assert!(lines(&nameless).is_empty());
    }
}
