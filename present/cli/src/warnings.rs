//! Warnings on standard error, limited in number so that they do not drown the output.

use std::process::ExitCode;

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::mapping;
use tracebraid_ctf::trace::TraceSet;

use crate::failure::DAMAGED;
use crate::imported;
use crate::options::SelectArgs;
use crate::origins;
use crate::output::say;
use crate::rings;
use crate::units::number_of;

/// Further warnings are only counted.
const MOST_SHOWN: usize = 20;

const NOTHING_YET: &str = "the trace contains no events yet: no stream has a packet (a tracer writes the rest of its buffers when it is \
                           stopped)";

#[derive(Debug, Default)]
pub(crate) struct Warnings {
    shown: usize,
    damaged: usize,
}

impl Warnings {
    /// Warnings that are counted but not shown.
    pub(crate) fn quiet() -> Self {
        Warnings {
            shown: MOST_SHOWN,
            ..Warnings::default()
        }
    }

    /// Reports a fact that is not damage.
    pub(crate) fn note(&mut self, message: &str) {
        say!("warning: {}", origins::named(message));
    }

    /// Reports damage.
    pub(crate) fn damage(&mut self, message: &str) {
        self.damaged += 1;
        if self.shown < MOST_SHOWN {
            say!("warning: {}", origins::named(message));
            self.shown += 1;
        }
    }

    /// Reports damage found while the traces were opened, and clocks that cannot be aligned.
    pub(crate) fn opening(&mut self, set: &TraceSet) {
        self.opening_without_clocks(set);
        if let Some(message) = crate::options::several_clocks(set) {
            self.note(&message);
        }
        // The order of event records may be wrong, which makes the result unreliable.
        if let Some(message) = crate::options::unrelated_clocks(set) {
            self.damage(&message);
        }
    }

    /// As [`Warnings::opening`], for a command that relates the clocks itself.
    pub(crate) fn opening_without_clocks(&mut self, set: &TraceSet) {
        for damage in imported::take_damage() {
            self.damage(&damage);
        }
        for (_, reason) in &set.failed {
            self.damage(&format!("not read: {reason}"));
        }
        set.damage()
            .for_each(|damage| self.damage(&damage.to_string()));
        let mut notes = crate::options::notes(set);
        notes
            .by_ref()
            .take(MOST_SHOWN)
            .for_each(|note| self.note(&note.to_string()));
        let more = notes.count();
        if more > 0 {
            self.note(&format!(
                "{more} more of this kind; `tracebraid info` lists them"
            ));
        }
        for directory in rings::sessions(set) {
            self.note(&format!(
                "the newest events of programs with probes are in ring buffers in {}, which are not read: \
                 `tracebraid stop` with that directory turns them into streams",
                directory.display()
            ));
        }
        for unfinished in crate::unfinished::all(set) {
            self.note(&unfinished.to_string());
        }
    }

    /// Warns that no trace contains any events.
    pub(crate) fn nothing_yet(&mut self, set: &TraceSet) {
        let mut streams = set.traces.iter().flat_map(|trace| &trace.streams);
        if streams.all(|stream| stream.packets.is_empty()) {
            self.note(NOTHING_YET);
        }
    }

    /// Warns that `--no-recorder` has no effect because no trace names its recorder.
    pub(crate) fn recorder(&mut self, set: &TraceSet, select: &SelectArgs) {
        if select.no_recorder && crate::options::recorders(set).is_empty() {
            self.note("--no-recorder has no effect: no trace identifies its recorder");
        }
    }

    /// Reports damage found while the traces were read.
    pub(crate) fn reading(&mut self, damage: &[Damage]) {
        damage
            .iter()
            .for_each(|damage| self.damage(&damage.to_string()));
    }

    /// The exit code of a command that has done its work.
    pub(crate) fn finish(mut self, strict: bool) -> ExitCode {
        let lost = mapping::lost_pages();
        if lost > 0 {
            self.damage(&format!(
                "{} of the input became unreadable while the command ran (was a file truncated, or is the disk \
                 failing?): the results are wrong; run the command again",
                number_of(lost, "page", "pages")
            ));
        }
        if self.damaged > self.shown {
            say!(
                "warning: {} more of this kind; `tracebraid info` lists them",
                self.damaged - self.shown
            );
        }
        if strict && self.damaged > 0 {
            ExitCode::from(DAMAGED)
        } else {
            ExitCode::SUCCESS
        }
    }
}
