//! How many call stacks are whole, and what to do about the others, for people.

use tracebraid_profile::{Quality, Remedy};

use crate::table::{grouped, number_of};

/// Processes and files that are named in one line.
const MOST_NAMED: usize = 3;

/// Fewer stacks than one in a hundred are counted in tables, but are not worth a line.
const LEAST_PERCENT: u64 = 1;

/// A line for each defect of the stacks with its remedy; none if nearly all are whole and have names.
pub(crate) fn lines(quality: &Quality) -> Vec<String> {
    let all = quality.completeness.all();
    let is_much = |part: u64| part > 0 && part * 100 >= all * LEAST_PERCENT;
    let mut lines = Vec::new();
    let cut = quality.completeness.cut;
    if is_much(cut) {
        let limit = quality
            .depth
            .map_or_else(String::new, |depth| format!(" at {depth} frames"));
        lines.push(format!(
            "{} cut{limit}: record deeper ones by --stacks=depth=N",
            part(cut, all)
        ));
    }
    let remedies = quality.remedies.iter().filter(|remedy| is_much(remedy.broken));
    lines.extend(remedies.map(|remedy| broken(remedy, all)));
    lines.extend(changed(quality));
    lines
}

fn part(number: u64, all: u64) -> String {
    let percent = (number * 100).checked_div(all).unwrap_or(0);
    format!(
        "{} of {} call stacks ({percent} %) {}",
        grouped(number),
        grouped(all),
        if number == 1 { "is" } else { "are" }
    )
}

fn broken(remedy: &Remedy, all: u64) -> String {
    let name = |process: &tracebraid_profile::BrokenProcess| match process.pid {
        Some(pid) => format!("{} ({pid})", process.name),
        None => process.name.clone(),
    };
    let names: Vec<String> = remedy.processes.iter().take(MOST_NAMED).map(name).collect();
    let more = match remedy.processes.len().checked_sub(MOST_NAMED) {
        None | Some(0) => String::new(),
        Some(more) => format!(
            " and {}",
            number_of(more as u64, "other process", "other processes")
        ),
    };
    format!(
        "{} broken in {}{more}, {}: {}",
        part(remedy.broken, all),
        names.join(", "),
        remedy.runtime,
        remedy.remedy
    )
}

fn changed(quality: &Quality) -> Option<String> {
    let files = &quality.changed_files;
    let frames = files.iter().map(|file| file.frames).sum();
    let names = files
        .iter()
        .take(MOST_NAMED)
        .map(|file| file.path.display().to_string());
    let names: Vec<String> = names.collect();
    let more = match files.len().checked_sub(MOST_NAMED) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {}", number_of(more as u64, "other file", "other files")),
    };
    let (have, changed) = match (frames, files.len()) {
        (1, 1) => (
            "has no name",
            "the file changed since the recording, or was not identified in it",
        ),
        (_, 1) => (
            "have no names",
            "the file changed since the recording, or was not identified in it",
        ),
        _ => (
            "have no names",
            "the files changed since the recording, or were not identified in it",
        ),
    };
    (frames > 0).then(|| {
        format!(
            "{} in {}{more} {have}: {changed}",
            number_of(frames, "frame", "frames"),
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use tracebraid_profile::{BrokenProcess, ChangedFile, Completeness};

    use super::*;

    fn quality() -> Quality {
        let process = |pid, broken| BrokenProcess {
            pid: Some(pid),
            name: "python3".to_owned(),
            broken,
        };
        Quality {
            completeness: Completeness {
                whole: 2_000,
                cut: 30,
                broken: 970,
            },
            depth: Some(64),
            remedies: vec![Remedy {
                runtime: "Python 3.12".to_owned(),
                broken: 970,
                processes: vec![process(7, 900), process(8, 60), process(9, 9), process(10, 1)],
                remedy: "start python with -X perf (or PYTHONPERFSUPPORT=1)",
            }],
            changed_files: vec![ChangedFile {
                path: "/opt/program".into(),
                frames: 12,
            }],
        }
    }

    #[test]
    fn each_defect_has_a_line_with_its_remedy() {
        assert_eq!(
            lines(&quality()),
            [
                "30 of 3,000 call stacks (1 %) are cut at 64 frames: record deeper ones by --stacks=depth=N",
                "970 of 3,000 call stacks (32 %) are broken in python3 (7), python3 (8), python3 (9) and 1 other process, Python \
                 3.12: start python with -X perf (or PYTHONPERFSUPPORT=1)",
                "12 frames in /opt/program have no names: the file changed since the recording, or was not \
                 identified in it",
            ]
        );
        assert!(lines(&Quality::default()).is_empty());
    }

    #[test]
    fn few_stacks_are_not_worth_a_line() {
        let mut quality = quality();
        quality.completeness.whole = 1_000_000;
        quality.changed_files.clear();
        assert!(lines(&quality).is_empty());
    }
}
