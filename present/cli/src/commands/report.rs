//! Common parts of the commands that print reports: opening traces, selection, running, output.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::Analysis;
use tracebraid_follow::{
    CpuSet, KernelAnalysis, KernelReport, ROWS, Selection, ThreadFilter, Views, Window,
};
use tracebraid_profile::{Met, Quality};
use tracebraid_tables::{Report, Section, View};

use crate::commands::histograms::Histograms;
use crate::commands::stacks::Wanted;
use crate::commands::tables;
use crate::commands::views::ViewArgs;
use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::hints;
use crate::indexes;
use crate::numbers;
use crate::options::{self, InputArgs, SelectArgs, TimeArgs, TimeRange, ZoneArgs};
use crate::output::{Output, say};
use crate::terminal_text;
use crate::warnings::Warnings;

/// Options of all reports on kernel events.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    time: TimeArgs,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    pub(super) fold: FoldArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Maximum number of single events in a report; they are kept in memory.
const MOST: usize = 100_000;

/// Options for the output of a report.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Limit each table to N rows, 0 for all; default: 20 in text tables, all rows in logs and in
    /// other formats
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print only these tables; `list` prints the names. A single table is an array in JSON
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    table: Vec<String>,
    /// Write each table to a file of its own, DIR/NAME.csv or DIR/NAME.json
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) zone: ZoneArgs,
    /// Print the progress on standard output, as LAMI requires
    #[arg(long, hide = true)]
    output_progress: bool,
}

/// Output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Text tables
    #[default]
    Table,
    /// JSON; times and durations in nanoseconds
    Json,
    /// Comma-separated values; times and durations in nanoseconds
    Csv,
    /// LAMI 1.0, for Trace Compass
    Lami,
}

impl ShowArgs {
    /// Maximum number of rows of a table.
    fn rows(&self) -> usize {
        self.rows_or(match self.format {
            Format::Table => ROWS,
            _ => usize::MAX,
        })
    }

    /// Maximum number of rows of a table; `usual` without `--top`.
    fn rows_or(&self, usual: usize) -> usize {
        match self.top {
            None => usual,
            Some(0) => usize::MAX,
            Some(rows) => rows,
        }
    }

    /// Prints the progress if `--output-progress` is given. Trace Compass reads such lines up to
    /// the results.
    pub(super) fn say_progress(&self) -> Result<(), Failure> {
        if self.output_progress && !indexes::has_restarted() {
            Output::print("0 reading\n")?;
        }
        Ok(())
    }

    /// Maximum number of rows of a table of largest values.
    pub(super) fn longest(&self) -> usize {
        match self.top {
            None => ROWS,
            Some(0) => MOST,
            Some(rows) => rows,
        }
    }
}

/// Forms in which a report is printed. JSON is the report serialized.
pub(crate) trait Show {
    /// Text above the tables.
    fn summary(&self) -> String;

    /// Text tables with times in `zone`; tables that may be long have at most `rows` rows.
    fn tables(&self, rows: usize, zone: &TimeZone) -> Vec<String>;

    /// Comma-separated values, with at most `rows` rows for each table.
    fn csv(&self, rows: usize) -> String;

    /// The report as a list of tables.
    fn sections(&mut self) -> &mut Report;
}

impl ReportArgs {
    /// Runs an analysis of the selected part of the traces.
    ///
    /// # Errors
    /// When the user interrupts it.
    pub(super) fn fold<A: KernelAnalysis>(
        &self,
        subject: &mut Subject,
        selection: Selection,
        options: A::Options,
    ) -> Result<A::Report, Failure> {
        let analysis = A::with(&subject.set, selection, options);
        subject.lack = analysis.lacks();
        if let Some(lack) = subject.lack {
            subject.warnings.note(lack);
        }
        let until = analysis.input().until();
        fold::run(
            &subject.set,
            &analysis,
            &self.fold,
            until,
            &mut subject.warnings,
        )
    }

    /// Runs an analysis that combines several.
    ///
    /// # Errors
    /// When the user interrupts it.
    pub(super) fn fold_all<A: Analysis>(
        &self,
        subject: &mut Subject,
        analysis: &A,
        selection: &Selection,
    ) -> Result<A::Report, Failure> {
        let until = selection.window.to;
        fold::run(
            &subject.set,
            analysis,
            &self.fold,
            until,
            &mut subject.warnings,
        )
    }

    /// The traces, as given.
    pub(super) fn input(&self) -> &InputArgs {
        &self.input
    }

    /// Maximum number of rows of each list; `usual` without `--top`.
    pub(super) fn rows_or(&self, usual: usize) -> usize {
        self.show.rows_or(usual)
    }

    /// Completeness of the selected call stacks. Reads only traces with call stacks.
    ///
    /// # Errors
    /// When the user interrupts it.
    pub(super) fn stack_quality(&self, subject: &Subject) -> Result<Quality, Failure> {
        let wanted = Wanted::new(&subject.set, &self.select);
        let range = subject.range.from..=subject.range.to;
        let wants = |met: &Met<'_>| range.contains(&met.time.0) && wanted.wants(met);
        let quality = fold::watched(&self.fold, |control| {
            Quality::new(&subject.set, (self.fold.options(None), control), &wants)
        });
        quality.map_err(Failure::from)
    }

    /// Opens the traces.
    ///
    /// # Errors
    /// When no trace can be read, or the time range is empty.
    pub(super) fn open(&self) -> Result<Subject, Failure> {
        self.show.say_progress()?;
        let mut subject = Subject::open(&self.input, &self.fold, &self.time, self.show.zone)?;
        subject.warnings.recorder(&subject.set, &self.select);
        Ok(subject)
    }

    /// Prints a report.
    ///
    /// # Errors
    /// When the report has no such table, or the output cannot be written.
    pub(super) fn show(
        &self,
        subject: Subject,
        report: impl KernelReport + Show,
    ) -> Result<ExitCode, Failure> {
        show(
            &self.show,
            self.input.strict,
            Some(&self.select),
            subject,
            report,
        )
    }

    /// Warns that a selection of threads has no effect, and why.
    pub(super) fn tell_threads_are_ignored(&self, why: &str) {
        if self.select.has_threads() {
            say!("warning: {why}: --tid, --pid and --procname have no effect here");
        }
    }

    /// The requested views, with their limits.
    pub(super) fn views(&self, views: &ViewArgs, histograms: Histograms) -> Views {
        let mut views = Views {
            views: views.views(),
            rows: self.show.longest(),
            limits: views.limits(),
            ..Views::default()
        };
        histograms.set(&mut views);
        views
    }

    /// Maximum number of rows of a table of largest values.
    pub(super) fn longest(&self) -> usize {
        self.show.longest()
    }

    /// The requested selection.
    pub(super) fn selection(&self, subject: &Subject) -> Selection {
        Selection {
            window: window(subject.range),
            cpus: cpus(&self.select),
            threads: threads(&self.select, &subject.set),
            ..Selection::default()
        }
    }
}

/// Prints a report on a selection.
///
/// # Errors
/// When the report has no such table, or the output cannot be written.
pub(super) fn show(
    args: &ShowArgs,
    strict: bool,
    select: Option<&SelectArgs>,
    mut subject: Subject,
    mut report: impl KernelReport + Show,
) -> Result<ExitCode, Failure> {
    let around = (subject.range, &subject.zone);
    let is_outside = hints::told_outside(&subject.set, around, &mut subject.warnings);
    if let Some(select) = select.filter(|_| !is_outside) {
        subject.tell_selected(select, &report);
        if select.has_threads() {
            let sections = report.sections().sections.iter_mut();
            sections.for_each(Section::tell_all_threads);
        }
    }
    if args.table == ["list"] {
        return subject.finish(&tables::names(report.sections()), strict);
    }
    tables::select(report.sections(), &args.table)?;
    // Text tables would contain only zeros, although the values are unknown.
    let is_unknown = is_outside || subject.lack.is_some() && report.is_empty();
    if is_unknown && args.format == Format::Table && args.output.is_none() {
        let missing = report.head().note().filter(|_| !is_outside);
        let missing = missing.map(|missing| terminal_text::paragraph(&missing));
        return subject.finish(&missing.unwrap_or_default(), strict);
    }
    print(args, strict, subject, report)
}

/// Prints a report, or writes its tables to files.
fn print(
    args: &ShowArgs,
    strict: bool,
    mut subject: Subject,
    mut report: impl KernelReport + Show,
) -> Result<ExitCode, Failure> {
    let rows = args.rows();
    if args.top.is_none() {
        let sections = report.sections().sections.iter_mut();
        let logs = sections.filter(|section| section.view == View::Log);
        // Logs are searched, so all rows are printed.
        logs.for_each(|section| section.is_long = false);
    }
    // Text tables begin with this note; other formats are read by programs and must not contain it.
    let missing = report.head().note();
    if let Some(missing) = missing.as_ref().filter(|_| args.format != Format::Table) {
        subject.warnings.note(missing);
    }
    if let Some(directory) = &args.output {
        report.truncate(rows);
        tables::write(directory, args.format, report.sections())?;
        tables::write_summary(directory, args.format, report.sections())?;
        return Ok(subject.lost(strict));
    }
    let text = match args.format {
        Format::Json => {
            report.truncate(rows);
            return match (args.table.len(), report.sections().sections.as_slice()) {
                (1, [table]) => subject.finish_json(table, strict),
                _ => subject.finish_json(&report, strict),
            };
        }
        Format::Table => {
            let tables = report.tables(rows, &subject.zone);
            let missing = missing.map(|missing| terminal_text::paragraph(&missing));
            let parts = missing.into_iter().chain([report.summary()]).chain(tables);
            parts.collect::<Vec<_>>().join("\n")
        }
        Format::Csv => {
            tables::note_several(report.sections());
            report.csv(rows)
        }
        Format::Lami => {
            report.truncate(rows);
            crate::lami::results(report.sections())
        }
    };
    subject.finish(&text, strict)
}

/// The traces of a report, and its time range.
pub(super) struct Subject {
    pub(super) set: TraceSet,
    pub(super) range: TimeRange,
    pub(super) zone: TimeZone,
    pub(super) warnings: Warnings,
    /// Events without which the report is empty, if the traces lack them.
    pub(super) lack: Option<&'static str>,
}

impl Subject {
    /// Opens the traces.
    ///
    /// # Errors
    /// When no trace can be read, or the time range is empty.
    pub(super) fn open(
        input: &InputArgs,
        fold: &FoldArgs,
        time: &TimeArgs,
        zone: ZoneArgs,
    ) -> Result<Subject, Failure> {
        let set = options::open(input, fold)?;
        let mut warnings = Warnings::default();
        warnings.opening(&set);
        warnings.nothing_yet(&set);
        let zone = zone.zone();
        Ok(Subject {
            range: time.range(&set, &zone, 0)?,
            set,
            zone,
            warnings,
            lack: None,
        })
    }

    /// Warns why the report is empty, if the options are the reason; otherwise returns false.
    pub(super) fn nothing_selected(&mut self, select: &SelectArgs) -> bool {
        hints::nothing_selected(
            &self.set,
            select,
            self.range,
            0,
            &self.zone,
            &mut self.warnings,
        )
    }

    /// Warns of options that match nothing.
    fn tell_selected(&mut self, select: &SelectArgs, report: &impl KernelReport) {
        match report.is_empty() {
            true => {
                self.nothing_selected(select);
            }
            false => self.some_not_selected(select, report),
        }
    }

    /// Warns of options that match nothing although the report is not empty.
    fn some_not_selected(&mut self, select: &SelectArgs, report: &impl KernelReport) {
        let lacks_threads = report.lacks_threads(&threads(select, &self.set));
        hints::some_not_selected(&self.set, select, lacks_threads, &mut self.warnings);
    }

    /// Prints the report, and warns of losses of the tracer.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(super) fn finish(self, text: &str, strict: bool) -> Result<ExitCode, Failure> {
        Output::open(None)?.write(text.as_bytes())?;
        Ok(self.lost(strict))
    }

    /// As `finish`, with a report in JSON, which is written while it is serialized.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(super) fn finish_json(
        self,
        report: &impl Serialize,
        strict: bool,
    ) -> Result<ExitCode, Failure> {
        Output::open(None)?.write_json(report)?;
        Ok(self.lost(strict))
    }

    /// Warns of losses of the tracer.
    pub(super) fn lost(mut self, strict: bool) -> ExitCode {
        for loss in crate::loss::summary(&self.set) {
            self.warnings.note(&loss.to_string());
        }
        self.warnings.finish(strict)
    }
}

/// The range with an exclusive end.
pub(super) fn window(range: TimeRange) -> Window {
    Window {
        from: (range.from > i64::MIN).then_some(Timestamp(range.from)),
        to: range
            .to
            .checked_add(1)
            .filter(|&to| to < i64::MAX)
            .map(Timestamp),
    }
}

/// The selected threads.
fn threads(args: &SelectArgs, set: &TraceSet) -> ThreadFilter {
    ThreadFilter {
        tids: args.tid.clone(),
        pids: args.pid.clone(),
        names: options::globs(&args.procname),
        without: match args.no_recorder {
            true => options::recorders(set),
            false => Vec::new(),
        },
    }
}

/// The selected CPUs.
pub(super) fn cpus(args: &SelectArgs) -> CpuSet {
    let numbers = numbers::all(&args.cpu);
    let numbers = numbers
        .into_iter()
        .filter_map(|cpu| u32::try_from(cpu).ok());
    CpuSet((!args.cpu.is_empty()).then(|| numbers.collect()))
}
