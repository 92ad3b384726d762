//! Reports as text tables and CSV.

use jiff::tz::TimeZone;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_follow::{Head, Thread};
use tracebraid_tables::{
    Branch, Column, DISTRIBUTION, Forms, Phrase, Report, Section, Sentence, Total, Unit, Value,
};

use crate::commands::cells;
use crate::commands::report::Show;
use crate::commands::tree;
use crate::glyphs::glyphs;
use crate::info::tables::View as InfoView;
use crate::table;
use crate::terminal_text;
use crate::units;

impl Show for Report {
    fn sections(&mut self) -> &mut Report {
        self
    }

    fn summary(&self) -> String {
        if !self.summary.is_empty() {
            let sentences = self.summary.iter();
            return sentences
                .map(|summary| sentence(&self.head, summary))
                .collect();
        }
        let total = |total: &Total| match &total.value {
            Value::Unsigned(0) if total.unit == Unit::Count => format!("no {}", total.title),
            Value::Unsigned(1) if total.unit == Unit::Count => format!("1 {}", total.one),
            value => format!(
                "{} {}",
                cell(&self.head, total.unit, value, None),
                total.title
            ),
        };
        // Zero totals are omitted, except for the first, which is the subject of the report.
        let is_something = |value: &Value| !matches!(value, Value::Unsigned(0) | Value::None);
        let is_told = |(at, total): &(usize, &Total)| *at == 0 || is_something(&total.value);
        let totals = self.totals.iter().enumerate().filter(is_told);
        let totals: Vec<String> = totals.map(|(_, own)| total(own)).collect();
        terminal_text::paragraph(&format!(
            "{} in {}",
            totals.join(", "),
            units::duration(self.head.duration_ns)
        ))
    }

    fn tables(&self, rows: usize, zone: &TimeZone) -> Vec<String> {
        let sections = self
            .sections
            .iter()
            .filter(|section| !section.rows.is_empty());
        let sections = sections.filter(|section| section.forms.contain(Forms::TEXT));
        sections
            .map(|section| match section.key {
                DISTRIBUTION => histogram(&self.head, section, rows),
                _ => table_of(&self.head, section, rows, zone),
            })
            .collect()
    }

    /// The sections one after another, separated by an empty line, each with its column names.
    fn csv(&self, rows: usize) -> String {
        let sections = self.sections.iter();
        let sections = sections.filter(|section| section.forms.contain(Forms::CSV));
        let texts = sections.map(|section| plain(&self.head, section, rows));
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A sentence as a paragraph.
fn sentence(head: &Head, sentence: &Sentence) -> String {
    let phrase = |phrase: &Phrase| match phrase {
        Phrase::Words(words) => (*words).to_owned(),
        Phrase::Value(unit, value) => cell(head, *unit, value, None),
        Phrase::Number(number, one, many) => units::number_of(*number, one, many),
    };
    let phrases: String = sentence.0.iter().map(phrase).collect();
    terminal_text::paragraph(&phrases)
}

fn table_of(head: &Head, section: &Section, rows: usize, zone: &TimeZone) -> String {
    let kept = section.kept(rows);
    let is_empty = empty_columns(section, &kept);
    // Columns for the host are hidden if there is only one host.
    let is_shown = |at: usize, column: &Column| {
        let is_of_several = !matches!(column.key, "host" | "trace") || head.hosts.len() > 1;
        let is_data = is_of_several && column.unit != Unit::Command && !is_empty[at];
        is_data && column.forms.contain(Forms::TEXT)
    };
    let columns = section.columns.iter().enumerate();
    let columns = columns.filter(|(at, column)| is_shown(*at, column));
    let columns: Vec<table::Column<'static>> =
        columns.flat_map(|(_, column)| columns_of(column)).collect();
    let branches = tree::branches(section, &kept);
    let largest = largest(section, &kept);
    let row = |(at, row): (usize, &&Vec<Value>)| -> Vec<table::Cell> {
        let cells = section.columns.iter().zip(row.iter()).zip(&largest);
        let cells = cells.enumerate();
        cells
            .filter(|(at, ((column, _), _))| is_shown(*at, column))
            .flat_map(|(_, ((column, value), &largest))| {
                let emphasis = emphasis(column, value, largest);
                let texts = match value {
                    Value::Branch(branch) => {
                        cells_of_branch(head, branch, branches.get(at)).to_vec()
                    }
                    value => cells_of(head, column, value, zone),
                };
                let cell = move |text| table::Cell { text, emphasis };
                texts.into_iter().map(cell)
            })
            .collect()
    };
    let title = match section.is_titled {
        true => format!("{}\n", section.title),
        false => String::new(),
    };
    let notes = section.notes.iter().map(|note| sentence(head, note));
    let rows_of_cells = kept.iter().enumerate().map(row);
    let table = match columns.len() {
        // The heading of a list would only repeat the title.
        1 if section.is_titled => rows_of_cells
            .flatten()
            .map(|cell| list_item(&cell))
            .collect(),
        _ => table::render(&columns, rows_of_cells),
    };
    [
        title,
        table,
        tree::legend(section, &kept),
        cells::more(
            rows,
            if section.is_long {
                section.rows.len()
            } else {
                0
            },
        ),
    ]
    .into_iter()
    .chain(notes)
    .chain([commands(section, &kept)])
    .collect()
}

fn list_item(cell: &table::Cell) -> String {
    let lines = terminal_text::paragraph(&cell.text);
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

/// Maximum length of a first cell that identifies the command of its row.
const SHORT_NAME: usize = 12;

/// The commands of the rows, below the table: in a column they would be too wide to be copied.
/// Short first cells of the rows identify them.
fn commands(section: &Section, rows: &[&Vec<Value>]) -> String {
    let Some(at) = section
        .columns
        .iter()
        .position(|of| of.unit == Unit::Command)
    else {
        return String::new();
    };
    let mut lines: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let name = match row.first() {
            Some(Value::Text(name)) if name.len() <= SHORT_NAME => name,
            _ => "",
        };
        match row.get(at) {
            Some(Value::Text(command)) if !lines.contains(&(name, command)) => {
                lines.push((name, command));
            }
            _ => {}
        }
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let gap = if width > 0 { 3 } else { 0 };
    let line = |(name, command): &(&str, &str)| {
        format!(
            "  {name:<width$}{:gap$}{}\n",
            "",
            terminal_text::printable(command)
        )
    };
    match lines.is_empty() {
        true => String::new(),
        false => std::iter::once("  Look closer:\n".to_owned())
            .chain(lines.iter().map(line))
            .collect(),
    }
}

/// For each column, whether it may be left out in narrow terminals and contains only zeros: such a
/// column is never shown, because it would only take room.
fn empty_columns(section: &Section, rows: &[&Vec<Value>]) -> Vec<bool> {
    let is_empty = |(at, column): (usize, &Column)| {
        let is_nothing = |row: &&Vec<Value>| {
            let value = row.get(at).unwrap_or(&Value::None);
            *value == Value::None || is_zero(column.unit, value)
        };
        column.left_out > 0 && !rows.is_empty() && rows.iter().all(is_nothing)
    };
    section.columns.iter().enumerate().map(is_empty).collect()
}

/// For each column of durations, sizes or shares, its largest value if there are several rows.
fn largest(section: &Section, rows: &[&Vec<Value>]) -> Vec<Option<f64>> {
    let of = |(at, column): (usize, &Column)| {
        let is_measured = matches!(column.unit, Unit::Duration | Unit::Bytes | Unit::Share);
        let values = rows.iter().filter_map(|row| row.get(at)?.number());
        let largest = values.filter(|_| is_measured).reduce(f64::max);
        largest.filter(|&largest| largest > 0.0 && rows.len() > 1)
    };
    section.columns.iter().enumerate().map(of).collect()
}

/// Words in the keys of columns that count failures.
const TROUBLES: [&str; 7] = [
    "error",
    "lost",
    "loss",
    "drop",
    "discarded",
    "retrans",
    "reset",
];

fn emphasis(column: &Column, value: &Value, largest: Option<f64>) -> table::Emphasis {
    let number = value.number();
    let is_trouble = column.unit == Unit::Count
        && number.is_some_and(|number| number > 0.0)
        && TROUBLES.iter().any(|word| column.key.contains(word));
    match (is_trouble, largest) {
        (true, _) => table::Emphasis::Trouble,
        (false, Some(largest)) if number == Some(largest) => table::Emphasis::Largest,
        _ => table::Emphasis::None,
    }
}

/// Columns of the text table; a thread takes several.
fn columns_of(column: &Column) -> Vec<table::Column<'static>> {
    let text = table::Column::text(column.heading);
    let number = |title| table::Column::number(title);
    let columns = match column.unit {
        Unit::Thread => vec![number("TID"), text],
        Unit::ProcessThread => vec![number("TID"), number("PID"), text],
        Unit::Process | Unit::Tree => vec![number("PID"), text],
        Unit::Path => vec![table::Column::path(column.heading)],
        Unit::Text | Unit::Syscall | Unit::Irq | Unit::Disk | Unit::Interface => vec![text],
        Unit::List | Unit::Named => vec![text],
        Unit::Time | Unit::Command => vec![table::Column::whole(column.heading)],
        _ => vec![number(column.heading)],
    };
    let order = column.left_out;
    columns
        .into_iter()
        .map(|column| column.left_out(order))
        .collect()
}

fn cells_of(head: &Head, column: &Column, value: &Value, zone: &TimeZone) -> Vec<String> {
    match value {
        Value::Thread(thread) => {
            let name = cells::name(head, thread);
            match column.unit {
                Unit::Process => vec![cells::id(thread.pid.or(thread.tid)), name],
                Unit::ProcessThread => vec![cells::id(thread.tid), cells::id(thread.pid), name],
                _ => vec![cells::id(thread.tid), name],
            }
        }
        Value::Process(process) => cells::process(head, process).to_vec(),
        Value::None if column.unit != Unit::Priority => {
            vec!["-".to_owned(); columns_of(column).len()]
        }
        value if is_zero(column.unit, value) => vec![String::new()],
        value => vec![cell(head, column.unit, value, Some(zone))],
    }
}

/// True for an amount of 0, whose cell stays empty so that other amounts stand out.
fn is_zero(unit: Unit, value: &Value) -> bool {
    let is_amount = matches!(
        unit,
        Unit::Count | Unit::Bytes | Unit::Duration | Unit::Share
    );
    is_amount && value.number() == Some(0.0)
}

/// A process, after the lines of the tree that lead to it.
fn cells_of_branch(head: &Head, branch: &Branch, lines: Option<&String>) -> [String; 2] {
    let thread = &branch.thread;
    let id = match (thread.pid, thread.tid) {
        (Some(pid), _) => pid.to_string(),
        (None, tid) => format!("tid {}", cells::id(tid)),
    };
    let lines = lines.map_or("", String::as_str);
    [id, format!("{lines}{}", cells::name(head, thread))]
}

/// A value in a text table.
fn cell(head: &Head, unit: Unit, value: &Value, zone: Option<&TimeZone>) -> String {
    match value {
        Value::None if unit == Unit::Priority => cells::id(None),
        Value::None => "-".to_owned(),
        Value::Unsigned(number) => match unit {
            Unit::Count => units::grouped(*number),
            Unit::Bytes => units::bytes(*number),
            Unit::Duration => units::duration(*number),
            _ => number.to_string(),
        },
        Value::Signed(number) => number.to_string(),
        Value::Flag(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
        Value::Float(number) => match unit {
            Unit::Duration => units::duration(number.round() as u64),
            Unit::Bytes => units::bytes(number.round() as u64),
            Unit::Share => format!("{:.2} %", number * 100.0),
            _ => format!("{number:.2}"),
        },
        Value::Part(part, whole) => units::percent(*part, *whole),
        Value::Time(time) => short_time(head, *time, zone),
        Value::Text(text) => text.clone(),
        Value::Thread(thread) => cells::name(head, thread),
        Value::Process(process) => cells::process(head, process).join(" "),
        Value::Branch(branch) => cells::name(head, &branch.thread),
        Value::List(values) | Value::Row(values) => {
            let texts = values.iter().map(|value| cell(head, unit, value, zone));
            texts.collect::<Vec<_>>().join(" ")
        }
        Value::Rows(rows) => units::grouped(rows.len() as u64),
        Value::Named(values) => Value::named_text(values),
    }
}

/// A time, without the date if the trace begins on the same day.
fn short_time(head: &Head, time: Timestamp, zone: Option<&TimeZone>) -> String {
    let Some(zone) = zone else {
        return time.0.to_string();
    };
    let view = InfoView {
        zone: zone.clone(),
        colours: false,
    };
    let (whole, begin) = (
        view.time(Some(time.0)),
        view.time(head.begin.map(|begin| begin.0)),
    );
    match (whole.split_once(' '), begin.split_once(' ')) {
        (Some((date, short)), Some((day, _))) if date == day && date.contains('-') => {
            short.to_owned()
        }
        _ => whole,
    }
}

/// Maximum length of a bar in columns.
const BAR: usize = 40;
/// Maximum width of the numbers beside the bars, in columns.
const BESIDE: usize = 46;

/// Length of the longest bar in columns, limited by the width of the terminal.
fn longest_bar() -> usize {
    let room = terminal_text::terminal_width().map_or(BAR, |width| width.saturating_sub(BESIDE));
    room.clamp(1, BAR)
}

/// The bars of each group below its name. The largest count of a group has the longest bar; every
/// count above 0 has a visible bar.
fn histogram(head: &Head, section: &Section, rows: usize) -> String {
    let is_shown = |column: &Column| column.forms.contain(Forms::TEXT);
    let numbers = section.columns.iter().skip(1);
    let numbers = numbers.filter(|column| is_shown(column));
    let numbers = numbers.map(|column| table::Column::number(column.title));
    let columns: Vec<table::Column<'static>> = numbers.chain([table::Column::whole("")]).collect();
    let bar = longest_bar();
    let mut text = String::new();
    let kept = section.kept(rows);
    for group in kept.chunk_by(|a, b| a.first() == b.first()) {
        let count = |row: &[Value]| match section.cell(row, "count") {
            Some(Value::Unsigned(count)) => *count,
            _ => 0,
        };
        let most = group.iter().map(|row| count(row)).max().unwrap_or(0);
        let row = |row: &&Vec<Value>| {
            let length = (u128::from(count(row)) * bar as u128).div_ceil(u128::from(most.max(1)));
            let mut cells: Vec<String> = (section.columns.iter().zip(row.iter()).skip(1))
                .filter(|(column, _)| is_shown(column))
                .map(|(column, value)| cell(head, column.unit, value, None))
                .collect();
            cells.push(glyphs().bar.to_string().repeat(length as usize));
            cells
        };
        let name = group
            .first()
            .and_then(|row| row.first())
            .map(|name| cell(head, Unit::Text, name, None));
        text += &format!("{}: {}\n", section.title, name.unwrap_or_default());
        text += &table::render(&columns, group.iter().map(row));
    }
    text + &cells::more_groups(rows, section.limited())
}

/// A table as comma-separated values, with at most `rows` rows.
pub(super) fn plain(head: &Head, section: &Section, rows: usize) -> String {
    let kept = section.kept(rows);
    let columns = section.columns.iter().enumerate();
    let columns: Vec<PlainColumn<'_>> = columns
        .filter(|(_, column)| column.forms.contain(Forms::CSV))
        .map(|(at, column)| PlainColumn {
            at,
            column,
            names: names_in(&kept, at),
        })
        .collect();
    let names: Vec<String> = columns.iter().flat_map(PlainColumn::headings).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = crate::csv::Rows::new(&names);
    for row in kept {
        for row in plain_rows(head, &columns, row) {
            table.add(row);
        }
    }
    table.finish()
}

/// A column of comma-separated values.
struct PlainColumn<'s> {
    /// Index in the rows.
    at: usize,
    column: &'s Column,
    /// Names of the values in its cells, each of which becomes a column; empty for other columns.
    names: Vec<&'s str>,
}

impl PlainColumn<'_> {
    fn headings(&self) -> Vec<String> {
        let key = self.column.key;
        match self.names.as_slice() {
            [] => plain_names(self.column),
            names => names.iter().map(|name| format!("{key}.{name}")).collect(),
        }
    }
}

/// The names of all values in a column, in the order of their first occurrence.
fn names_in<'s>(rows: &[&'s Vec<Value>], at: usize) -> Vec<&'s str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if let Some(Value::Named(values)) = row.get(at) {
            for (name, _) in values.iter() {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
    }
    names
}

/// A row in CSV. If a cell contains a table, there is one line for each row of that table.
fn plain_rows(head: &Head, columns: &[PlainColumn<'_>], row: &[Value]) -> Vec<Vec<String>> {
    let mut rows = vec![Vec::new()];
    for PlainColumn { at, column, names } in columns {
        match row.get(*at).unwrap_or(&Value::None) {
            Value::Rows(nested) => {
                let nested = nested.iter().map(|row| plain_nested(head, column, row));
                let nested: Vec<Vec<String>> = nested.collect();
                let beside =
                    |row: &Vec<String>| nested.iter().map(|own| [&row[..], own].concat()).collect();
                rows = rows
                    .iter()
                    .flat_map(|row| -> Vec<Vec<String>> { beside(row) })
                    .collect();
            }
            Value::Named(values) if !names.is_empty() => {
                let of = |name: &&str| values.iter().find(|(own, _)| own == name);
                let cell = |name| of(name).map_or_else(String::new, |(_, value)| plain_cell(value));
                let cells: Vec<String> = names.iter().map(cell).collect();
                rows.iter_mut()
                    .for_each(|row| row.extend_from_slice(&cells));
            }
            value => {
                let cells = plain_cells(head, column, value);
                rows.iter_mut()
                    .for_each(|row| row.extend_from_slice(&cells));
            }
        }
    }
    rows
}

/// A row of a nested table.
fn plain_nested(head: &Head, column: &Column, row: &[Value]) -> Vec<String> {
    let cells = column.nested.iter().zip(row);
    let cells = cells.filter(|(column, _)| column.forms.contain(Forms::CSV));
    cells
        .flat_map(|(column, value)| plain_cells(head, column, value))
        .collect()
}

const THREAD: [&str; 4] = ["host", "pid", "tid", "name"];

fn is_thread(unit: Unit) -> bool {
    matches!(unit, Unit::Thread | Unit::ProcessThread | Unit::Process)
}

/// Names of the CSV columns. A thread takes four columns, which begin with the column's name unless
/// the thread is the subject of the row.
fn plain_names(column: &Column) -> Vec<String> {
    match column.key {
        _ if !column.nested.is_empty() => {
            let columns = column.nested.iter();
            let columns = columns.filter(|column| column.forms.contain(Forms::CSV));
            columns.flat_map(plain_names).collect()
        }
        "thread" | "process" if is_thread(column.unit) => THREAD.map(str::to_owned).to_vec(),
        key if is_thread(column.unit) => THREAD.map(|name| format!("{key}_{name}")).to_vec(),
        key => vec![key.to_owned()],
    }
}

fn plain_cells(head: &Head, column: &Column, value: &Value) -> Vec<String> {
    match value {
        Value::Thread(thread) => cells::plain_thread(head, thread).to_vec(),
        Value::Process(process) => cells::plain_thread(head, &Thread::from(&**process)).to_vec(),
        Value::None if is_thread(column.unit) => vec![String::new(); THREAD.len()],
        value => vec![plain_cell(value)],
    }
}

fn plain_cell(value: &Value) -> String {
    match value {
        Value::None => String::new(),
        Value::Unsigned(number) => number.to_string(),
        Value::Signed(number) => number.to_string(),
        Value::Flag(is_so) => is_so.to_string(),
        Value::Float(_) | Value::Part(..) => value
            .number()
            .map_or_else(String::new, |share| share.to_string()),
        Value::Time(time) => time.0.to_string(),
        Value::Text(text) => text.clone(),
        Value::Thread(thread) => thread.name.clone().unwrap_or_default(),
        Value::Process(process) => process.name.clone().unwrap_or_default(),
        Value::Branch(branch) => branch.thread.name.clone().unwrap_or_default(),
        Value::List(values) | Value::Row(values) => {
            values.iter().map(plain_cell).collect::<Vec<_>>().join(" ")
        }
        Value::Rows(rows) => rows.len().to_string(),
        Value::Named(values) => Value::named_text(values),
    }
}
