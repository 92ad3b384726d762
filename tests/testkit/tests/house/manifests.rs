//! Which crate may depend on which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Folders of the crates that make the program, from the ground up: a crate depends only on crates of earlier lines.
const FLOORS: &[&[&str]] = &[
    &[
        "analyze/storage",
        "analyze/file-identity",
        "record/probe",
        "record/unwind",
    ],
    &["ctf", "analyze/symbols", "record/modules"],
    &["import/tracepoint", "analyze/engine", "analyze/kernel/model"],
    &["import", "analyze/language", "analyze/profile", "record/kernel"],
    &["analyze/kernel/follow", "record/session"],
    &[
        "analyze/kernel/threads",
        "analyze/kernel/descriptors",
        "analyze/clocks",
        "analyze/statistics",
    ],
    &["analyze/tables", "analyze/graph", "analyze/kernel/files"],
    &["analyze/periods", "analyze/reports"],
    &["analyze/history", "analyze/executions"],
    &["analyze/sql", "present/export", "present/server"],
    &["present/cli"],
];

/// Folders of crates that are no part of the program.
const BESIDE: &[&str] = &["bench", "tests/testkit", "tests/models"];

/// What the tests of a crate need besides what the crate may need: the crate, the dependency, and why.
const NEEDED_BY_TESTS: &[(&str, &str, &str)] = &[(
    "analyze/history",
    "record/probe",
    "a test writes spans and counters with the library, and reads them",
)];

/// A crate's folder and its dependencies on other crates of the workspace, as folders.
struct Crate {
    folder: String,
    needs: BTreeSet<String>,
    /// Of its tests only.
    needs_for_tests: BTreeSet<String>,
}

/// All crates of the workspace.
fn crates() -> Vec<Crate> {
    let workspace = table(&root().join("Cargo.toml"));
    let workspace = workspace["workspace"].as_table().expect("a workspace");
    let folder_of: BTreeMap<_, _> = workspace["dependencies"]
        .as_table()
        .expect("shared dependencies")
        .iter()
        .filter_map(|(name, how)| Some((name.clone(), how.get("path")?.as_str()?.to_owned())))
        .collect();
    let members = workspace["members"].as_array().expect("members");
    let folders = members.iter().map(|member| member.as_str().expect("a folder"));
    let needs = |manifest: &Table, kinds: &[&str]| -> BTreeSet<String> {
        let tables = kinds.iter().filter_map(|kind| manifest.get(*kind)?.as_table());
        let names = tables.flat_map(|table| table.keys());
        names.filter_map(|name| folder_of.get(name).cloned()).collect()
    };
    let found = |folder: &str| {
        let manifest = table(&root().join(folder).join("Cargo.toml"));
        Crate {
            folder: folder.to_owned(),
            needs: needs(&manifest, &["dependencies", "build-dependencies"]),
            needs_for_tests: needs(&manifest, &["dev-dependencies"]),
        }
    };
    folders.map(found).collect()
}

fn table(path: &Path) -> Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The floor of a crate of the program.
fn floor(folder: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&folder))
}

#[test]
fn every_crate_has_its_place() {
    for found in crates() {
        let folder = &*found.folder;
        let is_placed = floor(folder).is_some() != BESIDE.contains(&folder);
        assert!(is_placed, "{folder} stands on no floor, or on two");
    }
    let folders: BTreeSet<_> = crates().into_iter().map(|found| found.folder).collect();
    let placed = FLOORS.iter().copied().flatten().chain(BESIDE);
    for folder in placed {
        assert!(
            folders.contains(*folder),
            "{folder} is no member of the workspace"
        );
    }
}

#[test]
fn crates_depend_on_lower_floors_only() {
    for found in crates() {
        let Some(own) = floor(&found.folder) else { continue };
        for need in &found.needs {
            let below = floor(need);
            assert!(
                below.is_some_and(|below| below < own),
                "{} depends on {need}, which does not stand below it",
                found.folder
            );
        }
    }
}

/// The first folder of a path.
fn room(folder: &str) -> &str {
    folder.split('/').next().unwrap_or_default()
}

/// Rooms and crates that a crate may depend on. Everything meets in `ctf`: what writes traces knows nothing of analyses, and
/// analyses know nothing of who wrote a trace.
fn may_need(folder: &str) -> &'static [&'static str] {
    match (folder, room(folder)) {
        (_, "ctf") => &[],
        (_, "import") => &["ctf", "import"],
        // Descriptions of tracepoints, and whether a file is still the one that was recorded, serve both.
        (_, "record") => &["record", "ctf", "import/tracepoint", "analyze/file-identity"],
        (_, "analyze") => &["analyze", "ctf"],
        ("present/cli", _) => &["present", "analyze", "import", "record", "ctf"],
        (_, "present") => &["present", "analyze", "ctf"],
        // Tests of `ctf` use the generator, which thus knows nothing above it.
        ("tests/testkit", _) => &["ctf"],
        (_, "tests") => &["tests", "analyze", "ctf"],
        // Measures the library, and the program from outside.
        (_, "bench") => &["analyze", "ctf"],
        _ => panic!("{folder}: a room without a direction"),
    }
}

fn is_among(need: &str, may: &[&str]) -> bool {
    may.iter().any(|may| *may == need || *may == room(need))
}

#[test]
fn rooms_depend_one_way() {
    for found in crates() {
        for need in &found.needs {
            let is_allowed = is_among(need, may_need(&found.folder));
            assert!(is_allowed, "{} depends on {need}", found.folder);
        }
    }
}

/// Tests may use those of `tests` besides; nothing else does.
#[test]
fn tests_depend_on_what_their_crate_may_and_on_tools_for_tests() {
    let mut used = Vec::new();
    for found in crates() {
        for need in &found.needs_for_tests {
            let is_allowed = is_among(need, may_need(&found.folder)) || room(need) == "tests";
            let exception = (&*found.folder, &**need);
            let is_exception = NEEDED_BY_TESTS.iter().any(|of| (of.0, of.1) == exception);
            assert!(
                is_allowed != is_exception,
                "tests of {} depend on {need}, an exception: {is_exception}",
                found.folder
            );
            used.extend(is_exception.then(|| need.clone()));
        }
    }
    assert_eq!(used.len(), NEEDED_BY_TESTS.len(), "all exceptions are needed");
}

/// The server and the formats of other tools get answers, and do not read traces.
#[test]
fn only_the_program_runs_analyses() {
    for found in crates() {
        let presents = room(&found.folder) == "present" && found.folder != "present/cli";
        for need in found.needs.iter().filter(|_| presents) {
            let reads_traces =
                need == "analyze/engine" || need.starts_with("analyze/kernel/") || need == "ctf";
            assert!(!reads_traces, "{} depends on {need}", found.folder);
        }
    }
}

#[test]
fn reports_are_leaves() {
    for found in crates() {
        let is_outside = found.folder == "present/cli" || BESIDE.contains(&&*found.folder);
        let needs = found.needs.contains("analyze/reports");
        assert!(is_outside || !needs, "{} depends on the reports", found.folder);
    }
}
