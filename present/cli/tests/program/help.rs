//! Help, version, completions and manual pages.

use crate::support::text;

#[test]
fn help_of_info_and_print() {
    insta::assert_snapshot!("help-info", text(&["info", "--help"]));
    insta::assert_snapshot!("help-print", text(&["print", "--help"]));
}

#[test]
fn every_command_has_examples() {
    let all = text(&["--help"]);
    let commands: Vec<&str> = all
        .lines()
        .take_while(|line| !line.starts_with("Options"))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|&name| name != "help")
        .collect();
    assert!(
        commands.contains(&"print") && commands.contains(&"info"),
        "{commands:?}"
    );
    for command in commands {
        assert!(
            text(&[command, "--help"]).contains("Examples:\n  tracebraid "),
            "{command}"
        );
    }
}

#[test]
fn version() {
    assert_eq!(
        text(&["--version"]),
        format!("tracebraid {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions() {
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef tracebraid"),
        ("fish", "complete -c tracebraid"),
    ] {
        let script = text(&["completions", shell]);
        assert!(
            script.contains(word) && script.contains("clock-gmt"),
            "{shell}"
        );
    }
}

#[test]
fn manual_pages() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("man1");
    text(&["man".as_ref(), target.as_os_str()]);
    for (page, word) in [
        ("tracebraid.1", "tracebraid\\-print"),
        ("tracebraid-print.1", "\\-\\-gmt"),
    ] {
        let page = std::fs::read_to_string(target.join(page)).unwrap();
        assert!(page.contains(word), "{word}");
    }
}
