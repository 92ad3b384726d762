//! Options of all commands: quiet mode and colors.

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::Args;

/// Options of every command.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Settings {
    /// Print no warnings and no progress; errors are still printed
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Width of text tables in columns; default: that of the terminal
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(40..))]
    width: Option<u16>,
    /// When to use colors
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: ColourChoice,
}

/// When to use colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    Never,
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

impl Settings {
    /// Makes the options effective for the whole program.
    pub(crate) fn apply(self) {
        let _ = SETTINGS.set(self);
    }
}

pub(crate) fn width() -> Option<usize> {
    SETTINGS.get()?.width.map(usize::from)
}

/// Whether `--quiet` is given.
pub(crate) fn is_quiet() -> bool {
    SETTINGS.get().is_some_and(|settings| settings.quiet)
}

/// Whether output to a terminal, or to another target, gets colors.
pub(crate) fn has_colours(is_terminal: bool) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match SETTINGS.get().copied().unwrap_or_default().color {
        ColourChoice::Never => false,
        ColourChoice::Always => true,
        ColourChoice::Auto => {
            let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
            is_terminal && !is_dumb && !is_set("NO_COLOR")
        }
    }
}

/// Whether tables on standard output get colors.
pub(crate) fn has_coloured_tables() -> bool {
    has_colours(std::io::stdout().is_terminal())
}

/// Whether messages on standard error get colors.
pub(crate) fn has_coloured_messages() -> bool {
    has_colours(std::io::stderr().is_terminal())
}
