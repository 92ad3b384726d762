//! The order of event records with equal times: that of babeltrace2's muxer.
//!
//! Streams are ranked. Of event records with the same time, those of the stream with the lowest
//! rank come first. The rank is determined by these keys, in this order: the UUID of the trace
//! (traces without a UUID last), the name of the trace, the id of the data stream class, the id of
//! the stream, and the path of its first file. babeltrace2 numbers streams without an id by their
//! files, which gives the same order.

use std::cmp::Ordering;

use crate::stream::Stream;
use crate::trace::Trace;

/// Compares two streams whose next event records have the same time.
pub fn compare(a: (&Trace, &Stream), b: (&Trace, &Stream)) -> Ordering {
    let class = |(trace, stream): (&Trace, &Stream)| {
        trace.layout.streams.get(stream.class).map(|class| class.id)
    };
    let file = |(_, stream): (&Trace, &Stream)| stream.files.first().map(|file| file.path.clone());
    present_first(a.0.uuid(), b.0.uuid())
        .then_with(|| present_first(name(a.0), name(b.0)))
        .then_with(|| class(a).cmp(&class(b)))
        .then_with(|| a.1.id.cmp(&b.1.id))
        .then_with(|| file(a).cmp(&file(b)))
}

/// The name that babeltrace2 gives a trace: the host, followed by the path.
fn name(trace: &Trace) -> Option<(String, Option<&std::path::PathBuf>)> {
    let host = trace.layout.class.env_str("hostname").unwrap_or_default();
    Some((host.to_owned(), trace.paths.first()))
}

fn present_first<T: Ord>(a: Option<T>, b: Option<T>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp(&b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_uuid_comes_last() {
        assert_eq!(present_first(Some(2), None), Ordering::Less);
        assert_eq!(present_first::<u8>(None, None), Ordering::Equal);
        assert_eq!(present_first(Some(2), Some(1)), Ordering::Greater);
    }
}
