//! FxT, read by fxt_print.

use std::io::Cursor;

use tempfile::TempDir;
use tracebraid_ctf::schema::Name;
use tracebraid_export::levels::FxtWriter;
use tracebraid_levels::exported::{Record, Value};

use crate::played::tool;

fn record(
    time: i64,
    (tid, lwp, ult): (i32, i32, u64),
    name: &str,
    fields: &[(&str, Value)],
) -> Record {
    let fields = fields
        .iter()
        .map(|(name, value)| (Name::from(*name), value.clone()));
    Record {
        time,
        cpu: Some(1),
        name: name.into(),
        tid,
        lwp,
        ult,
        fields: fields.collect(),
    }
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// Time, thread, code and the rest of a line of fxt_print.
fn lines(printed: &str) -> Vec<(i64, i32, String, String)> {
    let line = |line: &str| {
        let mut words = line.splitn(4, '\t');
        let time = words.next()?.trim().strip_suffix('u')?.parse().ok()?;
        let thread = words.next()?.trim_matches(['[', ']', ' ']);
        let thread = i32::from_str_radix(thread, 16).ok()?;
        let mut rest = words.nth(1)?.splitn(2, '\t');
        let code = rest.next()?.split('(').next()?.trim().to_owned();
        let rest = rest
            .next()?
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        Some((time, thread, code, rest))
    };
    printed.lines().filter_map(line).collect()
}

#[test]
fn records_are_printed_with_names_and_parameters() {
    let (one, two) = ((100_000_001, 41, 1), (100_000_002, 41, 2));
    let lwp = (41, 41, 0);
    let introduced = |tid: i64, ult: i64, name: &str| {
        let ids = [("tid", int(tid)), ("pid", int(40)), ("ult", int(ult))];
        ids.into_iter()
            .chain([("name", text(name))])
            .collect::<Vec<_>>()
    };
    let switch = |next: i64| {
        [
            ("prev_state", int(1)),
            ("next_tid", int(next)),
            ("level", int(1)),
        ]
    };
    let records = [
        record(
            1000,
            lwp,
            "tracebraid_levels:thread",
            &introduced(100_000_001, 1, "first"),
        ),
        record(
            1000,
            lwp,
            "tracebraid_levels:thread",
            &introduced(100_000_002, 2, "second"),
        ),
        record(1100, one, "tracebraid:prof_in", &[("name", text("work"))]),
        record(
            1200,
            one,
            "app:step",
            &[("number", int(-1)), ("label", text("eight ch"))],
        ),
        record(1300, one, "tracebraid:prof_out", &[("name", text("work"))]),
        record(1400, one, "sched_switch", &switch(100_000_002)),
        record(
            1500,
            two,
            "app:step",
            &[("number", int(2)), ("label", text("a"))],
        ),
        record(
            1600,
            two,
            "sched_process_exit",
            &[("tid", int(100_000_002)), ("level", int(1))],
        ),
        record(
            1700,
            (0, 0, 0),
            "sched_switch",
            &[("next_tid", int(7)), ("level", int(0))],
        ),
    ];
    let mut writer = FxtWriter::new(Cursor::new(Vec::new()), "host");
    for record in &records {
        writer.record(record).expect("written");
    }
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("trace.fxt");
    writer
        .finish(std::fs::File::create(&file).expect("a file"))
        .expect("written");
    let Some(printed) = tool("fxt_print", &["-f".as_ref(), file.as_os_str()]) else {
        return;
    };
    let [first, second] = ["5f5e101", "5f5e102"];
    let expected = [
        (1000, 41, "fff9", format!("fut_thread_birth {first} 1 28")),
        (1000, 41, "fff7", "fut_set_thread_name first".to_owned()),
        (1000, 41, "fff9", format!("fut_thread_birth {second} 2 28")),
        (1000, 41, "fff7", "fut_set_thread_name second".to_owned()),
        (1100, 100_000_001, "fff6", "fut_new_lwp 0 29".to_owned()),
        (
            1100,
            100_000_001,
            "320",
            "gcc-traced function entry work".to_owned(),
        ),
        (
            1200,
            100_000_001,
            "80000000",
            "app:step ffffffffffffffff 6863207468676965".to_owned(),
        ),
        (
            1300,
            100_000_001,
            "420",
            "gcc-traced function exit work".to_owned(),
        ),
        (
            1400,
            100_000_001,
            "31a",
            format!("fut_switch_to {second} 1"),
        ),
        (1500, 100_000_002, "80000000", "app:step 2 61".to_owned()),
        (
            1600,
            100_000_002,
            "fff8",
            format!("fut_thread_death {second}"),
        ),
        (1700, 0, "80000001", "sched_switch 7 0".to_owned()),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(time, thread, code, rest)| (time, thread, code.to_owned(), rest))
        .collect();
    assert_eq!(lines(&printed), expected);
}
