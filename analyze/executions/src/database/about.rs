//! Descriptions of the sources and definitions of a database.

use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_language::executions::{Definitions, Delimiter};
use tracebraid_language::periods::Condition;

use crate::execution::machine;

/// Sources and definitions of the executions that are written.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Sources by index of the trace.
    pub sources: Vec<SourceAbout>,
    /// Kinds by index of the definition.
    pub kinds: Vec<KindAbout>,
    /// Renamed functions: old and new name. Executions with either name are compared as equal.
    pub renames: Vec<(String, String)>,
    /// Source of the clock relations of several machines: `auto`, or a file.
    pub sync: Option<String>,
}

impl About {
    /// Describes the traces, with labels from `label`, and the definitions, of which `text` is the
    /// source as the user wrote it.
    pub fn new(
        set: &TraceSet,
        label: impl Fn(&Trace) -> String,
        definitions: &Definitions,
        text: &str,
    ) -> About {
        let kind = |kind| KindAbout {
            name: definitions.path(kind),
            definition: text.to_owned(),
            is_otherwise: false,
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

/// Absolute path of a trace, as stored in databases. For a trace in an archive, the path of the
/// archive followed by the path in it.
pub fn trace_path(trace: &Trace) -> String {
    let path = trace.known_path();
    let path = path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    path.map(|path| path.display().to_string())
        .unwrap_or_default()
}

/// True if the definition `kind` and the definition of the same name in `others` have the same
/// delimiters, regardless of how they are written. The values that they capture may differ.
pub fn delimits_alike(definitions: &Definitions, kind: usize, others: &Definitions) -> bool {
    let path = definitions.path(kind);
    let mut places = 0..others.list.len();
    let Some(other) = places.find(|&other| others.path(other) == path) else {
        return false;
    };
    let delimiter =
        |of: &Definitions, kind: usize| of.list.get(kind).map(|found| found.delimiter.clone());
    match (delimiter(definitions, kind), delimiter(others, other)) {
        (Some(Delimiter::Period(one)), Some(Delimiter::Period(other))) => {
            around(definitions, one).eq(around(others, other))
        }
        (one, other) => one == other,
    }
}

/// The begin and end conditions of a period and of the periods around it.
fn around(
    definitions: &Definitions,
    place: usize,
) -> impl Iterator<Item = (&Condition, &Condition)> {
    let period = move |place: usize| definitions.periods.list.get(place);
    let all = std::iter::successors(period(place), move |of| period(of.parent?));
    all.map(|period| (&period.begin, &period.end))
}

/// A trace from which executions come.
#[derive(Clone, Debug, Default)]
pub struct SourceAbout {
    /// Label that the user gave to the recording.
    pub label: String,
    /// Path of the trace.
    pub path: String,
    /// Hostname, if the trace contains it.
    pub host: Option<String>,
}

/// A kind of executions: those of one definition.
#[derive(Clone, Debug, Default)]
pub struct KindAbout {
    /// Name of the kind.
    pub name: String,
    /// Delimiters, as the user defined them.
    pub definition: String,
    /// True if the delimiters differ from those of the kind of that name which is already in the
    /// database; the database then stores both definitions.
    pub is_otherwise: bool,
    /// Names of captured values, in the order of [`crate::Execution::values`].
    pub values: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(text: &str) -> Definitions {
        let mut definitions = Definitions::default();
        definitions.file(text).unwrap();
        definitions
    }

    #[test]
    fn definitions_are_alike_however_they_are_written() {
        let one = defined(
            "call io : *sync*\nperiod p : $evt.a == 1\nperiod q(p) : $evt.b == 1 : $evt.c == 2\n",
        );
        let same = defined(
            "# again\nperiod p : $evt.a==1\nperiod q(p)\n : ($evt.b == 1) : $evt.c == 2\ncaptures q : $evt.d\ncall io: *sync*\n",
        );
        for kind in 0..3 {
            assert!(delimits_alike(&one, kind, &same), "{kind}");
        }
        // The period around a period matters, too.
        let around = defined(
            "call io : sync\nperiod p : $evt.a == 2\nperiod q(p) : $evt.b == 1 : $evt.c == 2\n",
        );
        for kind in 0..3 {
            assert!(!delimits_alike(&one, kind, &around), "{kind}");
        }
        let end = defined("period p : $evt.a == 1 : $evt.a == 2\nspan io : *sync*\n");
        assert!(
            !delimits_alike(&one, 0, &end)
                && !delimits_alike(&one, 1, &end)
                && !delimits_alike(&one, 2, &end)
        );
    }
}
