//! Text tables: at most as wide as the terminal, numbers to the right.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::glyphs::glyphs;
use crate::settings;
use crate::terminal_text::{
    LEAST_TEXT, paragraph_within, printable, shorten, terminal_width, width_of,
};

/// Minimum width of paths while other columns can still be left out.
const LEAST_PATH: usize = 30;

/// How a column behaves if the table is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnFit {
    /// Numbers: right-aligned, never shortened.
    Number,
    /// Text that is shortened, but not below [`LEAST_TEXT`].
    Text,
    /// Paths: shortened below [`LEAST_PATH`] only after the columns that may be left out.
    Path,
    /// Text that is meaningless when shortened: times, UUIDs.
    Whole,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<'t> {
    title: &'t str,
    kind: ColumnFit,
    /// Order in which columns are left out if the table is too wide; 0 for columns that always
    /// stay.
    left_out: u8,
}

impl<'t> Column<'t> {
    /// Numbers.
    pub(crate) const fn number(title: &'t str) -> Self {
        Column::of(title, ColumnFit::Number)
    }

    /// Text that may be shortened.
    pub(crate) const fn text(title: &'t str) -> Self {
        Column::of(title, ColumnFit::Text)
    }

    /// Paths, which become ambiguous sooner than other text when shortened.
    pub(crate) const fn path(title: &'t str) -> Self {
        Column::of(title, ColumnFit::Path)
    }

    /// Text that may not be shortened.
    pub(crate) const fn whole(title: &'t str) -> Self {
        Column::of(title, ColumnFit::Whole)
    }

    const fn of(title: &'t str, kind: ColumnFit) -> Self {
        Column {
            title,
            kind,
            left_out: 0,
        }
    }

    fn is_shortened(&self) -> bool {
        matches!(self.kind, ColumnFit::Text | ColumnFit::Path)
    }

    /// Lets the column be left out, after those with smaller numbers (from 1).
    pub(crate) const fn left_out(mut self, order: u8) -> Self {
        self.left_out = order;
        self
    }
}

/// A cell: its text, and whether it stands out where there are colors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) emphasis: Emphasis,
}

/// Reason for a cell to stand out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Emphasis {
    #[default]
    None,
    /// The largest value of the column, or a significant difference.
    Largest,
    /// Errors, losses, drops.
    Trouble,
}

impl Cell {
    /// The largest value of a column.
    pub(crate) fn largest(text: String) -> Cell {
        Cell {
            text,
            emphasis: Emphasis::Largest,
        }
    }

    /// Cells of a row; the cell at `place` is the largest value of its column if `is_largest`.
    pub(crate) fn row(texts: Vec<String>, place: usize, is_largest: bool) -> Vec<Cell> {
        let texts = texts.into_iter().enumerate();
        let cell = |(at, text)| match at == place && is_largest {
            true => Cell::largest(text),
            false => Cell::from(text),
        };
        texts.map(cell).collect()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell {
            text,
            emphasis: Emphasis::None,
        }
    }
}

impl Emphasis {
    fn style(self) -> Style {
        match self {
            Emphasis::None => Style::new(),
            Emphasis::Largest => Style::new().bold(),
            Emphasis::Trouble => AnsiColor::Red.on_default(),
        }
    }
}

/// A line outside of a table that reports losses or failures: it stands out where there are colors.
pub(crate) fn trouble(line: &str) -> String {
    match settings::has_coloured_tables() {
        false => line.to_owned(),
        true => {
            let style = Emphasis::Trouble.style();
            format!("{style}{}{style:#}\n", line.trim_end_matches('\n'))
        }
    }
}

/// Number of spaces between columns; the smaller one if the table is too wide.
const GAPS: [usize; 2] = [3, 2];

/// Renders a table, at most as wide as the terminal.
pub(crate) fn render<C: Into<Cell>>(
    columns: &[Column<'_>],
    rows: impl IntoIterator<Item = Vec<C>>,
) -> String {
    let cells = |row: Vec<C>| row.into_iter().map(Into::into).collect();
    let rows = rows.into_iter().map(cells).collect();
    render_within(columns, rows, terminal_width())
}

fn render_within(columns: &[Column<'_>], mut rows: Vec<Vec<Cell>>, width: Option<usize>) -> String {
    for cell in rows.iter_mut().flatten() {
        if let Cow::Owned(escaped) = printable(&cell.text) {
            cell.text = escaped;
        }
    }
    let mut widths: Vec<usize> = columns
        .iter()
        .map(|column| column.title.chars().count())
        .collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(width_of(&cell.text));
        }
    }
    let plan = Plan::new(columns, &widths, width.unwrap_or(usize::MAX));
    for row in &mut rows {
        for (cell, &width) in row.iter_mut().zip(&plan.widths) {
            shorten(&mut cell.text, width);
        }
    }
    let mut text = plan.draw(columns, &rows);
    let missing: Vec<_> = columns
        .iter()
        .zip(&plan.shown)
        .filter(|&(_, &shown)| !shown)
        .map(|(column, _)| column.title)
        .collect();
    if !missing.is_empty() {
        text += &paragraph_within(
            &format!("  (hidden at this width: {})", missing.join(", ")),
            width,
        );
    }
    text
}

/// Widths of the columns, and which of them are shown.
struct Plan {
    gap: usize,
    widths: Vec<usize>,
    shown: Vec<bool>,
}

/// A step in making a table narrower.
#[derive(Clone, Copy)]
struct Attempt {
    gap: usize,
    /// Columns whose `left_out` is at most this level are left out.
    level: u8,
    /// Minimum width to which texts are shortened.
    least: usize,
    /// Minimum width to which paths are shortened.
    least_path: usize,
    /// Number of further columns that are left out, from the right; never the first.
    cut: usize,
}

impl Plan {
    /// Tries smaller gaps, then shorter texts, then fewer columns. The first column is always kept.
    fn new(columns: &[Column<'_>], widths: &[usize], room: usize) -> Plan {
        let most = columns
            .iter()
            .map(|column| column.left_out)
            .max()
            .unwrap_or(0);
        let attempt = |gap, level, (least, least_path), cut| Attempt {
            gap,
            level,
            least,
            least_path,
            cut,
        };
        let whole = (usize::MAX, usize::MAX);
        let attempts = GAPS
            .map(|gap| attempt(gap, 0, whole, 0))
            .into_iter()
            .chain((0..=most).map(|level| attempt(GAPS[1], level, (LEAST_TEXT, LEAST_PATH), 0)))
            .chain([attempt(GAPS[1], most, (LEAST_TEXT, LEAST_TEXT), 0)])
            .chain((0..columns.len()).map(|cut| attempt(GAPS[1], most, (1, 1), cut)));
        let mut plan = Plan {
            gap: GAPS[0],
            widths: widths.to_vec(),
            shown: vec![true; columns.len()],
        };
        for attempt in attempts {
            if plan.fits(attempt, columns, widths, room) {
                break;
            }
        }
        plan
    }

    /// Applies an attempt; returns whether the table fits.
    fn fits(
        &mut self,
        attempt: Attempt,
        columns: &[Column<'_>],
        widths: &[usize],
        room: usize,
    ) -> bool {
        self.gap = attempt.gap;
        self.shown = columns
            .iter()
            .map(|column| column.left_out == 0 || column.left_out > attempt.level)
            .collect();
        let shown = self.shown.iter_mut().rev().filter(|shown| **shown);
        shown.take(attempt.cut).for_each(|shown| *shown = false);
        if let Some(first) = self.shown.first_mut() {
            *first = true;
        }
        self.widths = widths.to_vec();
        let mut excess = self.total().saturating_sub(room);
        let cells = columns.iter().zip(&mut self.widths).zip(&self.shown);
        for ((column, width), _) in
            cells.filter(|((column, _), shown)| column.is_shortened() && **shown)
        {
            let least = match column.kind {
                ColumnFit::Path => attempt.least_path,
                _ => attempt.least,
            };
            let least = least.max(column.title.chars().count()).min(*width);
            let less = excess.min(*width - least);
            *width -= less;
            excess -= less;
        }
        excess == 0
    }

    fn total(&self) -> usize {
        let shown = self
            .widths
            .iter()
            .zip(&self.shown)
            .filter(|&(_, &shown)| shown);
        shown.map(|(width, _)| width + self.gap).sum()
    }

    fn draw(&self, columns: &[Column<'_>], rows: &[Vec<Cell>]) -> String {
        let has_colours = settings::has_coloured_tables();
        let titles: Vec<Cell> = columns
            .iter()
            .map(|column| column.title.to_owned().into())
            .collect();
        let rule = glyphs().rule.to_string();
        let mut text = self.line(columns, &titles, false);
        let _ = writeln!(text, " {}", rule.repeat(self.total().saturating_sub(1)));
        for row in rows {
            text += &self.line(columns, row, has_colours);
        }
        text
    }

    /// A line of the table, without trailing spaces.
    fn line(&self, columns: &[Column<'_>], cells: &[Cell], has_colours: bool) -> String {
        let mut line = String::new();
        let mut spaces = self.gap - 1;
        let shown = columns.iter().zip(cells).zip(&self.widths).zip(&self.shown);
        for (((column, cell), &width), _) in shown.filter(|(_, shown)| **shown) {
            let free = width.saturating_sub(width_of(&cell.text));
            let (before, after) = match column.kind {
                ColumnFit::Number => (free, 0),
                ColumnFit::Text | ColumnFit::Path | ColumnFit::Whole => (0, free),
            };
            if !cell.text.is_empty() {
                let style = match has_colours {
                    true => cell.emphasis.style(),
                    false => Style::new(),
                };
                let _ = write!(line, "{:1$}{style}", "", spaces + before);
                let _ = write!(line, "{}{style:#}", cell.text);
                spaces = 0;
            } else {
                spaces += before;
            }
            spaces += after + self.gap;
        }
        line + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_tables_keep_their_numbers_whole() {
        let columns = [
            Column::number("TID"),
            Column::text("Thread"),
            Column::number("Read"),
            Column::number("Average").left_out(1),
            Column::whole("Time").left_out(2),
        ];
        let row = || {
            let cells = [
                "1234",
                "a long name of a thread",
                "10.00 MiB",
                "1.234 ms",
                "01:02:03",
            ];
            cells.map(|text| text.to_owned().into()).to_vec()
        };
        let all = render_within(&columns, vec![row()], None);
        assert!(
            all.contains("  1234   a long name of a thread   10.00 MiB   1.234 ms   01:02:03\n"),
            "{all}"
        );
        for width in 25..80 {
            let text = render_within(&columns, vec![row()], Some(width));
            let lines: Vec<_> = text.lines().take(3).collect();
            assert_eq!(lines.len(), 3, "{text}");
            assert!(
                lines.iter().all(|line| line.chars().count() <= width),
                "{width}\n{text}"
            );
            assert!(
                text.contains("1234 ") && text.contains(" 10.00 MiB"),
                "{width}\n{text}"
            );
            for (title, cell) in [("Average", "1.234 ms"), ("Time", "01:02:03")] {
                assert_eq!(
                    lines[0].contains(title),
                    text.contains(cell),
                    "{width}\n{text}"
                );
            }
        }
        let text = render_within(&columns, vec![row()], Some(50));
        assert!(
            text.contains(" a long name o… thread  10.00 MiB  01:02:03\n"),
            "{text}"
        );
        let wide = render_within(
            &[Column::text("Name")],
            vec![vec!["漢".repeat(40).into()]],
            Some(41),
        );
        assert!(
            wide.lines().all(|line| width_of(line) <= 41) && wide.contains('…'),
            "{wide}"
        );
    }

    /// Even if no column may be left out, or if the columns left out have long texts.
    #[test]
    fn no_table_is_wider_than_its_room() {
        let columns = [
            Column::number("TID"),
            Column::whole("Begin"),
            Column::text("What").left_out(1),
            Column::text("Thread").left_out(2),
            Column::whole("Look closer"),
            Column::number("Duration"),
        ];
        let row = || {
            let cells = [
                "1234",
                "01:45:57.576504255",
                "a long description",
                "a long name of a thread",
            ];
            let more = ["tracebraid syscalls", "115.696 ms"];
            cells
                .into_iter()
                .chain(more)
                .map(|text| text.to_owned().into())
                .collect::<Vec<_>>()
        };
        for width in 12..120 {
            let text = render_within(&columns, vec![row()], Some(width));
            assert!(
                text.lines().take(3).all(|line| width_of(line) <= width),
                "{width}\n{text}"
            );
            for (title, cell) in [
                ("Begin", "01:45:57.576504255"),
                ("Look closer", "tracebraid syscalls"),
            ] {
                let header = text.lines().next().unwrap_or_default();
                assert_eq!(
                    header.contains(title),
                    text.contains(cell),
                    "{width}\n{text}"
                );
            }
            assert!(text.contains(" 1234"), "{width}\n{text}");
        }
        let text = render_within(&columns, vec![row()], Some(70));
        assert!(text.contains("tracebraid syscalls  115.696 ms\n"), "{text}");
    }
}
