//! Probes in Rust.

use std::process::Command;

use tracebraid_probe::probe;

use crate::support::Session;

fn squares(n: u32) -> u32 {
    n * n
}

/// Runs in another process as the traced program.
#[test]
fn program() {
    if std::env::var_os("TRACED_PROGRAM").is_none() {
        return;
    }
    let (name, data) = ("Käse\0cut", vec![1u8, 0, 255]);
    probe!(rusty, none);
    for n in 0..3u32 {
        probe!(rusty, loops, n: u32 = n, square: u32 = squares(n));
    }
    probe!(rusty, all, a: i8 = -1, b: u16 = 2, c: i64 = i64::MIN, d: bool = true, e: f32 = 0.5, f: f64 = -2.25,
        text: &str = name, bytes: &[u8] = &data, size: usize = usize::MAX, last: i32 = -7);
    let mut computed = false;
    probe!(quiet, off, n: u8 = { computed = true; 1 });
    assert!(!computed, "values of a class that is off are not computed");
    tracebraid_probe::standard::span_begin(3, "span");
}

#[test]
fn the_macro_records_its_fields() {
    let session = Session::new("enable = *\ndisable = quiet:*\ncorrelation = off\n");
    let mut command: Command = session.command(
        &std::env::current_exe().unwrap(),
        &["--exact", "rust::program"],
    );
    assert!(
        command
            .env("TRACED_PROGRAM", "1")
            .output()
            .unwrap()
            .status
            .success()
    );
    let read = session.read();
    let shown: Vec<(&str, &str)> = read
        .records
        .iter()
        .map(|record| (record.name.as_str(), record.fields.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("rusty:none", "{ }"),
            ("rusty:loops", "{ n = 0, square = 0 }"),
            ("rusty:loops", "{ n = 1, square = 1 }"),
            ("rusty:loops", "{ n = 2, square = 4 }"),
            (
                "rusty:all",
                "{ a = -1, b = 2, c = -9223372036854775808, d = 1, e = 0.5, f = -2.25, text = \"Käse\", \
                 _bytes_length = 3, bytes = [ [0] = 1, [1] = 0, [2] = 255 ], size = 18446744073709551615, last = -7 }"
            ),
            ("tracebraid:span_begin", "{ id = 3, name = \"span\" }"),
        ]
    );
}
