//! The modules of a crate, from its files, and the references between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};

/// The path of a module in its crate; empty for the crate itself.
pub(crate) type Module = Vec<String>;

/// References of a file to its crate.
#[derive(Default)]
struct Names {
    /// Absolute paths in the crate.
    paths: BTreeSet<Vec<String>>,
    /// Re-exports of the module: a name in it, and the absolute path of its definition.
    hands_on: BTreeMap<String, Vec<String>>,
}

/// For each module, the modules from which it imports.
pub(crate) fn imports(sources: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut names = BTreeMap::new();
    read(sources, &Vec::new(), &mut names);
    let found = |(module, own): (&Module, &Names)| {
        let resolved = own.paths.iter().filter_map(|path| resolve(&names, path, 8));
        let others = resolved.filter(|other| other != module).collect();
        (module.clone(), others)
    };
    names.iter().map(found).collect()
}

/// The module that defines a path's item: follows at most `hops` re-exports.
fn resolve(names: &BTreeMap<Module, Names>, path: &[String], hops: u32) -> Option<Module> {
    let length = (0..=path.len())
        .rev()
        .find(|&length| names.contains_key(&path[..length]))?;
    let (module, rest) = path.split_at(length);
    let handed_on = rest
        .first()
        .and_then(|name| names[module].hands_on.get(name));
    match handed_on.filter(|_| hops > 0) {
        Some(target) => {
            let mut target = target.clone();
            target.extend_from_slice(&rest[1..]);
            resolve(names, &target, hops - 1)
        }
        None => Some(module.to_vec()),
    }
}

fn read(folder: &Path, module: &Module, into: &mut BTreeMap<Module, Names>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default()
            .to_owned();
        let mut inner = module.clone();
        if path.is_dir() {
            inner.push(stem);
            read(&path, &inner, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            if !matches!(&*stem, "lib" | "main" | "mod") {
                inner.push(stem);
            }
            let text = fs::read_to_string(&path).expect("a source file can be read");
            let file = syn::parse_file(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut names = Names::default();
            Collector {
                module: inner.clone(),
                depth: 0,
                names: &mut names,
            }
            .visit_file(&file);
            into.insert(inner, names);
        }
    }
}

struct Collector<'a> {
    /// The module being visited; modules within a file are `depth` below the file's module.
    module: Module,
    depth: usize,
    names: &'a mut Names,
}

impl Collector<'_> {
    /// The absolute path in the crate; `None` for paths into other crates.
    fn absolute(&self, segments: &[String]) -> Option<Vec<String>> {
        let mut base = self.module.clone();
        let mut rest = segments;
        match &**segments.first()? {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
                base.extend_from_slice(rest);
                return Some(base);
            }
            _ => return None,
        }
        base.extend_from_slice(&segments[1..]);
        Some(base)
    }

    /// A leaf of a use declaration: its path, and the name that it introduces.
    fn used(&mut self, path: &[String], name: Option<&str>, hands_on: bool) {
        let absolute = self.absolute(path).or_else(|| {
            // `pub use child::Name` in the parent module.
            let mut base = self.module.clone();
            base.extend_from_slice(path);
            hands_on.then_some(base)
        });
        let Some(absolute) = absolute else { return };
        if let Some(name) = name.filter(|_| hands_on && self.depth == 0) {
            self.names.hands_on.insert(name.to_owned(), absolute);
        } else {
            self.names.paths.insert(absolute);
        }
    }

    fn tree(&mut self, prefix: &[String], tree: &syn::UseTree, hands_on: bool) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree, hands_on),
            syn::UseTree::Name(name) if name.ident == "self" => self.used(prefix, None, hands_on),
            syn::UseTree::Name(name) => {
                self.used(&with(&name.ident), Some(&name.ident.to_string()), hands_on)
            }
            syn::UseTree::Rename(rename) => {
                self.used(
                    &with(&rename.ident),
                    Some(&rename.rename.to_string()),
                    hands_on,
                );
            }
            syn::UseTree::Glob(_) => self.used(prefix, None, hands_on),
            syn::UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| self.tree(prefix, tree, hands_on)),
        }
    }
}

/// True for items that only tests contain.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_cfg = |attribute: &&syn::Attribute| attribute.path().is_ident("cfg");
    let says_test = |attribute: &syn::Attribute| {
        attribute
            .parse_args::<syn::Path>()
            .is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().filter(is_cfg).any(says_test)
}

impl Visit<'_> for Collector<'_> {
    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        if !is_test(&item.attrs) {
            let hands_on = !matches!(item.vis, syn::Visibility::Inherited);
            self.tree(&[], &item.tree, hands_on);
        }
    }

    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if is_test(&item.attrs) || item.content.is_none() {
            return;
        }
        self.module.push(item.ident.to_string());
        self.depth += 1;
        visit::visit_item_mod(self, item);
        self.module.pop();
        self.depth -= 1;
    }

    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let segments: Vec<_> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        if path.leading_colon.is_none()
            && let Some(absolute) = self.absolute(&segments)
        {
            self.names.paths.insert(absolute);
        }
        visit::visit_path(self, path);
    }
}
