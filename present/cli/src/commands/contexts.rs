//! Tables of calling contexts, which are too wide for a column and are printed below their rows.

use crate::glyphs::glyphs;
use crate::terminal_text;

/// Number of lines of a table above its rows.
const HEAD: usize = 2;

/// A rendered table, with the context of each row on the lines below it. Frames that all contexts
/// share are printed once, above the table.
pub(super) fn below(table: &str, contexts: &[Vec<String>]) -> String {
    let width = terminal_text::terminal_width();
    let shared = shared(contexts);
    let mut text = String::new();
    if shared > 0 {
        let around = contexts.first().and_then(|first| first.get(..shared));
        text.push_str("  each within\n");
        text.push_str(&terminal_text::way(around.unwrap_or_default(), width));
    }
    let mut lines = table.lines();
    lines
        .by_ref()
        .take(HEAD)
        .for_each(|line| put(&mut text, line));
    // The contexts must come first: when they are exhausted, `zip` has not yet taken a line.
    for (frames, line) in contexts.iter().zip(lines.by_ref()) {
        put(&mut text, line);
        let own = frames.get(shared..).unwrap_or_default();
        match shared {
            0 => text.push_str(&terminal_text::way(own, width)),
            _ => text.push_str(&terminal_text::way(
                &[&[glyphs().ellipsis.to_string()][..], own].concat(),
                width,
            )),
        }
    }
    lines.for_each(|line| put(&mut text, line));
    text
}

fn put(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Number of leading frames that all contexts share, if they are worth a line of their own. At
/// least one frame of each context is left.
fn shared(contexts: &[Vec<String>]) -> usize {
    const WORTH: usize = 3;
    let Some((first, others)) = contexts.split_first() else {
        return 0;
    };
    let most = first.len().saturating_sub(1);
    let same = |other: &Vec<String>| {
        let pairs = first.iter().zip(other).take(other.len().saturating_sub(1));
        pairs.take_while(|(one, other)| one == other).count()
    };
    let shared = others.iter().map(same).fold(most, usize::min);
    match !others.is_empty() && shared >= WORTH {
        true => shared,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_all_contexts_begin_with_is_said_once() {
        let contexts = |texts: &[&str]| -> Vec<Vec<String>> {
            let frames = |text: &&str| text.split(' ').map(str::to_owned).collect();
            texts.iter().map(frames).collect()
        };
        assert_eq!(
            super::shared(&contexts(&["a b c d e", "a b c d f", "a b c x"])),
            3
        );
        assert_eq!(super::shared(&contexts(&["a b c d", "a b c"])), 0);
        assert_eq!(super::shared(&contexts(&["a b c d e f"])), 0);
        assert_eq!(super::shared(&contexts(&["", "a b c d"])), 0);
    }
}
