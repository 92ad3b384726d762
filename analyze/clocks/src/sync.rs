//! Synchronization of several machines to the time of one.

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::correction::{Correction, CorrectionError, Piece};

use crate::file::{Transformation, Transformations};
use crate::fixed::Fixed;
use crate::machines::Machines;
use crate::matches::{Matches, Message};
use crate::path::Path;
use crate::relation::Accuracy;
use crate::tree;

/// Relations between the clocks of several machines.
#[derive(Clone, Debug, Serialize)]
pub struct Synchronization {
    /// Name of the machine whose clock is the reference.
    pub reference: String,
    /// The machines, in the order of their traces.
    pub hosts: Vec<MachineReport>,
    /// All pairs of machines.
    pub pairs: Vec<PairReport>,
    /// Packets that were sent or received more than once, and ignored.
    pub repeated_packets: u64,
    #[serde(skip)]
    machines: Machines,
}

/// Relation of one machine's clock to the reference.
#[derive(Clone, Debug, Serialize)]
pub struct MachineReport {
    /// Host name.
    pub host: String,
    /// False if no messages connect it with the reference, directly or through other machines.
    pub is_related: bool,
    /// Machines through which it is related to the reference, the nearest first; ends with the
    /// reference.
    pub through: Vec<String>,
    /// Correction to add to its times, in the middle of its messages, in nanoseconds.
    pub offset_ns: Option<i64>,
    /// Rate at which the correction grows, in parts per million (µs per s).
    pub drift_ppm: Option<f64>,
    /// Maximum error of the correction there, in nanoseconds: the sum of the errors along the
    /// chain; `None` if unbounded.
    pub error_ns: Option<u64>,
    /// The steps of its correction, applied in order.
    #[serde(skip)]
    pub steps: Vec<Vec<Piece>>,
}

/// Relation of the clocks of two machines: the correction to add to times of `other` to get times
/// of `reference`.
#[derive(Clone, Debug, Serialize)]
pub struct PairReport {
    /// Machine whose clock is the target.
    pub reference: String,
    /// Machine whose clock is corrected.
    pub other: String,
    /// How tightly messages bound the relation.
    pub accuracy: Accuracy,
    /// Packets sent by the reference and received by the other machine.
    pub packets_to_other: u64,
    /// Packets sent by the other machine and received by the reference.
    pub packets_to_reference: u64,
    /// Number of successive lines.
    pub stretches: usize,
    /// Offset in the middle of the interval that messages cover, in nanoseconds.
    pub offset_ns: Option<i64>,
    /// Least possible offset there.
    pub offset_min_ns: Option<i64>,
    /// Greatest possible offset there.
    pub offset_max_ns: Option<i64>,
    /// Mean drift from the first to the last message, in parts per million.
    pub drift_ppm: Option<f64>,
    /// Least possible drift of any stretch.
    pub drift_min_ppm: Option<f64>,
    /// Greatest possible drift of any stretch.
    pub drift_max_ppm: Option<f64>,
    /// Shortest delay of a packet by corrected times, in nanoseconds; never negative if a line
    /// fits.
    pub delay_min_ns: Option<i64>,
    /// Median delay of packets to the other machine by corrected times, in nanoseconds.
    pub delay_to_other_ns: Option<i64>,
    /// Median delay of packets to the reference, in nanoseconds.
    pub delay_to_reference_ns: Option<i64>,
    #[serde(skip)]
    path: Option<Path>,
}

/// Why clocks cannot be synchronized.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// No trace is of a host with the requested name.
    #[error("no trace was recorded on host '{0}'; the traces were recorded on: {1}")]
    NoSuchHost(String, String),
}

impl Synchronization {
    /// Relates the machines by their messages. The reference defaults to the first machine.
    ///
    /// # Errors
    /// If no machine has the name of the reference.
    pub fn of(
        machines: Machines,
        matches: &Matches,
        reference: Option<&str>,
    ) -> Result<Synchronization, SyncError> {
        let count = machines.all().len();
        let root = match reference {
            None => 0,
            Some(name) => machines.called(name).ok_or_else(|| {
                let names: Vec<String> = (0..count).map(|machine| machines.name(machine)).collect();
                SyncError::NoSuchHost(name.to_owned(), names.join(", "))
            })?,
        };
        let mut pairs = Vec::new();
        let mut edges = Vec::new();
        for one in 0..count {
            for other in one + 1..count {
                // The requested reference is always the target, so that the reported offsets
                // convert to its time.
                let (first, second) = if other == root {
                    (other, one)
                } else {
                    (one, other)
                };
                let pair = PairReport::of(&machines, matches, first, second);
                if let Some(path) = &pair.path {
                    edges.push((weight(path), one, other));
                }
                pairs.push(pair);
            }
        }
        let ways = tree::ways_to(root, count, &edges);
        let host = |machine| MachineReport::of(&machines, matches, &ways, (machine, root));
        Ok(Synchronization {
            reference: machines.name(root),
            hosts: (0..count).map(host).collect(),
            pairs,
            repeated_packets: matches.repeated,
            machines,
        })
    }

    /// The corrections in the form that is stored in a file.
    pub fn transformations(&self) -> Transformations {
        let hosts = self.hosts.iter().zip(self.machines.all());
        let of = |(host, machine): (&MachineReport, _)| {
            let steps = host.is_related.then(|| host.steps.clone());
            Transformation::new(machine, steps, host.error_ns)
        };
        Transformations::new(self.reference.clone(), hosts.map(of).collect())
    }
}

/// Cost of a path in the spanning tree: accuracy first, then error.
fn weight(path: &Path) -> (Accuracy, u64) {
    let (first, last) = path.extent();
    let errors = [first, last].map(|x| error_at(path, x).unwrap_or(u64::MAX));
    (
        path.accuracy(),
        errors.into_iter().max().unwrap_or(u64::MAX),
    )
}

/// Maximum error of the path at `x`, in nanoseconds.
fn error_at(path: &Path, x: i64) -> Option<u64> {
    let (low, high) = path.bounds(x);
    let (low, high, at) = (low?.round(), high?.round(), path.at(x)?.round());
    Some(low.abs_diff(at).max(high.abs_diff(at)))
}

fn middle((first, last): (i64, i64)) -> i64 {
    first + (last.saturating_sub(first)) / 2
}

/// Mean drift from the first to the last message, in parts per million.
fn drift_of(path: &Path) -> Option<f64> {
    let (first, last) = path.extent();
    let last = last.max(first.saturating_add(1_000_000_000));
    let moved = |x| Some(path.at(x)? - Fixed::whole(x));
    let e18 = (moved(last)? - moved(first)?).over_e18(last.checked_sub(first)?)?;
    Some(ppm(e18 as f64 / 1e12))
}

/// Rounds to a millionth of a part per million.
fn ppm(drift: f64) -> f64 {
    (drift * 1e6).round() / 1e6
}

impl MachineReport {
    /// The correction to apply to its times.
    ///
    /// # Errors
    /// If the steps do not form a valid correction, which cannot happen for steps found here.
    pub fn correction(&self) -> Result<Correction, CorrectionError> {
        Correction::new(self.steps.iter().map(Vec::as_slice))
    }

    fn of(
        machines: &Machines,
        matches: &Matches,
        ways: &[Option<usize>],
        (machine, root): (usize, usize),
    ) -> MachineReport {
        let mut report = MachineReport {
            host: machines.name(machine),
            is_related: machine == root,
            through: Vec::new(),
            offset_ns: None,
            drift_ppm: None,
            error_ns: Some(0),
            steps: Vec::new(),
        };
        let mut at = machine;
        let mut place = None;
        while let Some(next) = ways.get(at).copied().flatten() {
            let Ok(Some(path)) = Path::of(&matches.timeline(at, next)) else {
                break;
            };
            report.through.push(machines.name(next));
            let x = place.unwrap_or_else(|| middle(path.extent()));
            let (begin, y) = (x, path.at(x).map_or(x, Fixed::round));
            report.offset_ns = Some(
                report
                    .offset_ns
                    .unwrap_or(0)
                    .saturating_add(y.saturating_sub(begin)),
            );
            report.drift_ppm =
                drift_of(&path).map(|drift| ppm(drift + report.drift_ppm.unwrap_or(0.0)));
            let error = error_at(&path, x);
            report.error_ns = report
                .error_ns
                .zip(error)
                .map(|(sum, error)| sum.saturating_add(error));
            report.steps.extend(path.pieces());
            place = Some(y);
            at = next;
        }
        report.is_related = at == root;
        report
    }
}

impl PairReport {
    fn of(machines: &Machines, matches: &Matches, one: usize, other: usize) -> PairReport {
        let path = Path::of(&matches.timeline(other, one));
        let (to_other, to_reference) = (matches.between(one, other), matches.between(other, one));
        let mut report = PairReport {
            reference: machines.name(one),
            other: machines.name(other),
            accuracy: Accuracy::Absent,
            packets_to_other: to_other.len() as u64,
            packets_to_reference: to_reference.len() as u64,
            stretches: 0,
            offset_ns: None,
            offset_min_ns: None,
            offset_max_ns: None,
            drift_ppm: None,
            drift_min_ppm: None,
            drift_max_ppm: None,
            delay_min_ns: None,
            delay_to_other_ns: None,
            delay_to_reference_ns: None,
            path: None,
        };
        match path {
            Err(_) => report.accuracy = Accuracy::Fail,
            Ok(None) => {}
            Ok(Some(path)) => {
                report.tell(&path);
                report.tell_delays(&path, to_other, to_reference);
                report.path = Some(path);
            }
        }
        report
    }

    fn tell(&mut self, path: &Path) {
        self.accuracy = path.accuracy();
        self.stretches = path.stretches().len();
        let x = middle(path.extent());
        let offset = |y: Fixed| (y - Fixed::whole(x)).round();
        let (low, high) = path.bounds(x);
        self.offset_ns = path.at(x).map(offset);
        (self.offset_min_ns, self.offset_max_ns) = (low.map(offset), high.map(offset));
        if let Some((flattest, steepest)) = path.slopes() {
            self.drift_ppm = drift_of(path);
            self.drift_min_ppm = Some(ppm(flattest.drift_ppm()));
            self.drift_max_ppm = Some(ppm(steepest.drift_ppm()));
        }
    }

    fn tell_delays(&mut self, path: &Path, to_other: &[Message], to_reference: &[Message]) {
        let Some(correction) = path.correction() else {
            return;
        };
        let corrected = |time: i64| correction.apply(Timestamp(time)).0;
        let mut there: Vec<i64> = to_other
            .iter()
            .map(|message| corrected(message.received).saturating_sub(message.sent))
            .collect();
        let mut back: Vec<i64> = to_reference
            .iter()
            .map(|message| message.received.saturating_sub(corrected(message.sent)))
            .collect();
        self.delay_min_ns = there.iter().chain(&back).copied().min();
        self.delay_to_other_ns = median(&mut there);
        self.delay_to_reference_ns = median(&mut back);
    }
}

/// Lower median.
fn median(values: &mut [i64]) -> Option<i64> {
    let at = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(at).1)
}
