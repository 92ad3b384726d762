//! Patterns of names from lists that are known without a trace.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

/// Parses any pattern, and offers names for help and completion.
#[derive(Clone, Debug)]
pub(crate) struct NamedGlob(pub(crate) fn() -> Vec<&'static str>);

impl TypedValueParser for NamedGlob {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}
