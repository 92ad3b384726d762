//! Tables are never wider than the terminal.

use crate::support::{recorded_trace, tracebraid};

/// The lines of a command's tables, without titles, in a terminal with this width.
fn rows(options: &[&str], width: usize) -> Vec<String> {
    let output = tracebraid()
        .env("TRACEBRAID_COLUMNS", width.to_string())
        .args(options)
        .arg(recorded_trace("kernel-mix-small"))
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{options:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    // Commands are whole, so that they can be copied.
    let of_table = |line: &&str| line.starts_with(' ') && !line.contains(" tracebraid ");
    text.lines().filter(of_table).map(str::to_owned).collect()
}

#[test]
fn tables_fit_narrow_terminals() {
    let all = "stats,top,log,freq";
    let commands: [&[&str]; 12] = [
        &["count"],
        &["cpu"],
        &["io"],
        &["syscalls", "--view", all],
        &["sched", "--view", all],
        &["irq", "--view", all],
        &["disk", "--view", all],
        &["net", "--view", all],
        &["processes"],
        &["files", "--view", all],
        &["waits", "--view", all],
        &["report"],
    ];
    for options in commands {
        for width in [40, 80] {
            let rows = rows(options, width);
            assert!(rows.len() > 5, "{options:?}");
            for row in rows {
                assert!(
                    row.chars().count() <= width,
                    "{options:?} at {width}\n{row}"
                );
            }
        }
    }
}

/// The commands of the summary are complete and can be copied.
#[test]
fn the_summary_gives_commands_whole() {
    let trace = recorded_trace("kernel-mix-small");
    let output = tracebraid()
        .env("TRACEBRAID_COLUMNS", "80")
        .args(["report", &trace])
        .output()
        .expect("the binary runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let commands = text.lines().filter(|line| line.contains(" tracebraid "));
    let whole: Vec<bool> = commands.map(|line| line.ends_with(&trace)).collect();
    assert!(
        whole.len() > 5 && whole.iter().all(|&whole| whole),
        "{text}"
    );
}
