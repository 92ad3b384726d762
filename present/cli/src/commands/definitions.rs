//! Options that define periods and executions.

use std::path::PathBuf;

use clap::Args;
use tracebraid_language::OldForms;
use tracebraid_language::executions::Definitions;
use tracebraid_language::parse::FilterError;
use tracebraid_language::periods::Periods;

use crate::failure::Failure;
use crate::output::say;

/// Options that define periods.
#[derive(Args, Debug)]
pub(super) struct DefinitionArgs {
    /// Define a period: NAME : BEGIN : END, or NAME(PARENT) : BEGIN : END for one within another;
    /// without END, the next BEGIN ends it
    #[arg(long, value_name = "DEFINITION")]
    pub(super) period: Vec<String>,
    /// Capture values of a period, A and B at its begin and C at its end:
    /// NAME : A = FIELD, B = FIELD : C = FIELD
    #[arg(long, visible_aliases = ["period-captures", "period-capture"], value_name = "DEFINITION")]
    pub(super) captures: Vec<String>,
    /// Read definitions from FILE: lines `period NAME : ...` and `captures NAME : ...`
    #[arg(long, value_name = "FILE")]
    pub(super) file: Vec<PathBuf>,
}

impl DefinitionArgs {
    /// Definitions from files, then those from options.
    ///
    /// # Errors
    /// When a definition is wrong, or no period is defined.
    pub(super) fn periods(&self) -> Result<Periods, Failure> {
        let periods = self.any_periods()?;
        if periods.list.is_empty() {
            return Err(Failure::usage(
                "no period is defined: give --period 'NAME : BEGIN : END' or --file (see --help)",
            ));
        }
        Ok(periods)
    }

    /// Definitions from files, then those from options; possibly none.
    ///
    /// # Errors
    /// When a definition is wrong.
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
            periods
                .period(text)
                .map_err(|error| wrong("--period", &error))?;
        }
        for text in &self.captures {
            periods
                .captures(text)
                .map_err(|error| wrong("--captures", &error))?;
        }
        note(&periods.old_forms);
        Ok(periods)
    }
}

/// Options that define executions of all kinds.
#[derive(Args, Debug)]
pub(super) struct ExecutionArgs {
    #[command(flatten)]
    periods: DefinitionArgs,
    /// Take system calls as executions: PATTERN, or NAME : PATTERN, such as 'open*' or 'io :
    /// *sync*'
    #[arg(long, value_name = "DEFINITION")]
    call: Vec<String>,
    /// Take calls of instrumented functions as executions: PATTERN, or NAME : PATTERN
    #[arg(long, value_name = "DEFINITION")]
    function: Vec<String>,
    /// Take spans as executions: PATTERN, or NAME : PATTERN
    #[arg(long, value_name = "DEFINITION")]
    span: Vec<String>,
    /// Take processes as executions: PATTERN, or NAME : PATTERN, of program names
    #[arg(long, value_name = "DEFINITION")]
    process: Vec<String>,
    /// Take GPU kernels as executions, from the call that enqueues a kernel to its completion:
    /// PATTERN, or NAME : PATTERN
    #[arg(long, value_name = "DEFINITION")]
    kernel: Vec<String>,
    /// Take iterations of GPU programs as executions, from a call that enqueues a kernel to the next
    /// such call of the thread: PATTERN, or NAME : PATTERN, of kernel names
    #[arg(long, value_name = "DEFINITION")]
    frame: Vec<String>,
    /// Attach a value that the program records: NAME[(EXECUTIONS)] = EVENTS . FIELD
    /// [sum|last|max|count]
    #[arg(long, value_name = "DEFINITION")]
    value: Vec<String>,
}

impl ExecutionArgs {
    /// Definitions from files, then those from options, and the text of all definitions. Each file
    /// is read once, because it may be a pipe.
    ///
    /// # Errors
    /// When a definition is wrong, or none delimits executions.
    pub(super) fn definitions(&self) -> Result<(Definitions, String), Failure> {
        let mut definitions = Definitions::default();
        let mut texts = Vec::new();
        for path in self.files() {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
            definitions
                .file(&text)
                .map_err(|error| wrong(&path.display().to_string(), &error))?;
            texts.push(text);
        }
        for (keyword, text) in self.options() {
            let definition = format!("{keyword} {text}");
            let added = definitions.add(&definition);
            added
                .map_err(|error| wrong(&format!("--{keyword}"), &without(keyword, text, &error)))?;
            texts.push(definition);
        }
        note(&definitions.periods.old_forms);
        if definitions.list.is_empty() {
            return Err(Failure::usage(
                "no executions are defined: give --period 'NAME : BEGIN : END', --call, --function, --span, --process, \
                 --kernel, --frame or --file (see --help)",
            ));
        }
        Ok((definitions, texts.join("\n")))
    }

    pub(super) fn files(&self) -> &[PathBuf] {
        &self.periods.file
    }

    /// Definitions from options, each with the keyword that begins it in a file.
    fn options(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("period", &self.periods.period),
            ("captures", &self.periods.captures),
            ("call", &self.call),
            ("function", &self.function),
            ("span", &self.span),
            ("process", &self.process),
            ("kernel", &self.kernel),
            ("frame", &self.frame),
            ("value", &self.value),
        ];
        all.into_iter()
            .flat_map(|(keyword, texts)| texts.iter().map(move |text| (keyword, text.as_str())))
    }
}

/// Reports the current form of obsolete definitions.
fn note(forms: &OldForms) {
    if let Some(note) = forms.note() {
        say!("note: {note}");
    }
}

/// An error in a definition that begins with a keyword in a file, adapted to an option without it.
fn without(keyword: &str, text: &str, error: &FilterError) -> FilterError {
    FilterError {
        text: text.to_owned(),
        offset: error.offset.saturating_sub(keyword.len() + 1),
        message: error.message.clone(),
    }
}

fn wrong(what: &str, error: &FilterError) -> Failure {
    let (line, column) = error.place();
    Failure::usage(format!("{what}: line {line}, column {column}: {error}"))
}
