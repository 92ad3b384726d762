//! The order of event records with equal times: that of babeltrace2's muxer.

use std::cmp::Ordering;

use crate::stream::Stream;
use crate::trace::Trace;

/// Compares two streams whose next event records have the same time.
///
/// As babeltrace2 does: by the traces' UUIDs, then their names, then the ids of the stream
/// classes, then the ids of the streams; last by where they are on disk.
pub fn compare(a: (&Trace, &Stream), b: (&Trace, &Stream)) -> Ordering {
    let class = |(trace, stream): (&Trace, &Stream)| trace.layout.streams.get(stream.class).map(|class| class.id);
    let file = |(_, stream): (&Trace, &Stream)| stream.files.first().map(|file| file.path.clone());
    a.0.uuid()
        .cmp(&b.0.uuid())
        .then_with(|| class(a).cmp(&class(b)))
        .then_with(|| a.1.id.cmp(&b.1.id))
        .then_with(|| file(a).cmp(&file(b)))
}
