//! Tables for people: as wide as the terminal at most, numbers to the right.

use std::borrow::Cow;

use comfy_table::{
    Cell, CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle,
};

use crate::terminal_text::{LEAST_TEXT, paragraph_within, safe, shorten, terminal_width, width_of};

/// What may become of a column that has too little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnFit {
    /// Numbers, to the right; never cut.
    Number,
    /// Text that is shortened, but not below [`LEAST_TEXT`].
    Text,
    /// Text that means nothing when cut: times, UUIDs.
    Whole,
}

/// A column: its title and what may become of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<'t> {
    title: &'t str,
    kind: ColumnFit,
    /// Order in which columns are left out where the table is too wide; 0 for those that stay.
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

    /// Says that it may be left out, after those with smaller numbers (from 1).
    pub(crate) const fn left_out(mut self, order: u8) -> Self {
        self.left_out = order;
        self
    }
}

/// Columns between columns, and fewer where there is too little room.
const GAPS: [usize; 2] = [3, 2];

/// Makes a table's text, as wide as the terminal at most.
pub(crate) fn render(
    columns: &[Column<'_>],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    render_within(columns, rows.into_iter().collect(), terminal_width())
}

fn render_within(
    columns: &[Column<'_>],
    mut rows: Vec<Vec<String>>,
    width: Option<usize>,
) -> String {
    for cell in rows.iter_mut().flatten() {
        if let Cow::Owned(escaped) = safe(cell) {
            *cell = escaped;
        }
    }
    let mut widths: Vec<usize> = columns
        .iter()
        .map(|column| column.title.chars().count())
        .collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(width_of(cell));
        }
    }
    let plan = Plan::new(columns, &widths, width.unwrap_or(usize::MAX));
    for row in &mut rows {
        for (cell, &width) in row.iter_mut().zip(&plan.widths) {
            shorten(cell, width);
        }
    }
    let mut text = plan.draw(columns, rows);
    let missing: Vec<_> = columns
        .iter()
        .zip(&plan.shown)
        .filter(|&(_, &shown)| !shown)
        .map(|(column, _)| column.title)
        .collect();
    if !missing.is_empty() {
        text += &paragraph_within(
            &format!("  (too narrow for: {})", missing.join(", ")),
            width,
        );
    }
    text
}

/// How a table gets its width.
struct Plan {
    gap: usize,
    widths: Vec<usize>,
    shown: Vec<bool>,
}

/// A way to make a table narrower.
#[derive(Clone, Copy)]
struct Attempt {
    gap: usize,
    /// Columns that may be left out up to this order are.
    level: u8,
    /// Texts are not made shorter than this.
    least: usize,
    /// Of the other columns so many are left out, too, but for the first.
    cut: usize,
}

impl Plan {
    /// Tries smaller gaps, then shorter texts, then fewer columns; in the end only the first one
    /// stays.
    fn new(columns: &[Column<'_>], widths: &[usize], room: usize) -> Plan {
        let most = columns
            .iter()
            .map(|column| column.left_out)
            .max()
            .unwrap_or(0);
        let attempt = |gap, level, least, cut| Attempt {
            gap,
            level,
            least,
            cut,
        };
        let attempts = GAPS
            .map(|gap| attempt(gap, 0, usize::MAX, 0))
            .into_iter()
            .chain((0..=most).map(|level| attempt(GAPS[1], level, LEAST_TEXT, 0)))
            .chain((0..columns.len()).map(|cut| attempt(GAPS[1], most, 1, cut)));
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

    /// Plans that way; true if there is room for it.
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
            cells.filter(|((column, _), shown)| column.kind == ColumnFit::Text && **shown)
        {
            let least = attempt.least.max(column.title.chars().count()).min(*width);
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

    fn draw(&self, columns: &[Column<'_>], rows: Vec<Vec<String>>) -> String {
        let mut table = Table::new();
        let rule = LineStyle::none().left(' ').fill('─').junction('─');
        let cells = ContentLineStyle::none().left(' ').junction(' ');
        let style = TableStyle::new()
            .header_lines(cells)
            .header_separator(rule)
            .content_lines(cells);
        table
            .load_style(style)
            .set_content_arrangement(ContentArrangement::Disabled);
        let line = |texts: Vec<String>| -> Vec<Cell> {
            let cells = texts.into_iter().zip(columns).zip(&self.shown);
            cells
                .filter(|&(_, &shown)| shown)
                .map(|((text, column), _)| Cell::new(text).set_alignment(column.alignment()))
                .collect()
        };
        table.set_header(line(
            columns
                .iter()
                .map(|column| column.title.to_owned())
                .collect(),
        ));
        for row in rows {
            table.add_row(line(row));
        }
        let left = u16::from(self.gap == GAPS[0]);
        for column in table.column_iter_mut() {
            column.set_padding((left, 1));
        }
        let text = table.to_string();
        text.lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }
}

impl<'t> Column<'t> {
    fn alignment(&self) -> CellAlignment {
        match self.kind {
            ColumnFit::Number => CellAlignment::Right,
            ColumnFit::Text | ColumnFit::Whole => CellAlignment::Left,
        }
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
            cells.map(str::to_owned).to_vec()
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
            vec![vec!["漢".repeat(40)]],
            Some(41),
        );
        assert!(
            wide.lines().all(|line| width_of(line) <= 41) && wide.contains('…'),
            "{wide}"
        );
    }

    /// Also where no column may be left out, and where texts of columns that are left out are long.
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
                .map(str::to_owned)
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
