//! How reports that are lists of tables look.

use jiff::tz::TimeZone;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_follow::Head;
use tracebraid_tables::{Column, Lists, Report, Section, Total, Unit, Value, View};

use crate::commands::cells;
use crate::commands::report::Show;
use crate::info::tables::View as InfoView;
use crate::table;

impl Show for Report {
    fn sections(&self) -> Report {
        self.clone()
    }

    fn summary(&self) -> String {
        let total = |total: &Total| match &total.value {
            Value::Unsigned(0) if total.unit == Unit::Count => format!("no {}", total.title),
            Value::Unsigned(1) if total.unit == Unit::Count => format!("1 {}", total.one),
            value => format!("{} {}", cell(&self.head, total.unit, value, None), total.title),
        };
        // What there is nothing of is not worth a word, but for what the report is about.
        let is_something = |value: &Value| !matches!(value, Value::Unsigned(0) | Value::None);
        let is_told = |(at, total): &(usize, &Total)| *at == 0 || is_something(&total.value);
        let totals = self.totals.iter().enumerate().filter(is_told);
        let totals: Vec<String> = totals.map(|(_, own)| total(own)).collect();
        table::paragraph(&format!(
            "{} in {}",
            totals.join(", "),
            table::duration(self.head.duration_ns)
        ))
    }

    fn tables(&self, rows: usize, zone: &TimeZone) -> Vec<String> {
        tables(&self.head, &self.sections, rows, zone)
    }

    /// The sections one after the other, apart by an empty line, each with its columns.
    fn csv(&self, rows: usize) -> String {
        let sections = self
            .sections
            .iter()
            .map(|section| plain(&self.head, section, rows));
        sections.collect::<Vec<_>>().join("\n")
    }
}

fn tables(head: &Head, sections: &[Section], rows: usize, zone: &TimeZone) -> Vec<String> {
    let sections = sections.iter().filter(|section| !section.rows.is_empty());
    sections
        .map(|section| match section.view {
            // Those of several groups side by side have no bars.
            View::Freq if section.columns.len() == 4 => histogram(head, section),
            _ => table_of(head, section, rows, zone),
        })
        .collect()
}

/// The tables of other views than statistics, which have a form of their own there.
pub(super) fn other_tables(head: &Head, lists: &Lists, rows: usize, zone: &TimeZone) -> Vec<String> {
    let sections: Vec<Section> = others(lists).cloned().collect();
    tables(head, &sections, rows, zone)
}

/// The same as comma-separated values, each behind an empty line.
pub(super) fn other_csv(head: &Head, lists: &Lists, rows: usize) -> String {
    let sections = others(lists).map(|section| format!("\n{}", plain(head, section, rows)));
    sections.collect()
}

/// A line about the lengths in the only row of a table, if it has one.
pub(super) fn lengths(lists: &Lists, key: &str, (one, many): (&str, &str), between: &str) -> String {
    let section = lists.section(key);
    let Some((section, row)) = section.and_then(|section| Some((section, section.rows.first()?))) else {
        return String::new();
    };
    let number = |key| match section.cell(row, key) {
        Some(Value::Unsigned(number)) => *number,
        _ => 0,
    };
    let duration = |key| table::duration(number(key));
    table::paragraph(&format!(
        "  {} from {between}: half of them up to {}, 99 % up to {}, the longest {}",
        table::number_of(number("count"), one, many),
        duration("p50_ns"),
        duration("p99_ns"),
        duration("max_ns"),
    ))
}

fn others(lists: &Lists) -> impl Iterator<Item = &Section> {
    let sections = lists.sections.iter();
    sections.filter(|section| section.view != View::Stats)
}

fn table_of(head: &Head, section: &Section, rows: usize, zone: &TimeZone) -> String {
    let rows = if section.is_long { rows } else { usize::MAX };
    // Of one machine, everything is.
    let is_shown = |column: &Column| !matches!(column.key, "host" | "trace") || head.hosts.len() > 1;
    let columns = section.columns.iter().filter(|column| is_shown(column));
    let columns: Vec<table::Column<'static>> = columns.flat_map(columns_of).collect();
    let row = |row: &Vec<Value>| {
        let cells = section.columns.iter().zip(row);
        let cells = cells.filter(|(column, _)| is_shown(column));
        cells
            .flat_map(|(column, value)| cells_of(head, column, value, zone))
            .collect()
    };
    format!(
        "{}\n{}{}",
        section.title,
        table::render(&columns, section.rows.iter().take(rows).map(row)),
        cells::more(rows, section.rows.len())
    )
}

/// Threads take two columns.
fn columns_of(column: &Column) -> Vec<table::Column<'static>> {
    let one = |title| match column.unit {
        Unit::Text | Unit::Syscall | Unit::Irq | Unit::Disk | Unit::Interface | Unit::Path => {
            table::Column::text(title)
        }
        Unit::Time | Unit::Command => table::Column::whole(title),
        _ => table::Column::number(title),
    };
    let columns = match column.unit {
        Unit::Thread | Unit::Process => {
            let id = if column.unit == Unit::Thread { "TID" } else { "PID" };
            vec![table::Column::number(id), table::Column::text(column.title)]
        }
        _ => vec![one(column.title)],
    };
    let order = column.left_out;
    columns.into_iter().map(|column| column.left_out(order)).collect()
}

fn cells_of(head: &Head, column: &Column, value: &Value, zone: &TimeZone) -> Vec<String> {
    match value {
        Value::Thread(thread) if column.unit == Unit::Process => {
            vec![cells::id(thread.pid.or(thread.tid)), cells::name(head, thread)]
        }
        Value::Thread(thread) => vec![cells::id(thread.tid), cells::name(head, thread)],
        Value::None if matches!(column.unit, Unit::Thread | Unit::Process) => {
            vec!["-".to_owned(), "-".to_owned()]
        }
        value => vec![cell(head, column.unit, value, Some(zone))],
    }
}

/// A value for people.
fn cell(head: &Head, unit: Unit, value: &Value, zone: Option<&TimeZone>) -> String {
    match value {
        Value::None => "-".to_owned(),
        Value::Unsigned(number) => match unit {
            Unit::Count => table::grouped(*number),
            Unit::Bytes => table::bytes(*number),
            Unit::Duration => table::duration(*number),
            _ => number.to_string(),
        },
        Value::Signed(number) => number.to_string(),
        Value::Float(number) => match unit {
            Unit::Duration => table::duration(number.round() as u64),
            Unit::Bytes => table::bytes(number.round() as u64),
            Unit::Share => format!("{:.2} %", number * 100.0),
            _ => format!("{number:.2}"),
        },
        Value::Time(time) => short_time(head, *time, zone),
        Value::Text(text) => text.clone(),
        Value::Thread(thread) => cells::name(head, thread),
    }
}

/// A time, without the date if that is the day on which the trace begins.
pub(super) fn short_time(head: &Head, time: Timestamp, zone: Option<&TimeZone>) -> String {
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
        (Some((date, short)), Some((day, _))) if date == day && date.contains('-') => short.to_owned(),
        _ => whole,
    }
}

/// Columns of the longest bar, where there is room for it.
const BAR: usize = 40;
/// Columns that the numbers beside bars take at most.
const BESIDE: usize = 34;

/// Columns of the longest bar.
fn longest_bar() -> usize {
    let room = table::terminal_width().map_or(BAR, |width| width.saturating_sub(BESIDE));
    room.clamp(1, BAR)
}

/// Each group's bars below its name. The longest bar is that of the most; what occurred is seen.
fn histogram(head: &Head, section: &Section) -> String {
    let numbers = section.columns.iter().skip(1);
    let numbers = numbers.map(|column| table::Column::number(column.title));
    let columns: Vec<table::Column<'static>> = numbers.chain([table::Column::whole("")]).collect();
    let bar = longest_bar();
    let mut text = String::new();
    for group in section.rows.chunk_by(|a, b| a.first() == b.first()) {
        let count = |row: &[Value]| match row.last() {
            Some(Value::Unsigned(count)) => *count,
            _ => 0,
        };
        let most = group.iter().map(|row| count(row)).max().unwrap_or(0);
        let row = |row: &Vec<Value>| {
            let length = (u128::from(count(row)) * bar as u128).div_ceil(u128::from(most.max(1)));
            let mut cells: Vec<String> = (section.columns.iter().zip(row).skip(1))
                .map(|(column, value)| cell(head, column.unit, value, None))
                .collect();
            cells.push("█".repeat(length as usize));
            cells
        };
        let name = group
            .first()
            .and_then(|row| row.first())
            .map(|name| cell(head, Unit::Text, name, None));
        text += &format!("{}: {}\n", section.title, name.unwrap_or_default());
        text += &table::render(&columns, group.iter().map(row));
    }
    text
}

fn plain(head: &Head, section: &Section, rows: usize) -> String {
    let rows = if section.is_long { rows } else { usize::MAX };
    let names: Vec<String> = section.columns.iter().flat_map(plain_names).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = crate::csv::Rows::new(&names);
    for row in section.rows.iter().take(rows) {
        let cells = section.columns.iter().zip(row);
        table.add(cells.flat_map(|(column, value)| plain_cells(head, column, value)));
    }
    table.finish()
}

const THREAD: [&str; 4] = ["host", "pid", "tid", "name"];

/// Threads take four columns; those whom a row is not about have their column's name before it.
fn plain_names(column: &Column) -> Vec<String> {
    match (column.unit, column.key) {
        (Unit::Thread, "thread") | (Unit::Process, "process") => THREAD.map(str::to_owned).to_vec(),
        (Unit::Thread | Unit::Process, key) => THREAD.map(|name| format!("{key}_{name}")).to_vec(),
        (_, key) => vec![key.to_owned()],
    }
}

fn plain_cells(head: &Head, column: &Column, value: &Value) -> Vec<String> {
    match value {
        Value::Thread(thread) => cells::plain_thread(head, thread).to_vec(),
        Value::None if matches!(column.unit, Unit::Thread | Unit::Process) => {
            vec![String::new(); THREAD.len()]
        }
        Value::None => vec![String::new()],
        Value::Unsigned(number) => vec![number.to_string()],
        Value::Signed(number) => vec![number.to_string()],
        Value::Float(number) => vec![number.to_string()],
        Value::Time(time) => vec![time.0.to_string()],
        Value::Text(text) => vec![text.clone()],
    }
}
