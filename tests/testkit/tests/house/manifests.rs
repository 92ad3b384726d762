//! Which crate may depend on which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Folders of the crates of the program in layers, the lowest first: a crate depends only on crates
/// of lower layers.
const LAYERS: &[&[&str]] = &[
    &[
        "analyze/storage",
        "analyze/file-identity",
        "record/probe",
        "record/unwind",
        "present/allocator",
    ],
    &[
        "ctf",
        "analyze/symbols",
        "record/cuda",
        "record/modules",
        "record/opencl",
        "record/openmp",
        "record/java",
    ],
    &[
        "import/tracepoint",
        "analyze/engine",
        "record/gpu",
        "analyze/kernel/model",
    ],
    &[
        "import",
        "analyze/language",
        "analyze/profile",
        "record/kernel",
    ],
    &["analyze/kernel/follow", "record/session"],
    &[
        "analyze/kernel/threads",
        "analyze/kernel/descriptors",
        "analyze/clocks",
        "analyze/statistics",
    ],
    &["analyze/tables", "analyze/graph", "analyze/kernel/files"],
    &[
        "analyze/devices",
        "analyze/levels",
        "analyze/periods",
        "analyze/reports",
    ],
    &["analyze/history", "analyze/executions"],
    &["analyze/sql", "present/export", "present/server"],
    &["present/cli"],
];

/// Folders of crates that are not part of the program.
const BESIDE: &[&str] = &["bench", "tests/testkit", "tests/models"];

/// Dependencies that only the tests of a crate may have: the crate, the dependency, and why.
const NEEDED_BY_TESTS: &[(&str, &str, &str)] = &[
    (
        "analyze/history",
        "record/probe",
        "a test writes spans and counters with the library, and reads them",
    ),
    (
        "analyze/reports",
        "import/tracepoint",
        "a test reads jobs of GPUs in the layouts of the kernel's format files, which no driver here has",
    ),
];

/// A crate's folder and its dependencies on other crates of the workspace, as folders.
struct Crate {
    folder: String,
    needs: BTreeSet<String>,
    /// Dependencies of its tests only.
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
    let folders = members
        .iter()
        .map(|member| member.as_str().expect("a folder"));
    let needs = |manifest: &Table, kinds: &[&str]| -> BTreeSet<String> {
        let tables = kinds
            .iter()
            .filter_map(|kind| manifest.get(*kind)?.as_table());
        let names = tables.flat_map(|table| table.keys());
        names
            .filter_map(|name| folder_of.get(name).cloned())
            .collect()
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
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Index in [`LAYERS`]; `None` for a crate that is not part of the program.
fn layer(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&folder))
}

#[test]
fn every_crate_has_its_place() {
    for found in crates() {
        let folder = &*found.folder;
        let is_placed = layer(folder).is_some() != BESIDE.contains(&folder);
        assert!(
            is_placed,
            "{folder} must be either in a layer or beside the program"
        );
    }
    let folders: BTreeSet<_> = crates().into_iter().map(|found| found.folder).collect();
    let placed = LAYERS.iter().copied().flatten().chain(BESIDE);
    for folder in placed {
        assert!(
            folders.contains(*folder),
            "{folder} is not a member of the workspace"
        );
    }
}

#[test]
fn crates_depend_on_lower_layers_only() {
    for found in crates() {
        let Some(own) = layer(&found.folder) else {
            continue;
        };
        for need in &found.needs {
            let below = layer(need);
            assert!(
                below.is_some_and(|below| below < own),
                "{} depends on {need}, which is not in a lower layer",
                found.folder
            );
        }
    }
}

/// First component of a path.
fn top_folder(folder: &str) -> &str {
    folder.split('/').next().unwrap_or_default()
}

/// Top folders and crates that a crate may depend on. Crates that write traces and crates that
/// analyze them have only `ctf` in common: writers do not depend on analyses, nor analyses on the
/// tracer.
fn may_need(folder: &str) -> &'static [&'static str] {
    match (folder, top_folder(folder)) {
        (_, "ctf") => &[],
        (_, "import") => &["ctf", "import"],
        // Recorders and readers share the descriptions of tracepoints and the identity of recorded
        // files.
        (_, "record") => &[
            "record",
            "ctf",
            "import/tracepoint",
            "analyze/file-identity",
        ],
        (_, "analyze") => &["analyze", "ctf"],
        ("present/cli", _) => &["present", "analyze", "import", "record", "ctf"],
        (_, "present") => &["present", "analyze", "ctf"],
        // Tests of `ctf` use the generator, which therefore must not depend on analyses.
        ("tests/testkit", _) => &["ctf"],
        (_, "tests") => &["tests", "analyze", "ctf"],
        // Measures the library; it runs the program as a process.
        (_, "bench") => &["analyze", "ctf"],
        _ => panic!("{folder}: no dependencies are defined for this folder"),
    }
}

fn is_among(need: &str, may: &[&str]) -> bool {
    may.iter()
        .any(|may| *may == need || *may == top_folder(need))
}

#[test]
fn folders_depend_one_way() {
    for found in crates() {
        for need in &found.needs {
            let is_allowed = is_among(need, may_need(&found.folder));
            assert!(is_allowed, "{} depends on {need}", found.folder);
        }
    }
}

/// Only tests may also depend on crates in `tests`.
#[test]
fn tests_depend_on_allowed_crates_and_test_crates() {
    let mut used = Vec::new();
    for found in crates() {
        for need in &found.needs_for_tests {
            let is_allowed = is_among(need, may_need(&found.folder)) || top_folder(need) == "tests";
            let exception = (&*found.folder, &**need);
            let is_exception = NEEDED_BY_TESTS.iter().any(|of| (of.0, of.1) == exception);
            assert!(
                is_allowed != is_exception,
                "tests of {} depend on {need} (exception: {is_exception})",
                found.folder
            );
            used.extend(is_exception.then(|| need.clone()));
        }
    }
    assert_eq!(
        used.len(),
        NEEDED_BY_TESTS.len(),
        "all exceptions are needed"
    );
}

/// The server and the exporters get results and do not read traces.
#[test]
fn only_the_program_runs_analyses() {
    for found in crates() {
        let presents = top_folder(&found.folder) == "present" && found.folder != "present/cli";
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
        assert!(
            is_outside || !needs,
            "{} depends on the reports",
            found.folder
        );
    }
}
