//! Characters for tables, trees and bars: Unicode, or ASCII in a locale without UTF-8 (`LC_ALL=C`).

use std::sync::LazyLock;

/// Characters for tables, trees and bars. Each is one column wide.
#[derive(Debug)]
pub(crate) struct Glyphs {
    /// Whether text may contain characters outside ASCII.
    pub(crate) is_unicode: bool,
    /// Line below the headings of a table.
    pub(crate) rule: char,
    /// Replaces the omitted part of a text.
    pub(crate) ellipsis: char,
    /// Unit of a horizontal bar.
    pub(crate) bar: char,
    /// Vertical bars of eight heights, in ascending order.
    pub(crate) heights: [char; 8],
    /// Prefixes in a tree: of a parent's last child, of its other children, and of the descendants
    /// of the other children.
    pub(crate) tree: [&'static str; 3],
    pub(crate) plus_minus: &'static str,
}

const UNICODE: Glyphs = Glyphs {
    is_unicode: true,
    rule: '─',
    ellipsis: '…',
    bar: '█',
    heights: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
    tree: ["└─", "├─", "│ "],
    plus_minus: "±",
};

const ASCII: Glyphs = Glyphs {
    is_unicode: false,
    rule: '-',
    ellipsis: '~',
    bar: '#',
    heights: ['.', ':', '-', '=', '+', '*', '%', '#'],
    tree: ["`-", "|-", "| "],
    plus_minus: "+-",
};

/// The characters for the locale.
pub(crate) fn glyphs() -> &'static Glyphs {
    static LOCALE: LazyLock<&Glyphs> = LazyLock::new(|| {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok());
        of_locale(names.iter().flatten().map(String::as_str))
    });
    *LOCALE
}

/// The first non-empty name decides. Without any, as in many containers, the output is Unicode:
/// most output goes to files and to terminals that can show it.
fn of_locale<'n>(names: impl IntoIterator<Item = &'n str>) -> &'static Glyphs {
    let name = names.into_iter().find(|name| !name.is_empty());
    let is_unicode = name.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    });
    match is_unicode {
        true => &UNICODE,
        false => &ASCII,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_without_utf_8_get_ascii() {
        for (names, is_unicode) in [
            (&["C"][..], false),
            (&["POSIX"], false),
            (&["", "en_US.ISO-8859-1"], false),
            (&["C.UTF-8", "C"], true),
            (&["", "", "de_DE.utf8"], true),
            (&[], true),
        ] {
            let glyphs = of_locale(names.iter().copied());
            assert_eq!(glyphs.is_unicode, is_unicode, "{names:?}");
        }
        let texts = [ASCII.tree.concat(), ASCII.plus_minus.to_owned()];
        assert!(texts.iter().all(|text| text.is_ascii()));
        assert!(ASCII.heights.iter().all(char::is_ascii));
    }
}
