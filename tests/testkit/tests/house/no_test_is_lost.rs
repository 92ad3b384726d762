//! Manifests name few test programs (`autotests = false`), and leave some targets untested (`test =
//! false`): a test file that no module includes, or a test in such a target, would never run and
//! never fail.

use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    path.canonicalize().expect("the repository")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Directories of the members that the workspace's manifest lists.
fn members() -> Vec<PathBuf> {
    let manifest = text(&repository().join("Cargo.toml"));
    let (_, list) = manifest.split_once("\nmembers = [").expect("members");
    let (list, _) = list.split_once(']').expect("the end of the list");
    let names = list.split(',').map(|name| name.trim().trim_matches('"'));
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| repository().join(name)).collect()
}

/// All `.rs` files below a directory, which need not exist.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let (directories, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let mut found: Vec<_> = directories
        .iter()
        .flat_map(|below| sources(below))
        .collect();
    found.extend(
        files
            .into_iter()
            .filter(|file| file.extension().is_some_and(|kind| kind == "rs")),
    );
    found
}

/// True if the file is the root of a test program: cargo finds it, or the manifest names it.
fn is_program(file: &Path, package: &Path, manifest: &str) -> bool {
    let relative = file.strip_prefix(package).expect("a file of the package");
    let is_found = match relative.components().count() {
        2 => true,
        3 => file.ends_with("main.rs"),
        _ => false,
    };
    is_found && !manifest.contains("\nautotests = false\n")
        || manifest.contains(&format!("\npath = \"{}\"\n", relative.display()))
}

/// True if another file declares the file as its module.
fn is_module(file: &Path, all: &[PathBuf]) -> bool {
    let named = match file.ends_with("mod.rs") {
        true => file.parent().expect("a directory"),
        false => file,
    };
    let name = named.file_stem().expect("a name").to_str().expect("UTF-8");
    let declaration = format!("mod {name};\n");
    all.iter()
        .any(|other| other != file && text(other).contains(&declaration))
}

#[test]
fn every_file_of_tests_is_part_of_a_program() {
    let mut files = 0;
    for package in members() {
        let manifest = text(&package.join("Cargo.toml"));
        let all = sources(&package.join("tests"));
        files += all.len();
        for file in &all {
            assert!(
                is_program(file, &package, &manifest) || is_module(file, &all),
                "{} is part of no test program: add it to main.rs",
                file.display()
            );
        }
    }
    assert!(files > 100, "only {files} files were found");
}

#[test]
fn targets_without_a_test_program_have_no_tests() {
    for package in members() {
        if !text(&package.join("Cargo.toml")).contains("\ntest = false\n") {
            continue;
        }
        for file in sources(&package.join("src")) {
            assert!(
                !text(&file).contains("#[test]"),
                "{}: it would never run",
                file.display()
            );
        }
    }
}
