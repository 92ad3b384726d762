//! Selects attributes by paths with `*` and `?`; paths begin with the host if there are several.

use tracebraid_history::{Attribute, AttributeKind, History, Subject};
use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;

use crate::failure::Failure;
use crate::output::say;

pub(super) struct Patterns {
    globs: Vec<Glob>,
}

impl Patterns {
    pub(super) fn new(patterns: &[String]) -> Patterns {
        Patterns {
            globs: patterns.iter().map(|pattern| Glob::new(pattern)).collect(),
        }
    }

    /// Whether an attribute matches a pattern; without patterns all do.
    pub(super) fn choose(&self, history: &History, attribute: Attribute) -> bool {
        let path = path(history, attribute);
        self.globs.is_empty() || self.globs.iter().any(|glob| glob.matches(path.as_bytes()))
    }
}

fn has_hosts(history: &History) -> bool {
    history.meta().hosts.iter().flatten().count() > 1
}

/// The path of an attribute, with the host if there are several.
pub(super) fn path(history: &History, attribute: Attribute) -> String {
    let host = history.meta().hosts.get(attribute.host() as usize);
    let own = history.path(attribute);
    match host {
        Some(Some(host)) if has_hosts(history) && attribute.kind() != AttributeKind::Custom => {
            format!("{host}/{own}")
        }
        _ => own,
    }
}

/// Attributes that paths and patterns select. A pattern selects only attributes that have a value
/// in the time range.
pub(super) fn attributes(
    history: &History,
    patterns: &[String],
    (from, to): (i64, i64),
) -> Result<Vec<Attribute>, Failure> {
    let mut found: Vec<Attribute> = Vec::new();
    let mut globs: Vec<String> = Vec::new();
    for pattern in patterns {
        match parse(history, pattern) {
            Some(attribute) => found.push(attribute),
            None if pattern.contains(['*', '?']) => globs.push(pattern.clone()),
            None => {
                let instead = nearest_path(history, pattern)?;
                return Err(Failure::usage(unknown(history, pattern, &instead)));
            }
        }
    }
    if !globs.is_empty() {
        let chosen = Patterns::new(&globs);
        let met = history.met(from, to, |attribute| chosen.choose(history, attribute));
        found.extend(met.map_err(|error| super::unreadable(&error))?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn parse(history: &History, path: &str) -> Option<Attribute> {
    if let Some(attribute) = history.find(path, 0) {
        return Some(attribute);
    }
    let hosts = history.meta().hosts.iter().zip(0..);
    // Names of hosts may contain slashes.
    let of_host = |(name, host): (&Option<String>, u32)| {
        let path = path.strip_prefix(name.as_deref()?)?.strip_prefix('/')?;
        Attribute::parse(path, host)
    };
    hosts.filter_map(of_host).next()
}

/// Warns of paths and patterns that match no attribute of the history: a misspelt path would look
/// like an attribute without changes.
pub(super) fn warn_of_unknown(history: &History, patterns: &[String]) -> Result<(), Failure> {
    let (begin, end) = (history.meta().begin, history.meta().end);
    for pattern in patterns {
        let chosen = Patterns::new(std::slice::from_ref(pattern));
        let met = history.met(begin, end.saturating_add(1), |attribute| {
            chosen.choose(history, attribute)
        });
        if met.map_err(|error| super::unreadable(&error))?.is_empty() {
            let instead = nearest_path(history, pattern)?;
            say!("warning: {pattern}: the history contains no such attribute{instead}");
        }
    }
    Ok(())
}

/// Suggests the paths nearest to an unknown one: `; did you mean 'cpu/0/state'?`, or empty.
fn nearest_path(history: &History, path: &str) -> Result<String, Failure> {
    let (begin, end) = (history.meta().begin, history.meta().end);
    let all = history.met(begin, end.saturating_add(1), |_| true);
    let all = all.map_err(|error| super::unreadable(&error))?;
    let paths: Vec<String> = all
        .into_iter()
        .map(|attribute| self::path(history, attribute))
        .collect();
    Ok(did_you_mean(
        &Glob::new(path),
        paths.iter().map(String::as_str),
    ))
}

fn unknown(history: &History, path: &str, instead: &str) -> String {
    let own = match &history.meta().analysis {
        Some(analysis) => format!(" those that the analysis {} names;", analysis.name),
        None if !history.meta().custom.is_empty() => " span/, counter/ and ult/;".to_owned(),
        None => String::new(),
    };
    let kinds = |subject: Subject| {
        let kinds =
            tracebraid_history::AttributeKind::all().filter(|kind| kind.subject() == subject);
        kinds.map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
    };
    let files = match history.meta().files {
        true => format!(" file/PID:FD/ with {};", kinds(Subject::File)),
        false => String::new(),
    };
    format!(
        "{path}: no attribute has that path{instead}; there are cpu/N/ with {}; thread/TID/ with {}; disk/MAJOR,MINOR/ with {};{files}{own} \
         and patterns with * and ?",
        kinds(Subject::Cpu),
        kinds(Subject::Thread),
        kinds(Subject::Disk)
    )
}
