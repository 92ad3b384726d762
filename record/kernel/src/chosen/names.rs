//! Patterns of names, and suggestions for unknown names.

/// True if a name matches a pattern, in which `*` matches any text and `?` any character.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut part, mut at) = (0, 0);
    // Backtracking point after the last `*`: index in the pattern, and the bytes that the `*` has
    // taken.
    let mut again = None;
    loop {
        match (pattern.get(part), name.get(at)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                part += 1;
                again = Some((part, at));
                continue;
            }
            (Some(wanted), Some(found)) if *wanted == b'?' || wanted == found => {
                (part, at) = (part + 1, at + 1);
                continue;
            }
            _ => {}
        }
        match again {
            Some((next, taken)) if taken < name.len() => {
                (part, at) = (next, taken + 1);
                again = Some((next, taken + 1));
            }
            _ => return false,
        }
    }
}

/// True if a text is a pattern rather than a name.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Maximum number of names of a list in a message.
const MOST_SHOWN: usize = 5;

/// The first names of a list, and the number of the others.
pub(crate) fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(MOST_SHOWN).cloned().collect::<Vec<_>>();
    let shown = shown.join(", ");
    match names.len().checked_sub(MOST_SHOWN) {
        None | Some(0) => shown,
        Some(1) => format!("{shown} and 1 other"),
        Some(more) => format!("{shown} and {more} others"),
    }
}

/// Maximum number of suggestions in an error.
const MOST_NEAR: usize = 3;

/// `; did you mean 'a' or 'b'?`, or nothing if no name is similar.
pub(crate) fn did_you_mean<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    let most = (wanted.len() / 3).clamp(1, 4);
    let distance = |name: &'n str| {
        let distance = strsim::osa_distance(wanted, name);
        // A name that contains the other is similar, too.
        let is_longer = wanted.len() >= 4
            && (name.contains(wanted) || wanted.contains(name) && name.len() >= 4);
        (distance <= most)
            .then_some((distance, name))
            .or(is_longer.then_some((most + distance, name)))
    };
    let mut near: Vec<(usize, &str)> = names.filter_map(distance).collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(MOST_NEAR);
    let near: Vec<String> = near.iter().map(|(_, name)| format!("'{name}'")).collect();
    match near.is_empty() {
        true => String::new(),
        false => format!("; did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, is_match) in [
            ("*", "", true),
            ("sched_*", "sched_switch", true),
            ("*_entry", "irq_handler_entry", true),
            ("a*b*c", "aXbYbc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("abc", "abcd", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn long_lists_are_shortened() {
        let names = |count: usize| vec!["a".to_owned(); count];
        assert_eq!(some_of(&names(5)), "a, a, a, a, a");
        assert_eq!(some_of(&names(6)), "a, a, a, a, a and 1 other");
        assert_eq!(some_of(&names(8)), "a, a, a, a, a and 3 others");
    }

    #[test]
    fn near_names() {
        let names = || ["sched_switch", "sched_waking", "kmalloc", "mm_page_alloc"].into_iter();
        assert_eq!(
            did_you_mean("sched_swich", names()),
            "; did you mean 'sched_switch'?"
        );
        assert_eq!(
            did_you_mean("page_alloc", names()),
            "; did you mean 'mm_page_alloc'?"
        );
        assert_eq!(did_you_mean("xyz", names()), "");
    }
}
