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

/// A crate's folder and its dependencies on other crates of the workspace, as folders.
struct Crate {
    folder: String,
    needs: BTreeSet<String>,
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
    let needs = |folder: &str| {
        let manifest = table(&root().join(folder).join("Cargo.toml"));
        let none = Table::new();
        let dependencies = manifest.get("dependencies").and_then(|value| value.as_table());
        let names = dependencies.unwrap_or(&none).keys();
        names.filter_map(|name| folder_of.get(name).cloned()).collect()
    };
    let found = |folder: &str| Crate {
        folder: folder.to_owned(),
        needs: needs(folder),
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

#[test]
fn rooms_depend_one_way() {
    let room = |folder: &str| folder.split('/').next().unwrap_or_default().to_owned();
    for found in crates().iter().filter(|found| floor(&found.folder).is_some()) {
        let may: &[&str] = match &*room(&found.folder) {
            "ctf" => &[],
            "import" => &["ctf", "import"],
            // Descriptions of tracepoints, and whether a file is still the one that was recorded, serve both.
            "record" => &["record", "ctf", "import/tracepoint", "analyze/file-identity"],
            "analyze" => &["analyze", "ctf"],
            _ if found.folder == "present/cli" => &["present", "analyze", "import", "record", "ctf"],
            _ => &["present", "analyze", "ctf"],
        };
        for need in &found.needs {
            let is_allowed = may.iter().any(|may| may == need || *may == room(need));
            assert!(is_allowed, "{} depends on {need}", found.folder);
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
