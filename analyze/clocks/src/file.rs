//! Corrections as a small file of JSON (documented in `docs/reference/sync.md`).

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::correction::{Correction, CorrectionError, Piece};
use tracebraid_ctf::trace::TraceSet;

use crate::machines::Machine;

/// The version of the form that is written, and the only one that is read.
const VERSION: u32 = 1;

/// How the traces of several machines get the time of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transformations {
    tracebraid_sync: u32,
    /// The machine whose time it is.
    pub reference: String,
    /// The machines.
    pub hosts: Vec<Transformation>,
}

/// How the traces of one machine get the reference's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transformation {
    /// The machine.
    #[serde(flatten)]
    pub machine: Machine,
    /// How wrong a time can be, in the middle of what is known of the machine, in nanoseconds.
    pub error_ns: Option<u64>,
    /// What is done one after the other; nothing for the reference itself, `None` if it cannot be
    /// related.
    steps: Option<Vec<Vec<Line>>>,
}

/// A line as the file has it.
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
    /// It is something else.
    #[error("this is no file of `tracebraid sync`: {0}")]
    Form(serde_json::Error),
    /// It is of another version.
    #[error("its version is {0}: only version {VERSION} can be read")]
    Version(u32),
    /// A correction cannot be.
    #[error("the correction of {0}: {1}")]
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

    /// The correction; `None` if the machine cannot be related.
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

    /// Reads a file's text.
    ///
    /// # Errors
    /// When it is no such file, or what it says cannot be.
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

    /// Lets the traces have the reference's time from now on; gives the machines that are not
    /// related to it, or of which nothing is known. What corrects a trace lives as long as the
    /// program.
    ///
    /// # Errors
    /// When a correction cannot be.
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
