//! Builds a history of a trace set, in parallel.
//!
//! Chunks of each CPU are folded into changes of attributes by slice of time ([`crate::kernel`]).
//! Complete slices are written to the file by jobs during the fold ([`crate::pipeline`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::Recorded;

use crate::attribute::{Attribute, AttributeKind};
use crate::checkpoint::{self, Knowledge};
use crate::file::{self, Meta};
use crate::ground::{Asked, BuildError, Ground};
use crate::history_analysis::{HistoryAnalysis, Output, Told};
use crate::marks::StreamMark;
use crate::settling::Settling;
use crate::slices::Slices;
use crate::writer::Writer;

/// Result of a build.
#[derive(Clone, Debug)]
pub struct Built {
    /// Traces, range and analysis of the history.
    pub meta: Meta,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Damage found in the traces.
    pub damage: Vec<Damage>,
    /// Probable mistakes in the definition of an analysis, as messages.
    pub doubts: Vec<String>,
}

/// Builds the history of the trace set at `paths`, with the contents that `asked` adds, and writes
/// it to a file.
///
/// # Errors
/// If the file cannot be written, `control` cancels, or no event changes an attribute. No file is
/// left then.
pub fn build(
    set: &TraceSet,
    paths: &[PathBuf],
    asked: Asked,
    to: &Path,
    options: Options,
    control: &Control,
) -> Result<Built, BuildError> {
    let (analysis, meta) = analysis(set, paths, asked, to)?;
    analysis.run(set, meta, options, control)
}

/// The analysis that builds the history, and the facts about it that are known before the fold.
pub(crate) fn analysis(
    set: &TraceSet,
    paths: &[PathBuf],
    asked: Asked,
    to: &Path,
) -> Result<(HistoryAnalysis, Meta), BuildError> {
    let files = asked.files;
    let own = asked.definition.as_ref().map(|definition| file::Analysis {
        name: definition.name.clone(),
        text: definition.text.clone(),
    });
    let recorded = Arc::new(Recorded::of(set));
    let slices = Slices::of(set, &recorded);
    let times = checkpoint::times(&slices);
    let ground = Ground::of(set, &recorded, asked, &times)?;
    let meta = Meta {
        paths: paths.to_vec(),
        analysis: own,
        files,
        streams: StreamMark::of(set),
        ..Meta::default()
    };
    let writer = Writer::create(to, &meta)?;
    let output = Output::new(
        slices,
        times,
        ground.grid,
        (Settling::new(ground.levels()), writer),
    );
    let analysis = HistoryAnalysis {
        known: BTreeMap::new(),
        knowledge: Knowledge::default(),
        output,
        ground,
    };
    Ok((analysis, meta))
}

impl HistoryAnalysis {
    /// Reads the traces and completes the file; `meta` contains the other metadata, and the number
    /// of losses in the kept part.
    pub(crate) fn run(
        self,
        set: &TraceSet,
        meta: Meta,
        options: Options,
        control: &Control,
    ) -> Result<Built, BuildError> {
        let mut doubts = self
            .ground
            .plan
            .as_ref()
            .map_or_else(Vec::new, |plan| plan.doubts(set));
        let outcome = fold(set, &self, options, control)?;
        let Told { losses, machine } = outcome.report;
        if machine.left_out > 0 {
            let left_out = machine.left_out;
            doubts.push(format!(
                "too many attributes: {left_out} changes of further attributes were dropped"
            ));
        }
        doubts.extend(self.ground.input.head().note());
        if self.ground.lacks_calls() {
            doubts.push(
                "no system calls were recorded, so cpu/N/state cannot show whether a thread runs in the kernel; \
                 enable system calls"
                    .to_owned(),
            );
        }
        let custom = machine.into_paths();
        doubts.extend(shadows(&custom));
        let meta = Meta {
            losses: meta.losses + losses,
            custom,
            ..self.ground.describe(set, meta)
        };
        let bytes = control.serially("history index", || self.output.finish(meta.clone()))?;
        let damage = outcome.damage;
        Ok(Built {
            meta,
            bytes,
            damage,
            doubts,
        })
    }
}

/// A warning if a path of a user analysis is the path of a built-in attribute, which takes
/// precedence.
fn shadows(custom: &[String]) -> Option<String> {
    let is_known = |path: &&String| {
        Attribute::parse(path, 0).is_some_and(|known| known.kind() != AttributeKind::Custom)
    };
    let path = custom.iter().find(is_known)?;
    Some(format!(
        "`{path}`: this attribute already exists without the analysis, so both are shown; choose another path"
    ))
}
