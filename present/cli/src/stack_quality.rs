//! Messages on the completeness of call stacks, with remedies.

use tracebraid_profile::{Limits, Quality, Remedy, StackDefect};

use crate::nameless_frames;
use crate::units::{first_of, grouped};

/// One line for each defect of the stacks, with its remedy; empty if nearly all stacks are complete
/// and have names.
pub(crate) fn lines(quality: &Quality) -> Vec<String> {
    let all = quality.completeness.all();
    let line = |defect| match defect {
        StackDefect::CutByDepth(stacks) => {
            format!("{} {}", part(stacks, all), cut_by_depth(quality.limits))
        }
        StackDefect::CutByBytes(stacks) => {
            format!("{} {}", part(stacks, all), cut_by_bytes(quality.limits))
        }
        StackDefect::Broken(remedy) => broken(remedy, all),
    };
    let mut lines: Vec<String> = quality.defects().into_iter().map(line).collect();
    lines.extend(nameless_frames::lines(&quality.nameless));
    lines
}

fn cut_by_depth(limits: Limits) -> String {
    let limit = limits
        .depth
        .map_or_else(String::new, |depth| format!(" at {depth} frames"));
    match limits.stack_bytes {
        Some(_) => format!("cut{limit}: raise the limit with --stacks=depth=N"),
        // Recordings of earlier versions have one status for both limits.
        None => format!(
            "cut{limit} or at the end of the copied part of the stack: raise the limits with --stacks=depth=N or \
             --stacks=stack_bytes=SIZE"
        ),
    }
}

fn cut_by_bytes(limits: Limits) -> String {
    let limit = limits.stack_bytes.map_or_else(String::new, |bytes| {
        format!(" after {} bytes", grouped(bytes))
    });
    let privileges = match limits.needs_privileges() {
        true => ", which needs CAP_BPF and CAP_PERFMON above 16K",
        false => "",
    };
    format!("cut{limit}: copy more of each stack with --stacks=stack_bytes=SIZE{privileges}")
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
    format!(
        "{} broken in {}, {}: {}",
        part(remedy.broken, all),
        first_of(
            remedy.processes.iter().map(name),
            "other process",
            "other processes"
        ),
        remedy.runtime,
        remedy.remedy
    )
}

#[cfg(test)]
mod tests {
    use tracebraid_profile::{BrokenProcess, Completeness, NamelessFile, NamelessFrames};

    use super::*;

    fn quality() -> Quality {
        let process = |pid, broken| BrokenProcess {
            pid: Some(pid),
            name: "python3".to_owned(),
            broken,
        };
        Quality {
            completeness: Completeness {
                whole: 1_950,
                cut: 80,
                cut_by_bytes: 50,
                broken: 970,
            },
            limits: Limits {
                depth: Some(64),
                stack_bytes: Some(65536),
                threshold_ns: Some(100_000),
            },
            remedies: vec![Remedy {
                runtime: "Python 3.12".to_owned(),
                broken: 970,
                processes: vec![
                    process(7, 900),
                    process(8, 60),
                    process(9, 9),
                    process(10, 1),
                ],
                remedy: "start python with -X perf (or PYTHONPERFSUPPORT=1)",
            }],
            nameless: NamelessFrames {
                changed_files: vec![NamelessFile {
                    path: "/opt/program".into(),
                    frames: 12,
                    build_id: None,
                }],
                ..NamelessFrames::default()
            },
        }
    }

    #[test]
    fn each_defect_has_a_line_with_its_remedy() {
        assert_eq!(
            lines(&quality()),
            [
                "30 of 3,000 call stacks (1 %) are cut at 64 frames: raise the limit with --stacks=depth=N",
                "50 of 3,000 call stacks (1 %) are cut after 65,536 bytes: copy more of each stack with \
                 --stacks=stack_bytes=SIZE",
                "970 of 3,000 call stacks (32 %) are broken in python3 (7), python3 (8), python3 (9) and 1 other process, Python \
                 3.12: start python with -X perf (or PYTHONPERFSUPPORT=1)",
                "12 frames in /opt/program have no names: the file changed since the recording, or was not \
                 identified in it",
            ]
        );
        assert!(lines(&Quality::default()).is_empty());
    }

    #[test]
    fn recordings_with_one_status_for_both_limits_have_both_remedies() {
        let mut quality = quality();
        quality.limits.stack_bytes = None;
        quality.completeness.cut_by_bytes = 0;
        assert_eq!(
            lines(&quality)[0],
            "80 of 3,000 call stacks (2 %) are cut at 64 frames or at the end of the copied part of the stack: raise \
             the limits with --stacks=depth=N or --stacks=stack_bytes=SIZE"
        );
    }

    #[test]
    fn unprivileged_recordings_copy_little() {
        let mut quality = quality();
        quality.limits.stack_bytes = Some(16384);
        assert!(
            lines(&quality)[1].ends_with("=SIZE, which needs CAP_BPF and CAP_PERFMON above 16K")
        );
    }

    #[test]
    fn few_stacks_are_not_worth_a_line() {
        let mut quality = quality();
        quality.completeness.whole = 1_000_000;
        quality.nameless.changed_files.clear();
        assert!(lines(&quality).is_empty());
    }
}
