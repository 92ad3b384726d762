//! Critical paths for Perfetto: a track for each path, and below it a track for each thread on the
//! path.

use std::collections::BTreeMap;

use tracebraid_graph::{PathReport, PathRow, SegmentRow};

use crate::perfetto::{Slice, Trace, Track};

/// Perfetto trace of the paths in a report.
pub fn perfetto(report: &PathReport) -> Vec<u8> {
    let mut trace = Trace::default();
    let mut arrows = 0;
    for row in &report.paths {
        path(&mut trace, report, row, &mut arrows);
    }
    trace.into_bytes()
}

fn path(trace: &mut Trace, report: &PathReport, row: &PathRow, arrows: &mut u64) {
    let call = row
        .call
        .as_ref()
        .map(|call| format!("{call} of "))
        .unwrap_or_default();
    let whole = trace.track(&format!("Critical path: {call}{}", row.tree.name), None);
    let mut tracks: BTreeMap<(u32, Option<i32>, Option<&str>), Track> = BTreeMap::new();
    let mut before: Option<&SegmentRow> = None;
    let mut incoming: Option<u64> = None;
    let mut segments = row.segments.iter().peekable();
    while let Some(segment) = segments.next() {
        let thread = &segment.thread;
        let name = thread.name.as_deref();
        let text = format!(
            "{} ({})",
            name.unwrap_or("?"),
            thread.tid.unwrap_or_default()
        );
        let text = report.head.of_host(thread.trace, text);
        let is_new = before.is_none_or(|before| before.thread != *thread);
        let key = (thread.trace, thread.tid, name);
        let track = *tracks
            .entry(key)
            .or_insert_with(|| trace.track(&text, Some(whole)));
        let outgoing = segments
            .peek()
            .filter(|next| next.thread != *thread)
            .map(|_| {
                *arrows += 1;
                *arrows
            });
        let reason = match segment.detail.as_str() {
            "" => segment.reason.name().to_owned(),
            detail => format!("{}: {detail}", segment.reason.name()),
        };
        let own: Vec<u64> = incoming
            .filter(|_| is_new)
            .into_iter()
            .chain(outgoing)
            .collect();
        let notes = [
            ("thread", text.as_str()),
            ("detail", segment.detail.as_str()),
        ];
        let mut slice = Slice {
            begin: segment.begin_ns,
            end: segment
                .begin_ns
                .saturating_add_unsigned(segment.duration_ns),
            name: &reason,
            category: segment.reason.name(),
            notes: &notes,
            arrows: &own,
        };
        trace.slice(track, &slice);
        let with_thread = format!("{text} {reason}");
        (slice.name, slice.arrows) = (&with_thread, &[]);
        trace.slice(whole, &slice);
        (before, incoming) = (Some(segment), outgoing);
    }
}
