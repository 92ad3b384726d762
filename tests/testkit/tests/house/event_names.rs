//! Only `analyze/kernel/model` knows what kernel events are called.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use crate::manifests::root;
use crate::modules::is_test;

const MODEL: &str = "analyze/kernel/model";

/// Texts of a file that stand alone in the source, but for tests and documentation.
#[derive(Default)]
struct Texts(BTreeSet<String>);

impl Visit<'_> for Texts {
    fn visit_lit_str(&mut self, text: &syn::LitStr) {
        self.0.insert(text.value());
    }

    fn visit_lit_byte_str(&mut self, text: &syn::LitByteStr) {
        self.0.insert(String::from_utf8_lossy(&text.value()).into_owned());
    }

    fn visit_attribute(&mut self, _: &syn::Attribute) {}

    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
}

fn texts(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).expect("a source file can be read");
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut texts = Texts::default();
    texts.visit_file(&file);
    texts.0
}

/// All source files below a folder, but for those of tests and of the model.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if name != "tests" && path != root().join(MODEL) {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") && !name.ends_with("_tests") {
            into.push(path);
        }
    }
}

/// What the names of system calls' events begin with.
const OF_CALLS: [&str; 4] = ["syscall_entry_", "syscall_exit_", "sys_enter_", "sys_exit_"];

#[test]
fn names_of_kernel_events_are_compared_in_one_place() {
    // In that table names of subsystems stand beside those of events.
    let is_event = |text: &String| text.contains('_');
    let names: BTreeSet<_> = texts(&root().join(MODEL).join("src/plain.rs"))
        .into_iter()
        .filter(is_event)
        .collect();
    assert!(names.len() > 200 && names.contains("sched_switch"));
    let mut files = Vec::new();
    sources(&root().join("analyze"), &mut files);
    sources(&root().join("present"), &mut files);
    assert!(files.len() > 400);
    for file in files {
        for text in texts(&file) {
            let bare = text.strip_prefix("compat_").unwrap_or(&text);
            let is_name = names.contains(&text) || OF_CALLS.iter().any(|prefix| bare.starts_with(prefix));
            assert!(!is_name, "{}: {text:?} is known to {MODEL} alone", file.display());
        }
    }
}
