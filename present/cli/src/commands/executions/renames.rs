//! Functions that are treated as others: `--rename` and `--rename-file`.

use std::collections::HashMap;
use std::path::PathBuf;

use tracebraid_executions::database::Database;

use crate::failure::Failure;

/// A rename with its origin.
#[derive(Clone, Debug)]
pub(super) struct Renamed {
    pub(super) old: String,
    pub(super) new: String,
    place: String,
}

impl Renamed {
    fn says(&self) -> String {
        format!("{} ({}={})", self.place, self.old, self.new)
    }
}

/// Parses `OLD=NEW`, or `OLD = NEW` with names that may contain `=`: `operator== = equals`.
pub(super) fn one(text: &str) -> Result<Renamed, String> {
    let signs: Vec<usize> = text.match_indices('=').map(|(at, _)| at).collect();
    let is_blank = |at: Option<usize>| at.and_then(|at| text.get(at..=at)) == Some(" ");
    let is_apart = |at: &usize| is_blank(at.checked_sub(1)) && is_blank(at.checked_add(1));
    let apart: Vec<usize> = signs.iter().copied().filter(is_apart).collect();
    let sign = match (apart.as_slice(), signs.as_slice()) {
        ([sign], _) | (_, [sign]) => Some(*sign),
        (_, []) => None,
        _ => {
            return Err(format!(
                "`{text}` contains several `=`: put blanks around the one between the names, \
                 and none around the others, as in 'operator== = equals'"
            ));
        }
    };
    let pair = sign.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)));
    let pair = pair.map(|(old, new)| (old.trim().to_owned(), new.trim().to_owned()));
    let pair = pair.filter(|(old, new)| !old.is_empty() && !new.is_empty());
    let (old, new) = pair.ok_or_else(|| format!("`{text}`: expected OLD=NEW"))?;
    let place = "--rename".to_owned();
    Ok(Renamed { old, new, place })
}

/// Renames from options, then those from files with one rename per line.
///
/// # Errors
/// When a rename is wrong, or a file cannot be read.
pub(super) fn all(options: &[Renamed], files: &[PathBuf]) -> Result<Vec<Renamed>, Failure> {
    let mut renames = options.to_vec();
    for path in files {
        let wrong = |place: String, error: String| Failure::usage(format!("{place}: {error}"));
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| wrong(name.to_string(), error.to_string()))?;
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("{name}:{number}");
            let renamed = one(line).map_err(|error| wrong(place.clone(), error))?;
            renames.push(Renamed { place, ..renamed });
        }
    }
    Ok(renames)
}

/// Checks that the renames contradict neither each other nor those in the database: a function has
/// at most one new name, and renames form no circle.
///
/// # Errors
/// When two renames contradict each other; the message contains both.
pub(super) fn check(renames: &[Renamed], before: Option<&Database>) -> Result<(), Failure> {
    let there = before.iter().flat_map(|database| {
        let place = database.path().display().to_string();
        let rename = move |(old, new): &(String, String)| Renamed {
            old: old.clone(),
            new: new.clone(),
            place: place.clone(),
        };
        database.renames.iter().map(rename)
    });
    let all: Vec<Renamed> = there.chain(renames.iter().cloned()).collect();
    match contradiction(&all) {
        Some(message) => Err(Failure::usage(message)),
        None => Ok(()),
    }
}

/// Describes the first contradiction.
fn contradiction(renames: &[Renamed]) -> Option<String> {
    let mut known: HashMap<&str, &Renamed> = HashMap::new();
    for renamed in renames {
        let other = known.insert(&renamed.old, renamed);
        if let Some(other) = other.filter(|other| other.new != renamed.new) {
            let (other, own) = (other.says(), renamed.says());
            return Some(format!(
                "{own} contradicts {other}: a function can have only one new name"
            ));
        }
    }
    renames.iter().find_map(|renamed| {
        let next = |of: &&Renamed| known.get(of.new.as_str()).copied();
        // A walk that enters a circle without `renamed` would not end: it is cut after all renames.
        let mut way = std::iter::successors(Some(renamed), next).take(renames.len());
        let last = way.find(|of| of.new == renamed.old)?;
        let own = renamed.says();
        Some(match std::ptr::eq(last, renamed) {
            true => format!("{own} renames a function to itself"),
            false => format!(
                "{} contradicts {own}: renames must not form a circle",
                last.says()
            ),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(texts: &[&str]) -> Option<String> {
        let renames = texts.iter().zip(1..).map(|(text, line)| Renamed {
            place: format!("names:{line}"),
            ..one(text).unwrap()
        });
        contradiction(&renames.collect::<Vec<_>>())
    }

    #[test]
    fn names_may_have_signs_of_equality_in_them() {
        let pair = |text: &str| one(text).map(|of| (of.old, of.new));
        let is = |text: &str, old: &str, new: &str| {
            assert_eq!(pair(text), Ok((old.to_owned(), new.to_owned())), "{text}");
        };
        is("a=b", "a", "b");
        is(" a =b ", "a", "b");
        is("operator== = equals", "operator==", "equals");
        is("equals = operator==(A, B)", "equals", "operator==(A, B)");
        for text in [
            "operator===equals",
            "operator==",
            "a = b = c",
            "a=b=c",
            "operator = = assign",
        ] {
            let error = pair(text).unwrap_err();
            assert!(error.contains("put blanks around"), "{text}: {error}");
        }
        for text in ["a", "=b", "a=", " = "] {
            assert!(pair(text).unwrap_err().contains("OLD=NEW"), "{text}");
        }
    }

    #[test]
    fn contradictions_are_told_with_both() {
        let expected =
            "names:3 (a=c) contradicts names:1 (a=b): a function can have only one new name";
        assert_eq!(wrong(&["a=b", "x = y", "a=c"]).unwrap(), expected);
        let circle = wrong(&["a=b", "b=c", "c=a"]).unwrap();
        assert!(
            circle.starts_with("names:3 (c=a) contradicts names:1 (a=b)"),
            "{circle}"
        );
        assert!(
            wrong(&["a=b", "b=a"])
                .unwrap()
                .contains("names:2 (b=a) contradicts names:1")
        );
        assert!(wrong(&["a = a"]).unwrap().contains("to itself"));
        // Not contradictions: a repeated rename, several old names for a new one, and a chain of
        // names.
        assert_eq!(wrong(&["a=b", "a=b", "c=b", "b=d"]), None);
        // The circle itself is reported, and not a rename that leads into it.
        assert!(
            wrong(&["x=a", "a=b", "b=a"])
                .unwrap()
                .contains("names:3 (b=a) contradicts names:2")
        );
    }
}
