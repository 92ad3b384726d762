//! Tables for people: as wide as the terminal at most, numbers to the right.

use std::borrow::Cow;

use comfy_table::{Cell, CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle};

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

/// Texts are not made shorter than this while there are columns to leave out.
const LEAST_TEXT: usize = 12;
/// Columns between columns, and fewer where there is too little room.
const GAPS: [usize; 2] = [3, 2];

/// Columns of the terminal; `None` if results go elsewhere, where nothing limits them.
pub(crate) fn terminal_width() -> Option<usize> {
    let given = std::env::var("TRACEBRAID_COLUMNS").ok();
    let given = given.and_then(|columns| columns.parse().ok());
    let own = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into());
    given.or_else(own).map(|width: usize| width.max(40))
}

/// Makes a table's text, as wide as the terminal at most.
pub(crate) fn render(columns: &[Column<'_>], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    render_within(columns, rows.into_iter().collect(), terminal_width())
}

/// Text that a terminal shows and does not obey: names of threads and functions may have anything in them.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    // What turns the direction of writing is as bad.
    let is_safe = |letter: char| {
        !letter.is_control()
            && !matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().map(|letter| match is_safe(letter) {
        true => letter.to_string(),
        false => letter.escape_default().to_string(),
    });
    Cow::Owned(escaped.collect())
}

fn render_within(columns: &[Column<'_>], mut rows: Vec<Vec<String>>, width: Option<usize>) -> String {
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
        text += &paragraph_within(&format!("  (too narrow for: {})", missing.join(", ")), width);
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
    /// Tries smaller gaps, then shorter texts, then fewer columns; in the end only the first one stays.
    fn new(columns: &[Column<'_>], widths: &[usize], room: usize) -> Plan {
        let most = columns.iter().map(|column| column.left_out).max().unwrap_or(0);
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
    fn fits(&mut self, attempt: Attempt, columns: &[Column<'_>], widths: &[usize], room: usize) -> bool {
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
        let shown = self.widths.iter().zip(&self.shown).filter(|&(_, &shown)| shown);
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
            columns.iter().map(|column| column.title.to_owned()).collect(),
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

/// Columns that a text takes.
pub(crate) fn width_of(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let mut table = Table::new();
    table.add_row([text]);
    table
        .column_max_content_widths()
        .first()
        .map_or(0, |&width| width.into())
}

/// Shortens a text in the middle, since both ends distinguish names (`stress-ng-futex`, `stress-ng-fault`);
/// of paths mostly the end is kept, of other names the beginning. Very short texts are cut at the end.
fn shorten(text: &mut String, width: usize) {
    if width_of(text) <= width {
        return;
    }
    let end = match text.starts_with('/') {
        _ if width < LEAST_TEXT => String::new(),
        true => tail(text, width * 2 / 3),
        false => tail(text, width / 3),
    };
    let room = width - width_of(&end);
    while width_of(text) >= room && text.pop().is_some() {}
    text.push('…');
    text.push_str(&end);
}

/// The end of a text, as long as it is no wider than that.
fn tail(text: &str, width: usize) -> String {
    let mut starts = text.char_indices().map(|(start, _)| &text[start..]);
    starts
        .find(|rest| width_of(rest) <= width)
        .unwrap_or_default()
        .to_owned()
}

/// Text with its lines broken between words, where the terminal is too narrow; never between a
/// number and what it counts.
pub(crate) fn paragraph(text: &str) -> String {
    paragraph_within(text, terminal_width())
}

fn paragraph_within(text: &str, width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let indent = text.len() - text.trim_start_matches(' ').len();
    let mut lines = String::new();
    let mut column = 0;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let mut unit = word.to_owned();
        // `85.22 %` belongs to the word behind it, too.
        let is_number = |word: &str| !word.contains(char::is_alphabetic) && !word.ends_with([',', ';', ')']);
        let mut last = word;
        while is_number(last)
            && let Some(next) = words.next()
        {
            unit = unit + " " + next;
            last = next;
        }
        let length = unit.chars().count();
        if column > 0 && column + 1 + length > width {
            lines.push('\n');
            column = 0;
        }
        let before = if column == 0 { indent } else { 1 };
        lines.extend(std::iter::repeat_n(' ', before));
        lines += &unit;
        column += before + length;
    }
    lines + "\n"
}

/// A message for standard error: on a terminal, and only there, lines are wrapped between words. Lines that
/// begin with a space are kept as they are (an expression, and a caret below it).
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    let width =
        terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0).max(40));
    match width {
        Some(width) => Cow::Owned(message_within(text, width)),
        None => Cow::Borrowed(text),
    }
}

fn message_within(text: &str, width: usize) -> String {
    let lines = text
        .lines()
        .map(|line| match line.starts_with(' ') || width_of(line) <= width {
            true => line.to_owned(),
            false => paragraph_within(line, Some(width)).trim_end().to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// A context below its numbers, the outermost frame first: all of it, on as many lines as it takes.
pub(crate) fn way(frames: &[String], width: Option<usize>) -> String {
    const INDENT: usize = 6;
    const SEPARATOR: &str = " > ";
    let width = width.unwrap_or(usize::MAX);
    let mut lines = " ".repeat(INDENT);
    if frames.is_empty() {
        lines.push_str("the thread itself");
    }
    let mut column = INDENT;
    for (place, frame) in frames.iter().map(|frame| safe(frame)).enumerate() {
        let separator = if place > 0 { SEPARATOR } else { "" };
        let length = separator.len() + width_of(&frame);
        if place > 0 && column + length + SEPARATOR.trim_end().len() > width {
            lines.push_str(" >\n");
            lines.push_str(&" ".repeat(INDENT + 2));
            column = INDENT + 2 + width_of(&frame);
        } else {
            lines.push_str(separator);
            column += length;
        }
        lines.push_str(&frame);
    }
    lines.push('\n');
    lines
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 call`, `2 calls`.
pub(crate) fn number_of(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { more })
}

/// The first names of a list, at most three, and the number of the others: `a, b, c and 2 other files`.
pub(crate) fn first_of(names: impl ExactSizeIterator<Item = String>, other: &str, others: &str) -> String {
    const MOST_NAMED: usize = 3;
    let more = names.len().saturating_sub(MOST_NAMED);
    let named = names.take(MOST_NAMED).collect::<Vec<_>>().join(", ");
    match more {
        0 => named,
        more => format!("{named} and {}", number_of(more as u64, other, others)),
    }
}

/// A part of a whole in per cent.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".to_owned()
    } else {
        format!("{:.2} %", part as f64 * 100.0 / whole as f64)
    }
}

/// A number of bytes in a unit that suits it.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = number as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "B" {
        format!("{number} B")
    } else {
        format!("{value:.2} {unit}")
    }
}

/// A number of nanoseconds in a unit that suits it.
pub(crate) fn duration(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.3} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", value / 1e6),
        _ => format!("{:.6} s", value / 1e9),
    }
}

/// Bars of eight heights, one for each number.
pub(crate) fn sparkline(numbers: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = numbers.iter().copied().max().unwrap_or(0);
    let bar = |&number: &u64| match number {
        0 => ' ',
        number => BARS[((u128::from(number) * 8).div_ceil(u128::from(most)) as usize).clamp(1, 8) - 1],
    };
    numbers.iter().map(bar).collect()
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
                assert_eq!(lines[0].contains(title), text.contains(cell), "{width}\n{text}");
            }
        }
        let text = render_within(&columns, vec![row()], Some(50));
        assert!(
            text.contains(" a long name o… thread  10.00 MiB  01:02:03\n"),
            "{text}"
        );
        let wide = render_within(&[Column::text("Name")], vec![vec!["漢".repeat(40)]], Some(41));
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
                assert_eq!(header.contains(title), text.contains(cell), "{width}\n{text}");
            }
            assert!(text.contains(" 1234"), "{width}\n{text}");
        }
        let text = render_within(&columns, vec![row()], Some(70));
        assert!(text.contains("tracebraid syscalls  115.696 ms\n"), "{text}");
    }

    #[test]
    fn contexts_are_broken_between_frames() {
        let frames = ["main", "handle_request", "read()", "[block-device]"].map(str::to_owned);
        let lines = super::way(&frames, Some(40));
        assert_eq!(
            lines,
            "      main > handle_request > read() >\n        [block-device]\n"
        );
        let whole = super::way(&frames, None);
        assert_eq!(whole, "      main > handle_request > read() > [block-device]\n");
        assert_eq!(super::way(&frames, Some(3)).lines().count(), 4);
    }

    #[test]
    fn paragraphs_break_between_words() {
        let text = "4 CPUs over 2.640188 s: 85.22 % active, 12.64 % idle; 9,433 switches";
        assert_eq!(paragraph_within(text, None), format!("{text}\n"));
        assert_eq!(
            paragraph_within(text, Some(30)),
            "4 CPUs over 2.640188 s:\n85.22 % active, 12.64 % idle;\n9,433 switches\n"
        );
        assert_eq!(paragraph_within("  (too narrow)", Some(8)), "  (too\n  narrow)\n");
    }

    #[test]
    fn messages_break_but_for_expressions() {
        let text = "error: --filter: `foo` is no time, nor anything else\n  sched_switch && time > foo && cpu == 1 && tid == 2\n      ^";
        assert_eq!(
            message_within(text, 40),
            "error: --filter: `foo` is no time, nor\nanything else\n  sched_switch && time > foo && cpu == 1 && tid == 2\n      ^"
        );
        assert_eq!(message_within("short", 40), "short");
    }

    #[test]
    fn names_are_shortened_in_the_middle() {
        let of = |text: &str, width| {
            let mut text = text.to_owned();
            shorten(&mut text, width);
            text
        };
        assert_eq!(of("stress-ng-futex", 12), "stress-…utex");
        assert_eq!(of("/var/lib/mysql/ibdata1", 12), "/va…/ibdata1");
        assert_eq!(of("stress-ng-futex", 8), "stress-…");
        assert_eq!(of("stress-ng-futex", 15), "stress-ng-futex");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1_500_000), "1.500 ms");
        assert_eq!(percent(1, 0), "-");
        assert_eq!(sparkline(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(sparkline(&[u64::MAX, 1]), "█▁");
    }
}
