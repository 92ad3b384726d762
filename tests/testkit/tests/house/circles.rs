//! Circular imports between the files of a crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifests::root;
use crate::modules::{Module, imports};

/// Crates, and the maximum number of files of each that may import each other in a circle. A
/// language's grammar is recursive, so the parser of a type and the parsers of its parts refer to
/// each other.
const LARGEST: &[(&str, usize)] = &[("analyze/kernel/model", 1), ("record/probe", 1), ("ctf", 2)];

/// The modules that can be reached from a module.
fn reached(graph: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    let mut left = vec![from.clone()];
    while let Some(module) = left.pop() {
        for next in graph.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                left.push(next.clone());
            }
        }
    }
    found
}

/// Sets of modules that can all reach each other.
fn circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reach: BTreeMap<_, _> = graph
        .keys()
        .map(|module| (module, reached(graph, module)))
        .collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for (module, others) in &reach {
        let is_known = found.iter().any(|circle| circle.contains(*module));
        if is_known || !others.contains(*module) {
            continue;
        }
        let back = |other: &&Module| {
            reach
                .get(other)
                .is_some_and(|reach| reach.contains(*module))
        };
        found.push(others.iter().filter(back).cloned().collect());
    }
    found
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    for (folder, largest) in LARGEST {
        let graph = imports(&root().join(folder).join("src"));
        assert!(graph.len() > 10, "{folder} has modules");
        for circle in circles(&graph) {
            let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
            assert!(circle.len() <= *largest, "{folder}: a circle of {names:?}");
        }
    }
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let graph = [
        ("a", vec!["b"]),
        ("b", vec!["c"]),
        ("c", vec!["a"]),
        ("d", vec!["a"]),
    ];
    let graph = graph.map(|(from, to)| (module(from), to.into_iter().map(module).collect()));
    let found = circles(&graph.into_iter().collect());
    assert_eq!(found, [["a", "b", "c"].map(module).into_iter().collect()]);
}
