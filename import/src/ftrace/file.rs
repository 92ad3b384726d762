//! The contents that both versions of the format share.

use std::collections::HashMap;

use super::options::Options;
use crate::bytes::{Bytes, text};
use crate::compression::Algorithm;
use crate::tracepoint::Tables;

/// All properties of a file besides its events.
#[derive(Debug)]
pub(super) struct TraceDat {
    pub(super) tables: Tables,
    pub(super) options: Options,
    pub(super) names: Names,
    pub(super) buffers: Vec<Buffer>,
    pub(super) compression: Algorithm,
}

/// The events of an ftrace instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Empty for the main instance.
    pub(super) name: String,
    pub(super) clock: String,
    /// Size of a page in bytes.
    pub(super) page: u32,
    pub(super) cpus: Vec<CpuData>,
    pub(super) is_compressed: bool,
}

/// Position of a CPU's pages in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuData {
    pub(super) cpu: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// Names of threads that the kernel still knew at the end of the recording.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<i32, Vec<u8>>);

impl Names {
    /// Parses lines of a thread's id and name.
    pub(super) fn parse(content: &[u8]) -> Names {
        let pair = |line: &[u8]| {
            let at = line.iter().position(|&byte| byte == b' ')?;
            let (tid, name) = line.split_at(at);
            let tid = std::str::from_utf8(tid).ok()?.parse().ok()?;
            Some((tid, name.get(1..)?.to_vec()))
        };
        Names(
            content
                .split(|&byte| byte == b'\n')
                .filter_map(pair)
                .collect(),
        )
    }

    /// The name of a thread; empty if unknown. Idle threads have the name that trace-cmd uses.
    pub(super) fn of(&self, tid: i32) -> &[u8] {
        match tid {
            0 => b"<idle>",
            _ => self.0.get(&tid).map_or(&[], Vec::as_slice),
        }
    }
}

/// The selected clock of a list, which is enclosed in brackets.
pub(super) fn chosen_clock(list: &str) -> Option<String> {
    let (_, behind) = list.split_once('[')?;
    Some(behind.split_once(']')?.0.to_owned())
}

/// A string that extends to the end or to a null character.
pub(super) fn whole_text(at: &Bytes<'_>) -> String {
    text(at.rest()).trim().to_owned()
}

/// The name of a clock, which may be enclosed in brackets within a list of clocks.
pub(super) fn bare_clock(name: &str) -> &str {
    let inner = name
        .split_once('[')
        .and_then(|(_, behind)| behind.split_once(']'));
    inner.map_or(name.trim(), |(inner, _)| inner)
}
