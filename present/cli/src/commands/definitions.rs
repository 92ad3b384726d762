//! Definitions of periods on the command line.

use std::path::PathBuf;

use clap::Args;
use tracebraid_filter::parse::FilterError;
use tracebraid_filter::periods::Periods;

use crate::failure::Failure;

/// Definitions.
#[derive(Args, Debug)]
pub(super) struct DefinitionArgs {
    /// A period: NAME : BEGIN : END, or NAME(PARENT) : BEGIN : END for one within another; without an
    /// END the next BEGIN ends it
    #[arg(long, value_name = "DEFINITION")]
    pub(super) period: Vec<String>,
    /// Values to keep: NAME : A = FIELD, B = FIELD : C = FIELD, of its begin and of its end
    #[arg(long, visible_aliases = ["period-captures", "period-capture"], value_name = "DEFINITION")]
    pub(super) captures: Vec<String>,
    /// A file with definitions: lines `period NAME : ...` and `captures NAME : ...`
    #[arg(long, value_name = "FILE")]
    pub(super) file: Vec<PathBuf>,
}

impl DefinitionArgs {
    /// The definitions of files, then those of options.
    ///
    /// # Errors
    /// When one cannot be understood, or there is none.
    pub(super) fn periods(&self) -> Result<Periods, Failure> {
        let periods = self.any_periods()?;
        if periods.list.is_empty() {
            return Err(Failure::usage(
                "no period is defined: give --period 'NAME : BEGIN : END' or --file (see --help)",
            ));
        }
        Ok(periods)
    }

    /// All of them as text.
    pub(super) fn texts(&self) -> String {
        let files = self
            .file
            .iter()
            .filter_map(|path| std::fs::read_to_string(path).ok());
        let periods = self.period.iter().map(|text| format!("period {text}"));
        let captures = self.captures.iter().map(|text| format!("captures {text}"));
        files
            .chain(periods)
            .chain(captures)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The definitions; there may be none.
    ///
    /// # Errors
    /// When one cannot be understood.
    fn any_periods(&self) -> Result<Periods, Failure> {
        let mut periods = Periods::default();
        for path in &self.file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            periods
                .file(&text)
                .map_err(|error| wrong(&path.display().to_string(), &error))?;
        }
        for text in &self.period {
            periods.period(text).map_err(|error| wrong("--period", &error))?;
        }
        for text in &self.captures {
            periods
                .captures(text)
                .map_err(|error| wrong("--captures", &error))?;
        }
        Ok(periods)
    }
}

fn wrong(what: &str, error: &FilterError) -> Failure {
    let (line, column) = error.place();
    Failure::usage(format!("{what}: line {line}, column {column}: {error}"))
}
