//! Columns of the rows of each selected event class, determined before any event record is read.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_language::Cpus;

use super::csv_cells::put_quoted_if_needed;
use super::csv_columns::{Columns, Group, TooManyColumns};
use crate::csv;
use crate::print::buffer::{Buffer, Padded};
use crate::print::hidden::Hidden;
use crate::print::style::{Palette, Style};

/// Content of the rows.
pub(crate) struct RowOptions<'a> {
    /// Name of each trace, by its first directory.
    pub(crate) names: &'a HashMap<PathBuf, String>,
    /// Whether event records of a class can occur in the output; the arguments are the indices of
    /// the trace, of its stream class and of the event class in it.
    pub(crate) is_selected: &'a dyn Fn(usize, usize, usize) -> bool,
    /// Whether rows end with an empty cell for the names of functions.
    pub(crate) symbols: bool,
}

/// The parts of a row that are the same for all event records of a class.
#[derive(Debug)]
pub(super) struct ClassRow {
    /// Text between the time and the CPU.
    pub(super) head: Padded,
    /// Text between the CPU and the fields.
    pub(super) name: Padded,
    /// Number of separators before each cell and index of the cell in the data, in the order of
    /// the columns.
    pub(super) cells: Box<[(usize, usize)]>,
    /// Number of separators after the last cell.
    pub(super) rest: usize,
}

/// By stream class and event class; `None` for classes that are not selected.
pub(super) type TraceRows = Vec<Vec<Option<ClassRow>>>;

/// The rows of all selected event classes.
#[derive(Debug)]
pub(super) struct Plan {
    /// The row of column names.
    pub(super) header: String,
    pub(super) has_cpu: bool,
    /// By trace.
    pub(super) styles: Vec<Style>,
    /// By trace.
    pub(super) rows: Vec<TraceRows>,
}

impl Plan {
    /// # Errors
    /// When the fields of the selected event classes need too many columns.
    pub(super) fn new(set: &TraceSet, options: &RowOptions<'_>) -> Result<Self, TooManyColumns> {
        let classes = selected(set, options);
        let styles: Vec<Style> = set.traces.iter().map(style).collect();
        let leading = Leading::of(&classes, &styles);
        let mut names = leading.names();
        let last = options.symbols.then_some("symbols");
        let taken: Vec<&str> = names.iter().copied().chain(last).collect();
        let mut columns = Columns::new(&taken);
        let fields = columns_of(&classes, &styles, &mut columns)?;

        names.extend(columns.names().iter().map(String::as_str));
        names.extend(last);
        let mut header = String::new();
        csv::put(&mut header, &names);
        let width = columns.names().len() + usize::from(options.symbols);
        let mut rows: Vec<TraceRows> = set.traces.iter().map(no_rows).collect();
        for (class, fields) in classes.iter().zip(&fields) {
            if let Some(place) = class.place(&mut rows) {
                let (head, name) = leading.texts(class, options);
                let (cells, rest) = in_order(fields, width);
                *place = Some(ClassRow {
                    head,
                    name,
                    cells,
                    rest,
                });
            }
        }
        Ok(Plan {
            header,
            has_cpu: leading.cpu,
            styles,
            rows,
        })
    }
}

/// A selected event class.
struct Selected<'t> {
    trace_index: usize,
    trace: &'t Trace,
    stream_class: usize,
    stream: &'t StreamLayout,
    event: usize,
}

impl Selected<'_> {
    fn place<'r>(&self, rows: &'r mut [TraceRows]) -> Option<&'r mut Option<ClassRow>> {
        let streams = rows.get_mut(self.trace_index)?;
        streams.get_mut(self.stream_class)?.get_mut(self.event)
    }

    fn host(&self) -> Option<&str> {
        self.trace.layout.class.env_str("hostname")
    }
}

/// The event classes that can occur in the output, in the order of the metadata.
fn selected<'t>(set: &'t TraceSet, options: &RowOptions<'_>) -> Vec<Selected<'t>> {
    let mut all = Vec::new();
    for (trace_index, trace) in set.traces.iter().enumerate() {
        let used: BTreeSet<usize> = trace.streams.iter().map(|stream| stream.class).collect();
        for stream_class in used {
            let Some(stream) = trace.layout.streams.get(stream_class) else {
                continue;
            };
            let events = 0..stream.events.len();
            let events =
                events.filter(|&event| (options.is_selected)(trace_index, stream_class, event));
            all.extend(events.map(|event| Selected {
                trace_index,
                trace,
                stream_class,
                stream,
                event,
            }));
        }
    }
    all
}

fn style(trace: &Trace) -> Style {
    let cpus = Cpus::new(trace);
    let mut hidden = Hidden::of(&trace.layout);
    // The CPU has a column of its own.
    let streams = 0..trace.layout.streams.len();
    streams
        .filter_map(|class| cpus.packet_member(class))
        .for_each(|cpu| hidden.hide(cpu));
    Style {
        json: true,
        palette: Palette::NONE,
        hidden,
        cpus,
    }
}

fn no_rows(trace: &Trace) -> TraceRows {
    let of_stream = |stream: &StreamLayout| stream.events.iter().map(|_| None).collect();
    trace.layout.streams.iter().map(of_stream).collect()
}

/// The columns of the fields of each class, in the order of the data. Columns of contexts are
/// first, since most classes share them.
fn columns_of(
    classes: &[Selected<'_>],
    styles: &[Style],
    columns: &mut Columns,
) -> Result<Vec<Vec<usize>>, TooManyColumns> {
    let mut all: Vec<Vec<usize>> = classes.iter().map(|_| Vec::new()).collect();
    for group in [Group::Context, Group::Payload] {
        for (class, fields) in classes.iter().zip(&mut all) {
            let (Some(style), Some(event)) = (
                styles.get(class.trace_index),
                class.stream.events.get(class.event),
            ) else {
                continue;
            };
            let stream = class.stream;
            let contexts = [
                &stream.packet_context,
                &stream.common_context,
                &event.specific_context,
            ];
            let scopes = match group {
                Group::Context => &contexts[..],
                Group::Payload => &[&event.payload][..],
            };
            fields.extend(columns.of_fields(group, scopes, &style.hidden)?);
        }
    }
    Ok(all)
}

/// Separators and cells in the order of the columns, and the number of separators after the last
/// cell. `fields` are the columns of the cells in the order of the data.
fn in_order(fields: &[usize], width: usize) -> (Box<[(usize, usize)]>, usize) {
    let mut cells: Vec<(usize, usize)> = fields
        .iter()
        .enumerate()
        .map(|(index, &column)| (column, index))
        .collect();
    cells.sort_unstable();
    // A separator precedes each column.
    let mut next = 0;
    for (column, _) in &mut cells {
        let separators = *column + 1 - next;
        next = *column + 1;
        *column = separators;
    }
    (cells.into(), width.saturating_sub(next))
}

/// Columns of metadata.
#[derive(Clone, Copy, Debug)]
struct Leading {
    /// Only if the selected event classes are those of several hosts.
    host: bool,
    /// Only if the selected event classes are those of several traces.
    trace: bool,
    cpu: bool,
}

impl Leading {
    fn of(classes: &[Selected<'_>], styles: &[Style]) -> Self {
        let traces: BTreeSet<usize> = classes.iter().map(|class| class.trace_index).collect();
        let hosts: BTreeSet<&str> = classes.iter().filter_map(Selected::host).collect();
        let has_cpu = |class: &Selected<'_>| {
            styles.get(class.trace_index).is_some_and(|style| {
                style.cpus.packet_member(class.stream_class).is_some()
                    || style.cpus.has_field(class.stream_class, class.event)
            })
        };
        Leading {
            host: hosts.len() > 1,
            trace: traces.len() > 1,
            cpu: classes.iter().any(has_cpu),
        }
    }

    fn names(self) -> Vec<&'static str> {
        let all = [
            ("time_ns", true),
            ("host", self.host),
            ("trace", self.trace),
            ("cpu", self.cpu),
            ("event", true),
        ];
        all.iter()
            .filter(|(_, is_present)| *is_present)
            .map(|(name, _)| *name)
            .collect()
    }

    /// The texts between the time and the CPU, and between the CPU and the fields.
    fn texts(self, class: &Selected<'_>, options: &RowOptions<'_>) -> (Padded, Padded) {
        let directory = class.trace.paths.first();
        let trace = directory.and_then(|directory| options.names.get(directory));
        let event = class.stream.events.get(class.event);
        let mut head = Buffer::new(64);
        let put = |buffer: &mut Buffer, text: Option<&str>| {
            buffer.put_byte(b',');
            put_quoted_if_needed(buffer, text.unwrap_or_default().as_bytes());
        };
        if self.host {
            put(&mut head, class.host());
        }
        if self.trace {
            put(&mut head, trace.map(String::as_str));
        }
        if self.cpu {
            head.put_byte(b',');
        }
        let mut name = Buffer::new(64);
        put(&mut name, event.map(|event| &*event.name));
        (Padded::new(head.bytes()), Padded::new(name.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn cells_are_sorted_by_column() {
        let (cells, rest) = in_order(&[4, 0, 2], 6);
        assert_eq!(cells.as_ref(), [(1, 1), (2, 2), (2, 0)]);
        assert_eq!(rest, 1);
        assert_eq!(in_order(&[], 3), (Box::default(), 3));
        assert_eq!(in_order(&[0], 1), (Box::from([(1, 0)]), 0));
    }
}
