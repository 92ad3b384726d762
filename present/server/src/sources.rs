//! Paths of traces: whole on this machine, and cut to the names that distinguish them in exported
//! pages.

use std::collections::HashMap;

use tracebraid_executions::database::Database;

/// Audience of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Users of this machine: paths lead to the traces.
    Whole,
    /// Recipients of an exported page, who must not learn the directories of this machine.
    Away,
}

impl Shown {
    /// Paths of a database's sources, in their order.
    pub(crate) fn paths(self, database: &Database) -> Vec<String> {
        let paths: Vec<&str> = database.sources.iter().map(|of| of.path.as_str()).collect();
        match self {
            Shown::Whole => paths.into_iter().map(str::to_owned).collect(),
            Shown::Away => shortened(&paths),
        }
    }
}

/// The last `words` names of a path.
fn last(path: &str, words: usize) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let kept = parts
        .get(parts.len().saturating_sub(words)..)
        .unwrap_or_default();
    kept.join("/")
}

/// Paths by their last names: more than one only where different paths have the same name.
pub(crate) fn shortened(paths: &[&str]) -> Vec<String> {
    let most = paths
        .iter()
        .map(|path| path.split('/').count())
        .max()
        .unwrap_or(1);
    let mut words = vec![1; paths.len()];
    for _ in 1..most {
        let mut seen: HashMap<String, &str> = HashMap::new();
        let mut shared: Vec<String> = Vec::new();
        for (path, &words) in paths.iter().zip(&words) {
            let short = last(path, words);
            if *seen.entry(short.clone()).or_insert(path) != *path {
                shared.push(short);
            }
        }
        if shared.is_empty() {
            break;
        }
        for (path, words) in paths.iter().zip(&mut words) {
            if shared.contains(&last(path, *words)) {
                *words += 1;
            }
        }
    }
    paths
        .iter()
        .zip(words)
        .map(|(path, words)| last(path, words))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn paths_have_as_many_names_as_tell_them_apart() {
        let of = |paths: &[&str]| shortened(paths);
        assert_eq!(of(&["/home/ann/traces/web"]), ["web"]);
        assert_eq!(of(&["/a/web/", "/b/db", "/a/web/"]), ["web", "db", "web"]);
        assert_eq!(
            of(&["/t/one/kernel", "/t/two/kernel"]),
            ["one/kernel", "two/kernel"]
        );
        assert_eq!(
            of(&["/x/one/t/kernel", "/x/two/t/kernel", "/y/db"]),
            ["one/t/kernel", "two/t/kernel", "db"]
        );
        // One path is the end of the other and has no further names.
        assert_eq!(of(&["kernel", "/a/kernel"]), ["kernel", "a/kernel"]);
        assert_eq!(of(&[]), [] as [String; 0]);
        assert_eq!(of(&["/", ""]), ["", ""]);
    }
}
