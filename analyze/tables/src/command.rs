//! Words of commands that readers copy into a shell.

/// A word of a command line, in single quotes where a shell would change it.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:,@%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Nanoseconds, at least 0, as options for times accept them: seconds without zeros at the end.
pub fn seconds(nanoseconds: i64) -> String {
    const SECOND: i64 = 1_000_000_000;
    let digits = format!("{}.{:09}", nanoseconds / SECOND, nanoseconds % SECOND);
    format!("{}s", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_times_survive_a_shell() {
        assert_eq!(shell_word("/a/b-1.trace"), "/a/b-1.trace");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(seconds(1_500_000_000), "1.5s");
        assert_eq!(seconds(20), "0.00000002s");
        assert_eq!(seconds(3_000_000_000), "3s");
    }
}
