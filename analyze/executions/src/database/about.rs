//! What a database is told of what is written into it.

use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_filter::executions::Definitions;

use crate::execution::machine;

/// What is told of executions that are written.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// By index of the trace: where they come from.
    pub sources: Vec<SourceAbout>,
    /// By place among the definitions.
    pub kinds: Vec<KindAbout>,
    /// Functions that are taken for those of another name.
    pub renames: Vec<(String, String)>,
    /// What related the clocks of several machines: `auto`, or a file.
    pub sync: Option<String>,
}

impl About {
    /// Of executions of these definitions, of which `text` is what the user wrote, in these traces, which have these labels.
    pub fn new(
        set: &TraceSet,
        label: impl Fn(&Trace) -> String,
        definitions: &Definitions,
        text: &str,
    ) -> About {
        let kind = |kind| KindAbout {
            name: definitions.path(kind),
            definition: text.to_owned(),
            values: definitions.captures(kind),
        };
        About {
            sources: set
                .traces
                .iter()
                .map(|trace| source(trace, label(trace)))
                .collect(),
            kinds: (0..definitions.list.len()).map(kind).collect(),
            renames: Vec::new(),
            sync: None,
        }
    }
}

fn source(trace: &Trace, label: String) -> SourceAbout {
    SourceAbout {
        label,
        path: trace_path(trace),
        host: machine(trace).map(str::to_owned),
    }
}

/// Where a trace is, as databases tell it.
pub fn trace_path(trace: &Trace) -> String {
    let path = trace.paths.first();
    let path = path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// A trace.
#[derive(Clone, Debug, Default)]
pub struct SourceAbout {
    /// What the user calls the recording.
    pub label: String,
    /// Where it is.
    pub path: String,
    /// Its machine.
    pub host: Option<String>,
}

/// A kind of executions.
#[derive(Clone, Debug, Default)]
pub struct KindAbout {
    /// Its name.
    pub name: String,
    /// Its delimiters, as the user defined them.
    pub definition: String,
    /// Names of values that are captured, in the order of [`crate::Execution::values`].
    pub values: Vec<String>,
}
