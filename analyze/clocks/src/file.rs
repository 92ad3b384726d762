//! The JSON file of corrections (format: `docs/reference/sync.md`).

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::correction::{Correction, CorrectionError, Piece};
use tracebraid_ctf::trace::TraceSet;

use crate::machines::Machine;

/// Version of the file format; files of other versions are rejected.
const VERSION: u32 = 1;

/// Corrections of the traces of several machines to the time of the reference machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transformations {
    tracebraid_sync: u32,
    /// Name of the machine whose clock is the reference.
    pub reference: String,
    /// One correction for each machine, the reference included.
    pub hosts: Vec<Transformation>,
}

/// Correction of the traces of one machine to the reference time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transformation {
    /// The machine, found again by clock UUID, host name or trace directory.
    #[serde(flatten)]
    pub machine: Machine,
    /// Maximum error of a corrected time, in nanoseconds, in the middle of the interval that
    /// messages cover.
    pub error_ns: Option<u64>,
    /// Steps, applied in order: empty for the reference itself, `None` if no messages relate the
    /// machine to it.
    steps: Option<Vec<Vec<Line>>>,
}

/// A piece of a correction, as stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    from_ns: i64,
    offset_ns: i64,
    offset_e9: u32,
    drift_e18: i64,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file is not JSON of this format.
    #[error("not a file written by `tracebraid sync -o`: {0}")]
    Form(serde_json::Error),
    /// The file has another format version.
    #[error(
        "unsupported version {0}, expected {VERSION}: write the file again with `tracebraid sync -o`"
    )]
    Version(u32),
    /// A correction is invalid, for example because its time goes back.
    #[error("invalid correction of {0}: {1}")]
    Correction(String, CorrectionError),
}

impl Transformation {
    pub(crate) fn new(
        machine: &Machine,
        steps: Option<Vec<Vec<Piece>>>,
        error_ns: Option<u64>,
    ) -> Self {
        let line = |piece: Piece| Line {
            from_ns: piece.from.0,
            offset_ns: piece.offset_ns,
            offset_e9: piece.offset_e9,
            drift_e18: piece.drift_e18,
        };
        let lines = |pieces: Vec<Piece>| pieces.into_iter().map(line).collect();
        Transformation {
            machine: machine.clone(),
            error_ns: error_ns.filter(|_| steps.is_some()),
            steps: steps.map(|steps| steps.into_iter().map(lines).collect()),
        }
    }

    fn name(&self) -> String {
        let machine = &self.machine;
        let names = [&machine.host, &machine.trace, &machine.clock];
        names
            .into_iter()
            .flatten()
            .next()
            .cloned()
            .unwrap_or_default()
    }

    /// The correction; `None` if the machine is not related to the reference.
    fn correction(&self) -> Result<Option<Correction>, FileError> {
        let Some(steps) = &self.steps else {
            return Ok(None);
        };
        let piece = |line: &Line| Piece {
            from: Timestamp(line.from_ns),
            offset_ns: line.offset_ns,
            offset_e9: line.offset_e9,
            drift_e18: line.drift_e18,
        };
        let steps: Vec<Vec<Piece>> = steps
            .iter()
            .map(|lines| lines.iter().map(piece).collect())
            .collect();
        let correction = Correction::new(steps.iter().map(Vec::as_slice));
        correction
            .map(Some)
            .map_err(|error| FileError::Correction(self.name(), error))
    }
}

impl Transformations {
    pub(crate) fn new(reference: String, hosts: Vec<Transformation>) -> Self {
        Transformations {
            tracebraid_sync: VERSION,
            reference,
            hosts,
        }
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// If the text is not JSON of this format, has another version, or contains an invalid
    /// correction.
    pub fn parse(text: &[u8]) -> Result<Transformations, FileError> {
        #[derive(Deserialize)]
        struct Head {
            tracebraid_sync: u32,
        }
        let head: Head = serde_json::from_slice(text).map_err(FileError::Form)?;
        if head.tracebraid_sync != VERSION {
            return Err(FileError::Version(head.tracebraid_sync));
        }
        let all: Transformations = serde_json::from_slice(text).map_err(FileError::Form)?;
        for host in &all.hosts {
            host.correction()?;
        }
        Ok(all)
    }

    /// Converts all times of the traces to reference time from now on. Returns the machines that
    /// are unrelated to the reference or not in the file. Corrections are leaked: they live as long
    /// as the program.
    ///
    /// # Errors
    /// If a correction is invalid.
    pub fn apply(&self, set: &mut TraceSet) -> Result<Vec<Machine>, FileError> {
        let mut corrections = Vec::new();
        for host in &self.hosts {
            let correction = host.correction()?;
            let correction = correction.map(|correction| -> Option<&'static Correction> {
                match host.steps.as_ref().is_some_and(|steps| !steps.is_empty()) {
                    true => Some(Box::leak(Box::new(correction))),
                    false => None,
                }
            });
            corrections.push(correction);
        }
        let mut unknown: Vec<Machine> = Vec::new();
        for trace in &mut set.traces {
            let machine = Machine::of(trace);
            let known = self.hosts.iter().position(|host| host.machine == machine);
            match known.and_then(|known| corrections.get(known).copied().flatten()) {
                Some(correction) => {
                    trace.correction = correction;
                    trace.is_synchronized = true;
                }
                None if unknown.contains(&machine) => {}
                None => unknown.push(machine),
            }
        }
        Ok(unknown)
    }
}
