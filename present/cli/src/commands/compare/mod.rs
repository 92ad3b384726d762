//! `tracebraid compare`: differences between two groups of executions.

mod data;
mod gate;
mod show;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tracebraid_executions::database::{Database, Table};
use tracebraid_executions::{
    Apart, Difference, Group, compare, separations, times, typical_and_slow,
};

use tracebraid_executions::gate::{Decision, Gate, Outcome, Pair, decisions};
use tracebraid_follow::Head;

use crate::commands::data_tables::TablesArgs;
use crate::commands::executions::{open, rows, table};
use crate::failure::{Failure, REGRESSION, USAGE};
use crate::options::ReportFormat;
use crate::output::{Output, say, say_once, say_reason};
use crate::terminal_text;
use crate::units::{grouped, number_of};

/// Compare two groups of executions by context and metric
///
/// Without groups, the slowest 1 % (B) is compared with the middle half (A). A difference is
/// significant if p, the probability that random groups of the same sizes differ as much, is below
/// 1 %; p is corrected for the number of contexts, metrics or texts. Rows that are not significant
/// have a ~ before p. P(B > A) is the probability that an execution of B has a larger value than an
/// execution of A. Intervals are 95 %. The effect size is Hedges' g (the difference divided by
/// the pooled standard deviation); for texts (threads, hosts, labels, captured texts) it is
/// Cramér's V. Conditions are those of `executions list`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid compare requests.db
  tracebraid compare requests.db --a 'duration < 20ms' --b 'duration > 50ms'
  tracebraid compare requests.db --a 'label == v1.2' --b 'label == v1.3' \\
      --fail-if 'duration > 5%'

Exit codes:
  4  a gate of --fail-if fails
  2  no gate fails, but a group has fewer than two executions with the metric
  0  no gate fails; an excess that is not significant is reported as undecided")]
pub(crate) struct CompareArgs {
    /// The database, written by `tracebraid executions build`
    #[arg(value_name = "DB")]
    file: PathBuf,
    /// A second database; refused, with advice on comparing two traces
    #[arg(value_name = "DB2", hide = true)]
    second: Option<PathBuf>,
    /// Condition for the first group, the baseline; default: all executions outside B
    #[arg(long, value_name = "CONDITION")]
    a: Option<String>,
    /// Condition for the second group; default: all executions outside A
    #[arg(long, value_name = "CONDITION")]
    b: Option<String>,
    /// Kind of executions, where there are several
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Rank contexts by total time, not by own time
    #[arg(long)]
    whole: bool,
    /// Limit each table to N rows; 0 for all
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,
    /// Exit with code 4 if B significantly exceeds A by more than AMOUNT: a percentage of A's mean
    /// (5%) or a number, with the metric's unit if it has one (2ms, 64KiB). `ctx.FRAME > AMOUNT`
    /// tests the time in frames of a name, `context > AMOUNT` any calling context
    #[arg(long, value_name = "METRIC > AMOUNT", value_parser = Gate::parse)]
    fail_if: Vec<Gate>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    tables: TablesArgs,
}

/// A comparison with its results.
struct Compared<'t> {
    database: &'t Database,
    kind: &'t str,
    /// Conditions or descriptions of the groups.
    names: [String; 2],
    groups: [Group; 2],
    differences: Vec<Difference>,
    /// False if no execution has recorded times.
    has_times: bool,
    apart: Apart<'t>,
}

pub(super) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    if args.second.is_some() {
        return Err(Failure::usage(
            "compare reads one database: put both traces into it with `tracebraid executions \
             build --append --label NAME`, then compare --a 'label == NAME' with --b 'label == \
             OTHER'",
        ));
    }
    let database = open(&args.file)?;
    let (kind, table) = table(&database, args.kind.as_deref())?;
    let (names, groups) = groups(args, &database, &table)?;
    for (name, group) in names.iter().zip(&groups) {
        if group.is_empty() {
            return Err(Failure::usage(format!(
                "group `{name}` has no executions: there is nothing to compare{}",
                texts_of(name, &database, &table)
            )));
        }
        if group.len() < 2 {
            let count = number_of(group.len() as u64, "execution", "executions");
            say!("warning: group `{name}` has {count}: a significance test needs at least two");
        }
    }
    let both = groups.iter().flatten().count();
    let all: BTreeSet<_> = groups.iter().flatten().collect();
    if all.len() < both {
        let shared = number_of((both - all.len()) as u64, "execution is", "executions are");
        say!("warning: {shared} in both groups");
    }
    let of_groups = [0, 1].map(|at: usize| times(&table, &groups[at]));
    let differences = compare(&database.union.contexts, [&of_groups[0], &of_groups[1]]);
    let compared = Compared {
        kind: &kind.name,
        apart: separations(&database, &table, [&groups[0], &groups[1]]),
        database: &database,
        names,
        has_times: of_groups.iter().flatten().any(|times| !times.is_empty()),
        groups,
        differences,
    };
    let pair = Pair {
        database: &database,
        table: &table,
        groups: &compared.groups,
        differences: &compared.differences,
    };
    let decisions = decisions(&args.fail_if, pair).map_err(|error| {
        let (condition, message) = (error.condition, error.message);
        Failure::usage(format!("--fail-if {condition}: {message}"))
    })?;
    match args.format {
        format if args.tables.are_wanted(format) => {
            let tables = data::tables(args, &compared, &decisions);
            args.tables.print(format, &Head::default(), tables)?;
        }
        ReportFormat::Json => {
            Output::open(None)?.write_json(&show::json(args, &compared, &decisions))?;
        }
        _ => {
            Output::open(None)?.write(show::text(args, &compared).as_bytes())?;
        }
    }
    let failed = |of: &&Decision| of.outcome == Outcome::Failed;
    let (failed, other): (Vec<_>, Vec<_>) = decisions.iter().partition(failed);
    for decision in other.iter().chain(&failed) {
        let line = gate::line(decision, &compared);
        let line = terminal_text::message(&line);
        match decision.outcome {
            Outcome::Passed => say_once(&line),
            _ => say_reason(&line),
        }
    }
    Ok(ExitCode::from(match Outcome::of_all(&decisions) {
        Outcome::Failed => REGRESSION,
        Outcome::Undecidable => USAGE,
        Outcome::Passed | Outcome::Undecided => 0,
    }))
}

/// The existing texts of each column named in a condition; empty if no column is named.
fn texts_of(condition: &str, database: &Database, table: &Table) -> String {
    const MOST: usize = 8;
    let sources = || database.sources.iter();
    let labels: BTreeSet<&str> = sources().map(|of| of.label.as_str()).collect();
    let hosts: BTreeSet<&str> = sources().filter_map(|of| of.host.as_deref()).collect();
    let own = table.texts.iter().map(|of| {
        let texts = of.texts.iter().map(String::as_str).collect();
        (of.column.name.as_str(), texts)
    });
    let columns = [("label", labels), ("host", hosts)].into_iter().chain(own);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let named = columns.filter(|(column, _)| {
        let mut words = condition.split(|c| !is_word(c));
        words.any(|word| word == *column)
    });
    let lists = named.map(|(column, texts)| {
        let shown: Vec<&str> = texts.iter().copied().take(MOST).collect();
        let more = match texts.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(", and {} more", grouped(more as u64)),
        };
        format!("; {column} is one of: {}{more}", shown.join(", "))
    });
    lists.collect()
}

fn groups(
    args: &CompareArgs,
    database: &Database,
    table: &Table,
) -> Result<([String; 2], [Group; 2]), Failure> {
    let chosen =
        |option, condition: &Option<String>| rows(option, condition.as_deref(), database, table);
    let others = |group: &Group| {
        (0..table.len())
            .filter(|row| group.binary_search(row).is_err())
            .collect()
    };
    let named =
        |condition: &Option<String>| condition.clone().unwrap_or_else(|| "all others".to_owned());
    let groups = match (&args.a, &args.b) {
        (None, None) => {
            let groups = typical_and_slow(table).ok_or_else(|| {
                Failure::usage("the database has no durations: define the groups with --a and --b")
            })?;
            return Ok((
                [
                    "the middle half".to_owned(),
                    "the slowest 1 %, at least 5".to_owned(),
                ],
                groups,
            ));
        }
        (Some(_), Some(_)) => [chosen("--a", &args.a)?, chosen("--b", &args.b)?],
        (Some(_), None) => {
            let group = chosen("--a", &args.a)?;
            let others = others(&group);
            [group, others]
        }
        (None, Some(_)) => {
            let group = chosen("--b", &args.b)?;
            [others(&group), group]
        }
    };
    Ok(([named(&args.a), named(&args.b)], groups))
}
