//! Names of machines.

use std::collections::BTreeSet;
use std::path::Path;

use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::people::Host;

/// The machines of the traces (by index) that `reads` selects. Several traces of one machine are
/// distinguished by the traces' names, else by their directories.
pub fn hosts(set: &TraceSet, reads: impl Fn(usize) -> bool) -> Vec<Host> {
    let traces = set
        .traces
        .iter()
        .enumerate()
        .filter(|(index, _)| reads(*index));
    let traces: Vec<(usize, &Trace)> = traces.collect();
    let machine = |trace: &Trace| {
        let class = &trace.layout.class;
        // Keys of LTTng and of perf.
        let name = class.env_str("hostname").or(class.env_str("host"));
        name.map(str::to_owned)
    };
    let host = |&(index, trace): &(usize, &Trace)| {
        let name = machine(trace);
        let same = traces.iter().filter(|(_, other)| machine(other) == name);
        let same: Vec<(usize, &Trace)> = same.copied().collect();
        let name = name.map(|name| match same.len() {
            1 => name,
            _ => format!("{name}/{}", apart(&same, index)),
        });
        Host {
            trace: index as u32,
            name,
        }
    };
    traces.iter().map(host).collect()
}

/// The part of a trace's name or path that distinguishes it from the other traces.
fn apart(traces: &[(usize, &Trace)], index: usize) -> String {
    let names = traces
        .iter()
        .map(|(index, trace)| (*index, trace.layout.class.env_str("trace_name")));
    let names: Option<Vec<(usize, String)>> = names
        .map(|(index, name)| Some((index, name?.to_owned())))
        .collect();
    let paths: Vec<(usize, &Path)> = traces
        .iter()
        .filter_map(|(index, trace)| Some((*index, trace.known_path()?)))
        .collect();
    let of = |all: Vec<(usize, String)>| {
        let different: BTreeSet<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
        let is_whole = different.len() == traces.len() && !different.contains("");
        let own = all.iter().find(|(of, _)| *of == index);
        own.filter(|_| is_whole).map(|(_, name)| name.clone())
    };
    let name = names.and_then(of).or_else(|| of(without_common(&paths)));
    name.unwrap_or_else(|| format!("trace {index}"))
}

/// Paths without their common beginning and end. Equal paths yield equal texts.
pub fn paths_apart(paths: &[&Path]) -> Vec<String> {
    let paths: Vec<(usize, &Path)> = paths.iter().copied().enumerate().collect();
    without_common(&paths)
        .into_iter()
        .map(|(_, rest)| rest)
        .collect()
}

/// The paths without their common beginning and end.
fn without_common(paths: &[(usize, &Path)]) -> Vec<(usize, String)> {
    let parts: Vec<(usize, Vec<_>)> = paths
        .iter()
        .map(|(index, path)| (*index, path.iter().collect()))
        .collect();
    let least = parts
        .iter()
        .map(|(_, parts)| parts.len())
        .min()
        .unwrap_or(0);
    let is_common = |at: &dyn Fn(&Vec<&std::ffi::OsStr>) -> Option<std::ffi::OsString>| {
        let different: BTreeSet<_> = parts.iter().map(|(_, parts)| at(parts)).collect();
        different.len() <= 1
    };
    let begin = (0..least)
        .take_while(|&at| is_common(&|parts| parts.get(at).map(|&part| part.to_owned())))
        .count();
    let end = (0..least - begin)
        .take_while(|&at| {
            is_common(&|parts| parts.iter().rev().nth(at).map(|&part| part.to_owned()))
        })
        .count();
    let rest = |(index, parts): &(usize, Vec<&std::ffi::OsStr>)| {
        let parts = parts.iter().skip(begin).take(parts.len() - begin - end);
        let texts: Vec<_> = parts
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        (*index, texts.join("/"))
    };
    parts.iter().map(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_what_differs() {
        let of = |paths: &[&str]| {
            let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
            paths_apart(&paths)
        };
        assert_eq!(of(&["/t/a-1/kernel", "/t/a-2/kernel"]), ["a-1", "a-2"]);
        assert_eq!(of(&["/t/kernel", "/t/ust/uid/0"]), ["kernel", "ust/uid/0"]);
        assert_eq!(of(&["/t", "/t/t"]), ["", "t"]);
        assert_eq!(of(&["/t", "/t"]), ["", ""]);
        assert_eq!(of(&[]), [""; 0]);
    }
}
