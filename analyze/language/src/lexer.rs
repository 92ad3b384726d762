//! Splits text into tokens.

use crate::parse::FilterError;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Number(String),
    Text(String),
    /// An operator or a parenthesis.
    Sign(&'static str),
    End,
}

/// A token and its byte offset.
pub(crate) type Placed = (Token, usize);

/// Token rules of one language.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    /// Longer ones come first, since the first match wins.
    signs: &'static [&'static str],
    /// Characters of words besides letters and digits.
    word: &'static str,
    /// Colons within event names belong to the names: `app:begin`.
    has_colons: bool,
}

/// Filter expressions: words are event names, fields and patterns.
pub(crate) const FILTER: Dialect = Dialect {
    signs: &[
        "&&", "||", "==", "!=", "<=", ">=", "=~", "=*", "!~", "~", "<", ">", "!", "(", ")",
    ],
    word: "_.:*?@$/-[]",
    has_colons: false,
};

/// Definitions of periods: colons, commas and `=` separate expressions. After the period's name, a
/// colon with a letter on both sides is part of an event name.
pub(crate) const PERIODS: Dialect = Dialect {
    signs: &[
        "&&", "||", "==", "!=", "<=", ">=", "=~", "=*", "!~", "~", "<", ">", "!", "(", ")", ":",
        ",", "=",
    ],
    word: "_.$-[]@*?/",
    has_colons: true,
};

/// [`PERIODS`] with every colon as a separator: captures, and the old form of periods.
pub(crate) const OLD_PERIODS: Dialect = Dialect {
    has_colons: false,
    ..PERIODS
};

/// The tokens of a filter expression.
pub(crate) fn tokens(text: &str) -> Result<Vec<Placed>, FilterError> {
    tokens_from(text, 0, FILTER)
}

/// The tokens of a text from byte `start` on.
pub(crate) fn tokens_from(
    text: &str,
    start: usize,
    dialect: Dialect,
) -> Result<Vec<Placed>, FilterError> {
    let is_word = |character: char| character.is_alphanumeric() || dialect.word.contains(character);
    let mut tokens = Vec::new();
    let mut at = start;
    while let Some(rest) = text.get(at..) {
        let Some(first) = rest.chars().next() else {
            break;
        };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if let Some(sign) = dialect.signs.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push((Token::Sign(canonical(sign)), at));
            at += sign.len();
            continue;
        }
        if first == '"' || first == '\'' {
            let (string, length) =
                string(rest, first).map_err(|message| FilterError::new(text, at, message))?;
            tokens.push((Token::Text(string), at));
            at += length;
            continue;
        }
        if first == '=' {
            return Err(FilterError::new(text, at, "to compare, write `==`"));
        }
        if first == '&' || first == '|' {
            return Err(FilterError::new(
                text,
                at,
                format!("`{first}` is not an operator; write `{first}{first}`"),
            ));
        }
        let mut length = length_of_word(rest, is_word);
        // The first word is the period's name.
        if dialect.has_colons && !tokens.is_empty() && first != '$' && !first.is_ascii_digit() {
            while let Some(behind) = rest.get(length..).and_then(|rest| rest.strip_prefix(':'))
                && behind.starts_with(|c| is_word(c) && c != '$')
            {
                length += 1 + length_of_word(behind, is_word);
            }
        }
        let word = rest.get(..length).unwrap_or_default();
        if word.is_empty() {
            return Err(FilterError::new(text, at, format!("unexpected `{first}`")));
        }
        let numeric = word
            .trim_start_matches(['-', '+'])
            .starts_with(|c: char| c.is_ascii_digit());
        let token = if numeric {
            Token::Number(word.to_owned())
        } else {
            Token::Word(word.to_owned())
        };
        tokens.push((token, at));
        at += length;
    }
    tokens.push((Token::End, text.len()));
    Ok(tokens)
}

/// Length in bytes of the word at the beginning of a text.
fn length_of_word(text: &str, is_word: impl Fn(char) -> bool) -> usize {
    let letters = text.chars().take_while(|&c| is_word(c) || c == '+');
    letters.map(char::len_utf8).sum()
}

/// The canonical spelling of a sign that has several; `=*` comes from lttng-analyses' periods.
fn canonical(sign: &'static str) -> &'static str {
    match sign {
        "~" | "=*" => "=~",
        sign => sign,
    }
}

/// Parses a quoted string; returns its text, and its length in bytes with the quotes.
fn string(rest: &str, quote: char) -> Result<(String, usize), &'static str> {
    let mut string = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            _ if character == quote => return Ok((string, at + character.len_utf8())),
            '\\' => match characters.next() {
                Some((_, 'n')) => string.push('\n'),
                Some((_, 't')) => string.push('\t'),
                Some((_, escaped)) if escaped == quote => string.push(escaped),
                // Other escapes stay: patterns have escapes of their own.
                Some((_, escaped)) => {
                    string.push('\\');
                    string.push(escaped);
                }
                None => break,
            },
            character => string.push(character),
        }
    }
    Err("unterminated string")
}
