//! Patterns for names of event classes: `*` matches any text, `?` any one byte.

/// True if the whole name matches. Takes time proportional to the product of the lengths.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Backtracking position if the text after the last star does not match.
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = name.get(from) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, from));
                at += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == byte => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((behind, tried)) = star else {
                    return false;
                };
                star = Some((behind, tried + 1));
                at = behind;
                from = tried + 1;
            }
        }
    }
    pattern
        .get(at..)
        .unwrap_or_default()
        .iter()
        .all(|&byte| byte == b'*')
}

/// The decision of rules on a name: lines of `+PATTERN` and `-PATTERN`, of which the last match
/// decides. `None` without a match.
pub(crate) fn decide(rules: &[u8], name: &[u8]) -> Option<bool> {
    decide_by(rules, name, |_| true)
}

/// Like [`decide`], but only with rules whose pattern starts with literal text: for classes that a
/// mere `*` must not enable.
pub(crate) fn decide_named(rules: &[u8], name: &[u8]) -> Option<bool> {
    decide_by(rules, name, |pattern| {
        !pattern.starts_with(b"*") && !pattern.starts_with(b"?")
    })
}

fn decide_by(rules: &[u8], name: &[u8], counts: impl Fn(&[u8]) -> bool) -> Option<bool> {
    let mut decision = None;
    for line in rules.split(|&byte| byte == b'\n') {
        let (on, pattern) = match line.split_first() {
            Some((b'+', pattern)) => (true, pattern),
            Some((b'-', pattern)) => (false, pattern),
            _ => continue,
        };
        if counts(pattern) && matches(pattern, name) {
            decision = Some(on);
        }
    }
    decision
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("*", "", true),
            ("*", "a:b", true),
            ("a:*", "a:b", true),
            ("a:*", "b:a", false),
            ("*:b", "a:c:b", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "aba", false),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn the_last_rule_decides() {
        let rules = b"+*\n-app:*\n+app:keep\n";
        assert_eq!(decide(rules, b"other:x"), Some(true));
        assert_eq!(decide(rules, b"app:x"), Some(false));
        assert_eq!(decide(rules, b"app:keep"), Some(true));
        assert_eq!(decide(b"", b"app:x"), None);
        assert_eq!(decide_named(rules, b"other:x"), None);
        assert_eq!(decide_named(rules, b"app:keep"), Some(true));
    }
}
