//! Fields of all types, as read by two readers.

use std::path::Path;

use crate::support::{Record, Session, babeltrace, compile, read, traced};

fn by_time(mut records: Vec<Record>) -> Vec<(u64, String, String)> {
    records.sort_by_key(|record| record.time);
    records
        .into_iter()
        .map(|record| (record.time, record.name, record.fields))
        .collect()
}

fn check_values(program: &Path) {
    let session = Session::new("");
    let output = session.command(program, &["values"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = by_time(session.read().records);
    assert_eq!(shown, babeltrace(&session.trace()));
    let fields: Vec<&str> = shown
        .iter()
        .filter(|(_, name, _)| {
            let prefixes = ["test:", "tracebraid:ult", "tracebraid:lwp"];
            prefixes.iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|(_, _, fields)| fields.as_str())
        .collect();
    let x = "x".repeat(4095);
    assert_eq!(fields[0], "{ }");
    assert_eq!(
        fields[1],
        "{ i8 = -128, i16 = -32768, i32 = -2147483648, i64 = -9223372036854775808, u8 = 255, u16 = 65535, \
         u32 = 4294967295, u64 = 18446744073709551615 }"
    );
    assert_eq!(
        fields[3],
        "{ h8 = 0xAB, h16 = 0xABC, h32 = 0xDEADBEEF, h64 = 0xFFFFFFFFFFFFFFFF, p = 0x1234 }"
    );
    assert_eq!(
        fields[4],
        "{ f = 1.5, d = -0.1, s = \"plain\", _b_length = 3, b = [ [0] = 1, [1] = 0, [2] = 255 ], \
         t = \"ä \\\"quoted\\\" \\\\ \\n\" }"
    );
    assert_eq!(
        fields[5],
        "{ f = 0, d = 1e+300, s = \"(null)\", _b_length = 0, b = [ ], t = \"\" }"
    );
    assert!(
        fields[6].contains(&format!("s = \"{x}\", _b_length = 4095")),
        "strings are cut to 4095 bytes"
    );
    assert!(fields[6].ends_with("t = \"after\" }"));
    assert_eq!(
        fields[7],
        "{ a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, j = \"ten\" }"
    );
    assert_eq!(
        fields[8..],
        [
            "{ runtime = \"test\" }",
            "{ processor = -1 }",
            "{ ult = 1, name = \"first\" }",
            "{ prev_ult = 0, next_ult = 1 }",
            "{ ult = 1, reason = \"mutex\" }",
            "{ ult = 1 }",
            "{ ult = 1, name = \"renamed\" }",
            "{ ult = 2, lwp = -1, state = 2, name = \"\", reason = \"sleep\" }",
            "{ ult = 1 }",
            "{ ult = 1 }",
            "{ ult = 1 }",
            "{ }"
        ]
    );
}

#[test]
fn all_types_from_c() {
    check_values(&traced());
}

#[test]
fn all_types_from_cpp() {
    check_values(&compile("g++", "values.cpp", "values-cpp", &["-std=c++17"]));
}

#[test]
fn standard_events_are_there() {
    let session = Session::new("correlation = off\n");
    session.run(&["values"]);
    let read = session.read();
    let names: Vec<&str> = read.records[8..]
        .iter()
        .map(|record| record.name.as_str())
        .collect();
    let expected = [
        "prof_in",
        "span_begin",
        "counter",
        "span_end",
        "lwp_begin",
        "lwp_processor",
        "ult_create",
        "ult_switch",
        "ult_block",
        "ult_wake",
        "ult_name",
        "ult_state",
        "ult_call_begin",
        "ult_call_end",
        "ult_exit",
        "lwp_end",
        "prof_out",
    ];
    assert_eq!(names, expected.map(|name| format!("tracebraid:{name}")));
    assert_eq!(read.records[10].fields, "{ name = \"queue\", value = -3 }");
    assert_eq!(read.records[24].fields, "{ name = \"values\" }");
}

/// Maximum distance in nanoseconds by which times of event records lie outside the clock values
/// read before and after they were written, over several lines of the clock.
fn check_clock(options: &str) -> u64 {
    let session = Session::new(options);
    session.run(&["clocks"]);
    let read = session.read();
    let records: Vec<_> = read.of("test:clock").collect();
    assert!(records.len() >= 2000, "{}", records.len());
    let outside = records.windows(2).map(|pair| {
        let (time, before, after) = (pair[0].time, pair[0].value("before"), pair[1].value("last"));
        before.saturating_sub(time).max(time.saturating_sub(after))
    });
    outside.max().unwrap_or(0)
}

#[test]
fn times_are_those_of_the_monotonic_clock() {
    for options in ["clock = auto\n", "clock = monotonic\n"] {
        // Even if the program was not scheduled for some time in between.
        let outside = check_clock(options);
        println!("{options}: {outside} ns off at most");
        assert!(outside < 1000, "{options}: {outside} ns off");
    }
}

#[test]
fn clocks_are_compared_in_the_trace() {
    let session = Session::new("");
    session.run(&["values"]);
    let read = session.read();
    let mut records = read.records.iter();
    let record = records.find(|record| record.name == "tracebraid:clock_correlation");
    let record = record.expect("one at the beginning of a buffer");
    // The clocks are read one after the other, and then the record gets its time; the program may
    // be preempted in between. The next record is later than these times.
    let next = records.next().expect("events of the program").time;
    let (monotonic, uncertain) = (record.value("monotonic"), 1000);
    assert!(
        record.time + uncertain >= monotonic && record.time <= next,
        "{record:?}, {next}"
    );
    let metadata = std::fs::read_to_string(session.trace().join("metadata")).unwrap();
    let number = |key: &str| {
        let line = metadata
            .lines()
            .find_map(|line| line.trim().strip_prefix(key))
            .unwrap();
        line.trim_end_matches(';').parse::<i128>().unwrap()
    };
    let offset = number("offset_s = ") * 1_000_000_000 + number("offset = ");
    // A clock that is being adjusted moves by less than a millisecond meanwhile.
    let realtime = i128::from(record.value("realtime")) - offset;
    let possible = i128::from(monotonic) - 1_000_000..=i128::from(next) + 1_000_000;
    assert!(
        possible.contains(&realtime),
        "{realtime} is not in {possible:?}"
    );
}

#[test]
fn the_offset_of_a_session_is_taken() {
    let session = Session::new("clock_offset = 1700000000123456789\n");
    session.run(&["values"]);
    let metadata = std::fs::read_to_string(session.trace().join("metadata")).unwrap();
    assert!(metadata.contains("offset_s = 1700000000;\n\toffset = 123456789;"));
    assert!(read(&session.trace()).count("test:none") == 1);
}
