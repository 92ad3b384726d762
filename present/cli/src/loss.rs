//! Losses that the tracer counted in its packets.

use tracebraid_ctf::losses::{LossKind, UnknownCount};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::units::grouped;

/// Losses of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Discarded event records.
    pub(crate) events: u64,
    /// Missing packets.
    pub(crate) packets: u64,
    /// Interval that contains all losses, in nanoseconds since the origin.
    pub(crate) range: Option<(i64, i64)>,
    /// Number of times that a counter ran backwards.
    pub(crate) backwards: u64,
    /// An unknown number of event records was lost before the first packet.
    pub(crate) before: bool,
}

impl Loss {
    /// Sums up the losses of a stream.
    pub(crate) fn of(trace: &Trace, stream: &Stream) -> Loss {
        let mut sum = Loss::default();
        let clock = trace.clock(stream);
        for loss in stream.losses() {
            match loss.kind {
                LossKind::Events => sum.events += loss.count.unwrap_or(0),
                LossKind::Packets => sum.packets += loss.count.unwrap_or(0),
            }
            sum.backwards += u64::from(loss.unknown == Some(UnknownCount::CounterBackwards));
            sum.before |= loss.unknown == Some(UnknownCount::BeforeFirstPacket);
            let time = |cycles: Option<u64>| {
                clock
                    .zip(cycles)
                    .map(|(clock, cycles)| clock.timestamp(cycles).0)
            };
            if let (Some(from), Some(to)) = (time(loss.from), time(loss.to)) {
                let (first, last) = sum.range.unwrap_or((from, to));
                sum.range = Some((first.min(from), last.max(to)));
            }
        }
        sum
    }
}

/// A sentence on the losses of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Sentence {
    /// First file of the stream.
    file: String,
    what: String,
}

impl Sentence {
    /// The sentence with the file at its end, for output that cuts long lines.
    pub(crate) fn of_file(&self) -> String {
        format!("{} ({})", self.what, self.file)
    }
}

impl std::fmt::Display for Sentence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.file, self.what)
    }
}

/// One or more sentences for each stream with losses.
pub(crate) fn summary(set: &TraceSet) -> Vec<Sentence> {
    let mut lines = Vec::new();
    for trace in &set.traces {
        for stream in &trace.streams {
            let loss = Loss::of(trace, stream);
            let file = stream
                .files
                .first()
                .map(|file| crate::origins::shown(&file.path))
                .unwrap_or_default();
            let mut say = |what: String| {
                let file = file.clone();
                lines.push(Sentence { file, what });
            };
            if loss.events > 0 || loss.packets > 0 {
                let mut parts = Vec::new();
                if loss.events > 0 {
                    parts.push(count(loss.events, "event record"));
                }
                if loss.packets > 0 {
                    parts.push(count(loss.packets, "packet"));
                }
                say(format!("the tracer lost {}", parts.join(" and ")));
            }
            if loss.before {
                say(
                    "the tracer lost event records before the first packet of the trace".to_owned(),
                );
            }
            if loss.backwards > 0 {
                say(format!(
                    "a loss counter runs backwards {}: losses there may not be counted",
                    times(loss.backwards)
                ));
            }
        }
    }
    lines
}

/// `once` or `N times`.
pub(crate) fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        _ => format!("{} times", grouped(number)),
    }
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
