//! `tracebraid man`: manual pages.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use roff::{Roff, roman};

use crate::cli::Cli;
use crate::failure::Failure;

/// Write manual pages into a directory
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid man ~/.local/share/man/man1
  man tracebraid-print")]
pub(crate) struct ManArgs {
    /// Directory; created if it does not exist
    directory: PathBuf,
}

pub(super) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let failed = |error| {
        Failure::output(format!(
            "{}: cannot be written: {error}",
            args.directory.display()
        ))
    };
    std::fs::create_dir_all(&args.directory).map_err(failed)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, &args.directory).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        write_pages(subcommand, directory)?;
    }
    let man = Man::new(command.clone());
    std::fs::write(directory.join(man.get_filename()), page(&man, command)?)
}

/// Renders a page. `Man::render` would put the examples into a section named EXTRA.
fn page(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|one| !one.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        let mut roff = Roff::new();
        sections(&mut roff, &text.to_string());
        roff.to_writer(&mut page)?;
    }
    Ok(page)
}

/// Sections for the text after the options. A paragraph that begins with `Examples:` or `Exit
/// codes:` starts a section of its own; others are notes.
fn sections(roff: &mut Roff, text: &str) {
    let mut current = None;
    for paragraph in text.split("\n\n") {
        let heading = match paragraph.split_once(':') {
            Some(("Examples", _)) => "EXAMPLES",
            Some(("Exit codes", _)) => "EXIT STATUS",
            _ if paragraph.starts_with(' ') => current.unwrap_or("NOTES"),
            _ => "NOTES",
        };
        if current != Some(heading) {
            roff.control("SH", [heading]);
            current = Some(heading);
        } else {
            roff.control("PP", []);
        }
        let body = match paragraph.split_once(':') {
            Some((_, body)) if heading != "NOTES" && !paragraph.starts_with(' ') => {
                body.trim_start_matches(' ')
            }
            _ => paragraph,
        };
        let is_literal = body.lines().any(|line| line.starts_with(' '));
        if is_literal {
            roff.control("nf", []);
        }
        for line in body.trim_matches('\n').lines() {
            roff.text([roman(if is_literal { line } else { line.trim() })]);
        }
        if is_literal {
            roff.control("fi", []);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_a_name_of_one_line_and_examples() {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        let mut commands = vec![command];
        while let Some(command) = commands.pop() {
            let page = page(&Man::new(command.clone()), &command).unwrap();
            let page = String::from_utf8(page).unwrap();
            let name = page.split(".SH NAME\n").nth(1).unwrap();
            let name = name.split(".SH").next().unwrap();
            // Requests of roff are no text.
            let lines = name.lines().filter(|line| !line.is_empty());
            let lines = lines.filter(|line| !line.starts_with('.'));
            assert_eq!(lines.count(), 1, "{name}");
            assert!(page.contains(".SH EXAMPLES\n"), "{page}");
            assert!(!page.contains(".SH EXTRA"), "{page}");
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn exit_codes_and_notes_are_sections() {
        let mut roff = Roff::new();
        let text = "Examples:\n  a\n\n  b\n\nA note.\n\nExit codes: 0 done;\n1 not.";
        sections(&mut roff, text);
        assert_eq!(
            roff.to_roff(),
            ".SH EXAMPLES\n.nf\n  a\n.fi\n.PP\n.nf\n  b\n.fi\n.SH NOTES\nA note.\n.SH \"EXIT STATUS\"\n\
             0 done;\n1 not.\n"
        );
    }
}
