//! Profiles as CSV and JSON tables.

use tracebraid_profile::{Function, Process, Profile, Stack, Sums};
use tracebraid_tables::{Section, Unit, Value};

use crate::commands::data_tables::table;

/// The tables of a profile, the main table first.
pub(super) fn tables(profile: &Profile) -> Vec<Section> {
    vec![functions(profile), stacks(profile), processes(profile)]
}

const SUMS: [(&str, Unit); 4] = [
    ("cpu_samples", Unit::Count),
    ("cpu_ns", Unit::Duration),
    ("waits", Unit::Count),
    ("wait_ns", Unit::Duration),
];

fn sums(of: &Sums) -> [Value; 4] {
    [
        of.cpu_samples.into(),
        of.cpu_ns.into(),
        of.waits.into(),
        of.wait_ns.into(),
    ]
}

fn functions(profile: &Profile) -> Section {
    let columns = [
        ("function", Unit::Text),
        ("own_cpu_samples", Unit::Count),
        ("own_cpu_ns", Unit::Duration),
        ("own_waits", Unit::Count),
        ("own_wait_ns", Unit::Duration),
        ("total_cpu_samples", Unit::Count),
        ("total_cpu_ns", Unit::Duration),
        ("total_waits", Unit::Count),
        ("total_wait_ns", Unit::Duration),
    ];
    let row = |of: &Function| {
        let name = std::iter::once(of.name.as_str().into());
        name.chain(sums(&of.own)).chain(sums(&of.total)).collect()
    };
    let rows = profile.functions.iter().map(row);
    table("functions", &columns, rows.collect())
}

/// Functions of a stack are separated by semicolons, the outermost first.
fn stacks(profile: &Profile) -> Section {
    let about = [("process", Unit::Text), ("stack", Unit::Text)];
    let row = |of: &Stack| {
        let about = [
            of.process.as_str().into(),
            Value::Text(of.functions.join(";")),
        ];
        about.into_iter().chain(sums(&of.sums)).collect()
    };
    let rows = profile.stacks.iter().map(row);
    table("stacks", &[&about[..], &SUMS].concat(), rows.collect())
}

fn processes(profile: &Profile) -> Section {
    let about = [("pid", Unit::Id), ("process", Unit::Text)];
    let row = |of: &Process| {
        let about = [of.pid.into(), of.name.as_str().into()];
        about.into_iter().chain(sums(&of.sums)).collect()
    };
    let rows = profile.processes.iter().map(row);
    table("processes", &[&about[..], &SUMS].concat(), rows.collect())
}
