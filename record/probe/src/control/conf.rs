//! Changes of a session's `probe.conf` while processes read it, so that processes that start later
//! behave like those that run.
//!
//! The file is written aside and renamed, so that readers find either the old text or the new text.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::Lock;
use crate::config::{Config, MOST_BYTES, Rules, is_end_of_line, option};

/// Adds a rule to a session's options.
///
/// # Errors
/// If the file cannot be written, the result exceeds the bytes that processes read, the recording
/// is over, or the pattern cannot be written in `probe.conf`.
pub(super) fn switch(session: &Path, pattern: &str, on: bool) -> io::Result<()> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let pattern = pattern.trim_ascii();
    super::check_pattern(pattern).map_err(invalid)?;
    change(session, |old| {
        let mut config = Config::new();
        config.take(old.as_bytes());
        if config.ended {
            return Err(invalid("the recording is over".to_owned()));
        }
        let text = with_rule(old, pattern, on);
        if is_too_long(&text) {
            let why = "too many patterns for probe.conf: combine them with *";
            return Err(io::Error::new(io::ErrorKind::StorageFull, why));
        }
        Ok(text)
    })
}

/// Marks the recording as ended.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn end(session: &Path) -> io::Result<()> {
    // In front: the file may be longer than the part that processes read.
    change(session, |old| Ok(format!("ended = yes\n{old}")))
}

fn change(session: &Path, new: impl FnOnce(&str) -> io::Result<String>) -> io::Result<()> {
    let directory = File::open(session)?;
    // Excludes concurrent writers; not all file systems support locks on directories.
    let _lock = Lock::take(&directory).ok();
    let (path, part) = (session.join("probe.conf"), session.join(".probe.conf.part"));
    let old = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    fs::write(&part, new(&old)?)?;
    if let Ok(about) = fs::metadata(&path) {
        // Keeps owner and mode, so that programs of the owner can still read the file.
        use std::os::unix::fs::{MetadataExt, chown};
        fs::set_permissions(&part, about.permissions())?;
        let _ = chown(&part, Some(about.uid()), Some(about.gid()));
    }
    fs::rename(part, path)
}

/// Options with a rule appended, which replaces earlier rules with the same pattern.
fn with_rule(old: &str, pattern: &str, on: bool) -> String {
    let key_of = |line: &str| {
        let (key, value) = option(line.trim_end_matches(['\n', ';']).as_bytes())?;
        let is_rule = matches!(key, b"enable" | b"disable");
        is_rule.then_some((key == b"enable", value == pattern.as_bytes()))
    };
    let lines: Vec<&str> = old
        .split_inclusive(|letter| u8::try_from(letter).is_ok_and(|byte| is_end_of_line(&byte)))
        .collect();
    let is_same = |line: &&&str| key_of(line).is_some_and(|(_, is_same)| is_same);
    let enables = |line: &&str| key_of(line).is_some_and(|(enables, _)| enables);
    let kept: Vec<&str> = lines
        .iter()
        .filter(|line| !is_same(line))
        .copied()
        .collect();
    // Without `enable` options all classes are enabled. The default that this rule would change is
    // therefore written explicitly, ahead of all other rules.
    let base = match (lines.iter().any(enables), on || kept.iter().any(enables)) {
        (false, true) => "enable = *\n",
        (true, false) => "disable = *\n",
        _ => "",
    };
    let kept = kept.concat();
    let newline = if kept.is_empty() || kept.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let key = if on { "enable" } else { "disable" };
    format!("{base}{kept}{newline}{key} = {pattern}\n")
}

/// True if processes would not read the whole text.
fn is_too_long(text: &str) -> bool {
    let (mut config, mut rules) = (Config::new(), Rules::new());
    config.take(text.as_bytes());
    config.all_rules(&mut rules);
    text.len() > MOST_BYTES || config.rules.overflowed() || rules.overflowed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decisions of a process with these options on some classes.
    fn decisions(text: &str) -> [bool; 4] {
        let (mut config, mut rules) = (Config::new(), Rules::new());
        config.take(text.as_bytes());
        config.all_rules(&mut rules);
        let names: [&[u8]; 4] = [
            b"app:x",
            b"app:y",
            b"other:x",
            b"lttng_ust_cyg_profile:func_entry",
        ];
        names.map(|name| crate::control::file::decide(rules.bytes(), name))
    }

    #[test]
    fn a_rule_changes_what_it_matches_and_nothing_else() {
        let texts = [
            "",
            "mode = ring\n",
            "disable = app:*\n",
            "disable = app:*; packets = 3",
            "enable = app:*\n",
            "enable = app:x # comment\ndisable = *:y\n",
            "enable = lttng_ust_cyg_profile:*\nenable = app:*\n",
            "# a; enable = app:y\nclock = monotonic\n",
        ];
        for text in texts {
            for (pattern, changes) in [
                ("app:*", [true, true, false, false]),
                ("app:x", [true, false, false, false]),
                ("lttng_ust_cyg_profile:*", [false, false, false, true]),
                ("none:*", [false; 4]),
            ] {
                for on in [true, false] {
                    let new = with_rule(text, pattern, on);
                    let mut expected = decisions(text);
                    for (decision, _) in expected
                        .iter_mut()
                        .zip(changes)
                        .filter(|(_, changes)| *changes)
                    {
                        *decision = on;
                    }
                    assert_eq!(
                        decisions(&new),
                        expected,
                        "{text:?} and {on} {pattern}: {new:?}"
                    );
                    // Repeating or reverting a rule does not lengthen the file.
                    let again = with_rule(&with_rule(&new, pattern, !on), pattern, on);
                    assert_eq!(decisions(&again), expected, "{again:?}");
                    let third = with_rule(&with_rule(&again, pattern, !on), pattern, on);
                    assert!(
                        third.len() <= again.len() + "enable = *\n".len(),
                        "{third:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn other_options_stay() {
        let text = with_rule("mode = ring\nenable=a:*;limit = 3M\n", "a:*", false);
        assert_eq!(
            text,
            "disable = *\nmode = ring\nlimit = 3M\ndisable = a:*\n"
        );
        let mut config = Config::new();
        config.take(text.as_bytes());
        assert_eq!(config.limit, 3 << 20);
    }
}
