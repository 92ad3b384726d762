//! Times and shares in reports.

use serde::Serializer;
use tracebraid_ctf::clock::Timestamp;

/// Serializes as nanoseconds from the clock's origin.
pub fn nanoseconds<S: Serializer>(
    time: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_some(&time.0),
        None => serializer.serialize_none(),
    }
}

/// `part` divided by `whole`; 0 if `whole` is 0.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
