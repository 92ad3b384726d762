//! Options of histograms: their buckets and groups.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args};
use tracebraid_follow::{Buckets, By, Groupings, Views};
use tracebraid_language::glob::Glob;
use tracebraid_language::near::nearest;

use crate::failure::Failure;

/// Buckets of histograms.
#[derive(Args, Debug)]
pub(crate) struct BucketArgs {
    // Without a default value, which would count as given where `--view` asks for it.
    /// Buckets of histograms (default log; linear excludes --by; implies --view freq unless --view
    /// is given)
    #[arg(long, value_enum, value_name = "KIND")]
    buckets: Option<BucketKind>,
}

/// Buckets of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BucketKind {
    /// Between powers of two
    Log,
    /// 20 of equal width between the least and the greatest value; reads the trace twice
    Linear,
}

impl BucketArgs {
    /// The requested buckets.
    pub(super) fn buckets(&self) -> Buckets {
        match self.buckets {
            None | Some(BucketKind::Log) => Buckets::Log,
            Some(BucketKind::Linear) => Buckets::Linear,
        }
    }
}

/// Groups of histograms. Each command passes `by` to [`known`].
#[derive(Args, Debug)]
pub(crate) struct GroupArgs {
    /// Print a histogram for each group
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = ByParser(ANY))]
    by: Vec<By>,
}

/// Any group.
const ANY: Groupings = Groupings {
    known: &By::ALL,
    usual: &[],
};

/// Buckets and groups of histograms.
#[derive(Args, Debug)]
pub(crate) struct HistogramArgs {
    #[command(flatten)]
    groups: GroupArgs,
    #[command(flatten)]
    buckets: BucketArgs,
}

/// Requested histograms.
#[derive(Debug, Default)]
pub(super) struct Histograms {
    by: Vec<By>,
    buckets: Buckets,
}

impl HistogramArgs {
    /// The requested histograms.
    ///
    /// # Errors
    /// If groups of linear buckets are requested: only the usual groups have a second pass.
    pub(super) fn histograms(&self) -> Result<Histograms, Failure> {
        let buckets = self.buckets.buckets();
        if buckets == Buckets::Linear && !self.groups.by.is_empty() {
            return Err(Failure::usage(
                "--by needs logarithmic buckets: leave out --buckets linear",
            ));
        }
        Ok(Histograms {
            buckets,
            ..self.groups.histograms()
        })
    }
}

impl GroupArgs {
    /// The requested histograms.
    pub(super) fn histograms(&self) -> Histograms {
        Histograms {
            by: self.by.clone(),
            ..Histograms::default()
        }
    }
}

impl Histograms {
    /// Sets them in the views of a report.
    pub(super) fn set(self, views: &mut Views) {
        views.by = self.by;
        views.buckets = self.buckets;
    }
}

/// `--by` of a report with these groupings.
pub(super) fn known(by: Arg, groupings: Groupings) -> Arg {
    let usual: Vec<&str> = groupings.usual.iter().map(|by| by.name()).collect();
    by.value_parser(ByParser(groupings)).help(format!(
        "Print histograms by these groups (default {}; implies --view freq unless --view is given)",
        usual.join(",")
    ))
}

/// Parses the groupings that a report knows. Unlike the parser of clap, its error lists them by
/// their distance to the unknown one.
#[derive(Clone, Copy, Debug)]
struct ByParser(Groupings);

impl TypedValueParser for ByParser {
    type Value = By;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<By, clap::Error> {
        let text = value.to_string_lossy();
        let mut known = self.0.known.iter().copied();
        let found = known.find(|by| by.name() == text);
        found.ok_or_else(|| self.unknown(command, arg, &text))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let known = self.0.known.iter();
        Some(Box::new(known.map(|by| PossibleValue::new(by.name()))))
    }
}

impl ByParser {
    fn unknown(&self, command: &clap::Command, arg: Option<&Arg>, text: &str) -> clap::Error {
        let names: Vec<&str> = self.0.known.iter().map(|by| by.name()).collect();
        let near = nearest(&Glob::literal(text), names.iter().copied());
        let others = names.iter().filter(|name| !near.contains(name));
        let names = near.iter().chain(others).map(|name| (*name).to_owned());
        let option = arg.map_or_else(String::new, Arg::to_string);
        let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
        error.insert(ContextKind::InvalidArg, ContextValue::String(option));
        error.insert(
            ContextKind::InvalidValue,
            ContextValue::String(text.to_owned()),
        );
        error.insert(
            ContextKind::ValidValue,
            ContextValue::Strings(names.collect()),
        );
        if let Some(near) = near.first() {
            error.insert(
                ContextKind::SuggestedValue,
                ContextValue::String((*near).to_owned()),
            );
        }
        error
    }
}
