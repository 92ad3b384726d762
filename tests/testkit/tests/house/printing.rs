//! Libraries return results and do not print: the program decides on format, width and the wording
//! of errors.

use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};

use crate::manifests::root;
use crate::modules::is_test;

/// Folders of crates that must not print.
const SILENT: &[&str] = &[
    "analyze",
    "ctf",
    "import",
    "present/export",
    "present/server",
];

/// Macros that write to standard output or standard error.
const PRINTS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Uses of standard output and standard error in a file, except in its tests.
#[derive(Default)]
struct Prints(Vec<String>);

impl Visit<'_> for Prints {
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_macro(&mut self, item: &syn::Macro) {
        let name = item.path.segments.last().map(|last| last.ident.to_string());
        self.0.extend(name.filter(|name| PRINTS.contains(&&**name)));
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let mut names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.0
            .extend(names.find(|name| name == "stdout" || name == "stderr"));
        visit::visit_path(self, path);
    }
}

fn prints(text: &str) -> Vec<String> {
    let mut prints = Prints::default();
    prints.visit_file(&syn::parse_file(text).expect("a program"));
    prints.0
}

/// True for files of tests, by the naming convention `tests.rs` or `NAME_tests.rs`.
fn is_of_tests(path: &Path) -> bool {
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    stem == "tests" || stem.ends_with("_tests")
}

/// Checks the source files below a folder, and returns their number.
fn check(folder: &Path, is_source: bool) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files += check(&path, is_source || path.ends_with("src"));
        } else if is_source
            && path.extension().is_some_and(|kind| kind == "rs")
            && !is_of_tests(&path)
        {
            let found = prints(&fs::read_to_string(&path).expect("text"));
            assert!(found.is_empty(), "{} uses {found:?}", path.display());
            files += 1;
        }
    }
    files
}

#[test]
fn libraries_do_not_print() {
    let files: usize = SILENT
        .iter()
        .map(|folder| check(&root().join(folder), false))
        .sum();
    assert!(files > 600, "only {files} files were found");
}

#[test]
fn prints_are_found() {
    let text = "fn a() { println!(\"{}\", 1); let out = std::io::stdout(); write!(out, \"\") }\n\
                #[cfg(test)] mod tests { fn b() { dbg!(1) } } fn c() { eprint!(\"\") }";
    assert_eq!(prints(text), ["println", "stdout", "eprint"]);
}
