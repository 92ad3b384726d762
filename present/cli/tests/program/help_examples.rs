//! Texts after the options of `tracebraid help COMMAND`: examples can be pasted, and lines break
//! where the terminal ends.

use crate::support::{run, succeeds, text, tracebraid};

/// Maximum width of the help, in columns.
const WIDTH: usize = 100;

/// All commands and subcommands.
fn commands() -> Vec<Vec<String>> {
    // The list of commands does not contain the hidden command.
    let mut commands = vec![Vec::new(), vec!["schema".to_owned()]];
    let mut at = 0;
    while let Some(command) = commands.get(at).cloned() {
        let help = help(&command);
        let listed = help
            .lines()
            .skip_while(|line| !line.starts_with("Usage:"))
            .take_while(|line| !line.starts_with("Options") && !line.starts_with("Arguments"))
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|&name| name != "help");
        commands.extend(listed.map(|name| [command.as_slice(), &[name.to_owned()]].concat()));
        at += 1;
    }
    for name in ["print", "executions build", "history query"] {
        assert!(commands.iter().any(|command| command.join(" ") == name));
    }
    commands
}

fn help(command: &[String]) -> String {
    let mut help = tracebraid();
    help.env("COLUMNS", WIDTH.to_string()).arg("help");
    succeeds(&help.args(command).output().expect("the binary runs"))
}

/// The lines after `Examples:`, of each command.
fn endings() -> Vec<(String, Vec<String>)> {
    let ending = |command: Vec<String>| {
        let help = help(&command);
        let name = command.join(" ");
        let (_, ending) = help.split_once("\nExamples:\n").expect(&name);
        (name, ending.lines().map(str::to_owned).collect())
    };
    commands().into_iter().map(ending).collect()
}

#[test]
fn examples_are_not_wrapped() {
    for (command, lines) in endings() {
        for line in &lines {
            let columns = line.chars().count();
            assert!(!line.starts_with(' ') || columns <= 80, "{command}: {line}");
        }
        for pair in lines.windows(2) {
            let is_rest =
                pair[0].starts_with(' ') && pair[1].starts_with(|letter: char| letter != ' ');
            assert!(!is_rest, "{command}: {pair:?}");
        }
    }
}

/// Sentences are wrapped only at the width of the terminal.
#[test]
fn paragraphs_have_no_line_breaks_of_their_own() {
    for (command, lines) in endings() {
        for pair in lines.windows(2).filter(|pair| !pair[0].starts_with(' ')) {
            let word = pair[1].split(' ').next().unwrap_or_default();
            let with_word = pair[0].chars().count() + 1 + word.chars().count();
            let is_wrapped = pair[0].is_empty() || word.is_empty() || with_word > WIDTH;
            assert!(is_wrapped, "{command}: {pair:?}");
        }
    }
}

/// `--help` follows the arguments, so that they are parsed but nothing runs.
#[test]
fn examples_are_command_lines() {
    let mut parsed = 0;
    for (command, lines) in endings() {
        for example in examples(&lines) {
            let parts = command_lines(&example);
            for part in parts.iter().filter(|part| part[0] == "tracebraid") {
                let mut arguments = part[1..].to_vec();
                let own = arguments.iter().position(|argument| argument == "--");
                arguments.insert(own.unwrap_or(arguments.len()), "--help".to_owned());
                let output = run(&arguments);
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{command}: {example}\n{said}");
                parsed += 1;
            }
        }
    }
    assert!(parsed > 150, "{parsed}");
    assert!(!run(&["cpu", "--nonesuch", "--help"]).status.success());
    assert!(!run(&["cpu", "--top", "x", "--help"]).status.success());
}

/// Examples without their indent; continuation lines have a deeper indent.
fn examples(lines: &[String]) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    let of_examples = lines
        .iter()
        .take_while(|line| line.is_empty() || line.starts_with(' '));
    for line in of_examples.filter(|line| !line.is_empty()) {
        match examples.last_mut() {
            Some(last) if line.starts_with("   ") => *last += &format!("\n{line}"),
            _ => examples.push(line.trim_start().to_owned()),
        }
    }
    examples.retain(|example| !example.starts_with('#'));
    examples
}

/// Splits an example into words as a shell does, and at operators outside of quotes.
fn command_lines(example: &str) -> Vec<Vec<String>> {
    let mut lines = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = example.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '\\') => assert_eq!(letters.next(), Some('\n'), "{example}"),
            (None, '\n') => panic!("not continued with a backslash: {example}"),
            (None, ' ' | '|' | '<' | '>' | '&' | ';') => {
                lines.last_mut().expect("a line").extend(word.take());
                if letter != ' ' {
                    lines.push(Vec::new());
                }
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    assert_eq!(quote, None, "{example}");
    lines.last_mut().expect("a line").extend(word);
    lines.retain(|line| !line.is_empty());
    lines
}

/// A backslash at the end of a line is also a backslash in the manual page.
#[test]
fn examples_of_manual_pages_are_continued() {
    let directory = tempfile::tempdir().unwrap();
    text(&["man".as_ref(), directory.path().as_os_str()]);
    let page = std::fs::read_to_string(directory.path().join("tracebraid-compare.1")).unwrap();
    let continued = "v1.3\\*(Aq \\\\\n      \\-\\-fail\\-if \\*(Aqduration > 5%\\*(Aq\n";
    assert!(page.contains(continued), "{page}");
}
