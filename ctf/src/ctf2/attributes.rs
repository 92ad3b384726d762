//! Attributes that LTTng and babeltrace2 add to event record classes.
//!
//! CTF 2 leaves attributes to the producer of a trace: unknown attributes are ignored, never an
//! error.

use super::json::{JsonContent, Property, Value};
use crate::schema::Name;

/// Namespaces whose `log-level` and `emf-uri` are recognized, in order of preference.
const NAMESPACES: [&str; 2] = ["babeltrace.org,2020", "lttng.org,2009"];

/// Names of LTTng's log levels: the index is the level.
const LOG_LEVELS: [&str; 15] = [
    "emergency",
    "alert",
    "critical",
    "error",
    "warning",
    "notice",
    "info",
    "debug:system",
    "debug:program",
    "debug:process",
    "debug:module",
    "debug:unit",
    "debug:function",
    "debug:line",
    "debug",
];

/// The log level, in LTTng's numbering.
pub(super) fn log_level(attributes: Option<&Value>) -> Option<i64> {
    match find(attributes, "log-level")? {
        JsonContent::Str(name) => (0i64..)
            .zip(LOG_LEVELS)
            .find(|(_, known)| known == name)
            .map(|(level, _)| level),
        JsonContent::Int(level) => i64::try_from(*level).ok(),
        _ => None,
    }
}

/// The URI of the Eclipse Modeling Framework's model.
pub(super) fn emf_uri(attributes: Option<&Value>) -> Option<Name> {
    match find(attributes, "emf-uri")? {
        JsonContent::Str(uri) => Some(uri.as_str().into()),
        _ => None,
    }
}

fn find<'a>(attributes: Option<&'a Value>, key: &str) -> Option<&'a JsonContent> {
    NAMESPACES
        .iter()
        .find_map(|namespace| property(property(&attributes?.kind, namespace)?, key))
}

fn property<'a>(kind: &'a JsonContent, key: &str) -> Option<&'a JsonContent> {
    let JsonContent::Object(properties) = kind else {
        return None;
    };
    properties
        .iter()
        .find(|Property { key: name, .. }| name == key)
        .map(|property| &property.value.kind)
}
