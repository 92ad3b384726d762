//! What the tracer lost, as the packets' counters tell it.

use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};

/// Losses of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Event records that were discarded.
    pub(crate) events: u64,
    /// Packets that are missing.
    pub(crate) packets: u64,
    /// Nanoseconds from the origin between which all of this was lost.
    pub(crate) range: Option<(i64, i64)>,
    /// How often a counter ran backwards.
    pub(crate) backwards: u64,
}

/// How much a counter of that many bits went on; `None` if it ran backwards.
fn step(before: u64, after: u64, width: u8) -> Option<u64> {
    if after >= before {
        return Some(after - before);
    }
    // A counter that wrapped has gone on by less than half of what it can count.
    let wrapped = if width == 0 || width >= 64 {
        return None;
    } else {
        after + (1 << width) - before
    };
    (wrapped <= 1 << (width - 1)).then_some(wrapped)
}

impl Loss {
    /// Adds up a stream's counters.
    pub(crate) fn of(trace: &Trace, stream: &Stream) -> Loss {
        let mut loss = Loss::default();
        let clock = trace.clock(stream);
        let (mut discarded, mut sequence, mut end) = (0, None, None);
        for packet in &stream.packets {
            let mut lost = false;
            if let Some(now) = packet.discarded {
                match step(discarded, now, stream.head.discarded_width) {
                    Some(count) => {
                        loss.events += count;
                        lost = count > 0;
                    }
                    None => loss.backwards += 1,
                }
                discarded = now;
            }
            if let (Some(before), Some(now)) = (sequence, packet.sequence) {
                match step(before, now, stream.head.sequence_width) {
                    Some(count) => {
                        loss.packets += count.saturating_sub(1);
                        lost |= count > 1;
                    }
                    None => loss.backwards += 1,
                }
            }
            sequence = packet.sequence;
            if let (true, Some(clock)) = (lost, clock) {
                let from = end.or(packet.begin).map(|cycles| clock.timestamp(cycles).0);
                let to = packet
                    .end
                    .or(packet.begin)
                    .map(|cycles| clock.timestamp(cycles).0);
                if let (Some(from), Some(to)) = (from, to) {
                    let (first, last) = loss.range.unwrap_or((from, to));
                    loss.range = Some((first.min(from), last.max(to)));
                }
            }
            end = packet.end;
        }
        loss
    }
}

/// One sentence for each stream that lost something.
pub(crate) fn summary(set: &TraceSet) -> Vec<String> {
    let mut lines = Vec::new();
    for trace in &set.traces {
        for stream in &trace.streams {
            let loss = Loss::of(trace, stream);
            let file = stream
                .files
                .first()
                .map(|file| file.path.display().to_string())
                .unwrap_or_default();
            if loss.events > 0 || loss.packets > 0 {
                let mut parts = Vec::new();
                if loss.events > 0 {
                    parts.push(count(loss.events, "event record"));
                }
                if loss.packets > 0 {
                    parts.push(count(loss.packets, "packet"));
                }
                lines.push(format!("{file}: the tracer lost {}", parts.join(" and ")));
            }
            if loss.backwards > 0 {
                lines.push(format!(
                    "{file}: a loss counter runs backwards ({} times): losses there are not counted",
                    loss.backwards
                ));
            }
        }
    }
    lines
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn counters_go_on_wrap_or_run_backwards() {
        assert_eq!(step(3, 10, 64), Some(7));
        assert_eq!(step(10, 3, 64), None);
        assert_eq!(step(u64::from(u32::MAX), 4, 32), Some(5));
        assert_eq!(step(1000, 4, 32), None);
        assert_eq!(step(5, 5, 8), Some(0));
        assert_eq!(step(250, 2, 8), Some(8));
    }
}
