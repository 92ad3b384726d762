//! Text for terminals: without control characters, shortened, and wrapped between words.

use std::borrow::Cow;
use std::os::unix::fs::FileTypeExt;

use unicode_width::UnicodeWidthStr;

use crate::glyphs::glyphs;
use crate::settings;

/// Minimum width of texts that are shortened in the middle. Cells are made narrower than this only
/// after all columns that may be left out have been.
pub(crate) const LEAST_TEXT: usize = 12;

/// Width of text in columns: from `--width`, from the environment (`TRACEBRAID_COLUMNS`), or from
/// the terminal, even if a pipe leads there (`| less`, `| head`). `None`, without a limit, if the
/// output is a file.
pub(crate) fn terminal_width() -> Option<usize> {
    let given = std::env::var("TRACEBRAID_COLUMNS").ok();
    let given = settings::width().or_else(|| given.and_then(|columns| columns.parse().ok()));
    let columns = |(width, _): (terminal_size::Width, terminal_size::Height)| width.0.into();
    let own = || terminal_size::terminal_size_of(std::io::stdout()).map(columns);
    let after_pipe = || {
        let is_pipe =
            std::fs::metadata("/proc/self/fd/1").is_ok_and(|out| out.file_type().is_fifo());
        let of_messages = || terminal_size::terminal_size_of(std::io::stderr()).map(columns);
        is_pipe.then(of_messages).flatten()
    };
    let width = given.or_else(own).or_else(after_pipe);
    width.map(|width: usize| width.max(40))
}

/// Text without control characters: names of threads and functions may contain escape sequences,
/// which a terminal would execute.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    // Characters that change the writing direction could also hide text.
    escaped(text, |_| true)
}

/// As [`safe`], for tables: in a locale without UTF-8, non-ASCII characters are escaped too.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_unicode = glyphs().is_unicode;
    escaped(text, |letter| is_unicode || letter.is_ascii())
}

/// Escapes control characters and unwanted characters.
fn escaped(text: &str, is_wanted: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_safe = |letter: char| {
        !letter.is_control()
            && is_wanted(letter)
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

/// Width of a text in columns.
pub(crate) fn width_of(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.width(),
    }
}

/// Shortens a text in the middle, because both ends distinguish names (`stress-ng-futex`,
/// `stress-ng-fault`). Of a path mostly the end is kept, of other names the beginning. Very short
/// texts are cut at the end.
pub(crate) fn shorten(text: &mut String, width: usize) {
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
    text.push(glyphs().ellipsis);
    text.push_str(&end);
}

/// The longest suffix that is at most `width` columns wide.
fn tail(text: &str, width: usize) -> String {
    let mut starts = text.char_indices().map(|(start, _)| &text[start..]);
    starts
        .find(|rest| width_of(rest) <= width)
        .unwrap_or_default()
        .to_owned()
}

/// Wraps text between words if the terminal is too narrow, but never between a number and its noun.
pub(crate) fn paragraph(text: &str) -> String {
    paragraph_within(text, terminal_width())
}

pub(crate) fn paragraph_within(text: &str, width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let indent = text.len() - text.trim_start_matches(' ').len();
    let mut lines = String::new();
    let mut column = 0;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let mut unit = word.to_owned();
        // `85.22 %` must not be separated from the following word either.
        let is_number =
            |word: &str| !word.contains(char::is_alphabetic) && !word.ends_with([',', ';', ')']);
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

/// A message for standard error. Lines are wrapped between words, but only on a terminal. Lines
/// that begin with a space are kept as they are (an expression with a caret below it).
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    let width = terminal_size::terminal_size_of(std::io::stderr())
        .map(|(width, _)| usize::from(width.0).max(40));
    match width {
        Some(width) => Cow::Owned(message_within(text, width)),
        None => Cow::Borrowed(text),
    }
}

fn message_within(text: &str, width: usize) -> String {
    let lines = text.lines().map(
        |line| match line.starts_with(' ') || width_of(line) <= width {
            true => line.to_owned(),
            false => paragraph_within(line, Some(width)).trim_end().to_owned(),
        },
    );
    lines.collect::<Vec<_>>().join("\n")
}

/// A calling context, printed below its numbers: the outermost frame first, on as many lines as
/// needed.
pub(crate) fn way(frames: &[String], width: Option<usize>) -> String {
    const INDENT: usize = 6;
    const SEPARATOR: &str = " > ";
    let width = width.unwrap_or(usize::MAX);
    let mut lines = " ".repeat(INDENT);
    if frames.is_empty() {
        lines.push_str("the thread itself");
    }
    let mut column = INDENT;
    for (place, frame) in frames.iter().map(|frame| printable(frame)).enumerate() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_broken_between_frames() {
        let frames = ["main", "handle_request", "read()", "[block-device]"].map(str::to_owned);
        let lines = super::way(&frames, Some(40));
        assert_eq!(
            lines,
            "      main > handle_request > read() >\n        [block-device]\n"
        );
        let whole = super::way(&frames, None);
        assert_eq!(
            whole,
            "      main > handle_request > read() > [block-device]\n"
        );
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
        assert_eq!(
            paragraph_within("  (too narrow)", Some(8)),
            "  (too\n  narrow)\n"
        );
    }

    #[test]
    fn messages_break_but_for_expressions() {
        let text = "error: --filter: `foo` is neither a time nor a known name\n  sched_switch && time > foo && cpu == 1 && tid == 2\n      ^";
        assert_eq!(
            message_within(text, 40),
            "error: --filter: `foo` is neither a time\nnor a known name\n  sched_switch && time > foo && cpu == 1 && tid == 2\n      ^"
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
}
