//! Other delimiters of a kind: recordings may be added whose executions of the same name are
//! delimited differently.
//!
//! The other delimiters follow the definition as comments, so that a parser of definitions still
//! reads the first one.

/// Prefixes of the first and of each further line of other delimiters.
const MARK: &str = "# Otherwise, of ";
const LINE: &str = "#   ";

/// Text that is appended to the definition of a kind.
pub(super) fn comment(label: &str, definition: &str) -> String {
    let label = label.replace(['\n', '\r'], " ");
    let lines = definition.lines().filter(|line| !line.trim().is_empty());
    let lines: String = lines.map(|line| format!("{LINE}{line}\n")).collect();
    format!("\n{MARK}{label}:\n{lines}")
}

/// Splits a stored definition into the first definition and the others with their labels.
pub(super) fn apart(text: &str) -> (String, Vec<(String, String)>) {
    let mut definition = String::new();
    let mut others: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let label = line.trim_end().strip_prefix(MARK);
        let label = label.and_then(|rest| rest.strip_suffix(':'));
        match (label, others.last_mut(), line.strip_prefix(LINE)) {
            (Some(label), _, _) => others.push((label.to_owned(), String::new())),
            (None, Some((_, other)), Some(line)) => other.push_str(line),
            (None, None, _) => definition.push_str(line),
            // An empty line between definitions.
            (None, Some(_), None) => {}
        }
    }
    if !others.is_empty() {
        definition.truncate(definition.trim_end_matches('\n').len());
    }
    (definition, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_definitions_are_taken_apart_again() {
        let first = "# requests\nperiod p : $evt.a == 1\n : $evt.b == 1";
        assert_eq!(apart(first), (first.to_owned(), vec![]));
        let second = "period p : $evt.a == 1\n\n : $evt.c == 1\ncall fsync\n";
        let both = format!("{first}{}", comment("v1\n2", second));
        let all = format!("{both}{}", comment("v3:", "call read"));
        let (definition, others) = apart(&all);
        assert_eq!(definition, first);
        let expected = [
            ("v1 2", second.replace("\n\n", "\n")),
            ("v3:", "call read\n".to_owned()),
        ];
        assert_eq!(
            others,
            expected.map(|(label, text)| (label.to_owned(), text))
        );
        // A parser of definitions reads the first definition only.
        let read = |text: &str| {
            let mut definitions = tracebraid_language::executions::Definitions::default();
            definitions.file(text).unwrap();
            definitions
        };
        assert_eq!(read(&all), read(first));
    }
}
