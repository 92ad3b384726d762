//! What is wrong with a trace, said on standard error without drowning the user in it.

use std::process::ExitCode;

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::mapping;
use tracebraid_ctf::trace::TraceSet;

use crate::failure::DAMAGED;
use crate::imported;
use crate::options::SelectArgs;
use crate::output::say;
use crate::rings;
use crate::units::number_of;

/// More warnings than this are only counted.
const MOST_SHOWN: usize = 20;

/// No stream has a packet.
const NOTHING_YET: &str = "there is no event in the trace, or none yet: no stream has a packet (what is still in the buffers of a tracer is \
                           written when it is stopped)";

/// Collects warnings.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    shown: usize,
    damaged: usize,
}

impl Warnings {
    /// Warnings that are not shown.
    pub(crate) fn quiet() -> Self {
        Warnings {
            shown: MOST_SHOWN,
            ..Warnings::default()
        }
    }

    /// Says something that is no damage.
    pub(crate) fn note(&mut self, message: &str) {
        say!("warning: {}", imported::named(message));
    }

    /// Says that something is damaged.
    pub(crate) fn damage(&mut self, message: &str) {
        self.damaged += 1;
        if self.shown < MOST_SHOWN {
            say!("warning: {}", imported::named(message));
            self.shown += 1;
        }
    }

    /// Reports damage that was found while the traces were opened, and clocks without a relation.
    pub(crate) fn opening(&mut self, set: &TraceSet) {
        self.opening_without_clocks(set);
        if let Some(message) = crate::options::several_clocks(set) {
            self.note(&message);
        }
        // The order of event records may be wrong: the result is not sound.
        if let Some(message) = crate::options::unrelated_clocks(set) {
            self.damage(&message);
        }
    }

    /// As [`Warnings::opening`], for a command that finds the relation of the clocks.
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
                "{more} more of this kind; `tracebraid info` shows them"
            ));
        }
        for directory in rings::sessions(set) {
            self.note(&format!(
                "programs with probes keep their newest events in {}, where they are not read: `tracebraid stop` with that \
                 directory puts them in order",
                directory.display()
            ));
        }
        for unfinished in crate::unfinished::all(set) {
            self.note(&unfinished.to_string());
        }
    }

    /// Says that there is nothing that a report could be about.
    pub(crate) fn nothing_yet(&mut self, set: &TraceSet) {
        let mut streams = set.traces.iter().flat_map(|trace| &trace.streams);
        if streams.all(|stream| stream.packets.is_empty()) {
            self.note(NOTHING_YET);
        }
    }

    /// Says that nobody knows who recorded the traces, if that is to be left out.
    pub(crate) fn recorder(&mut self, set: &TraceSet, select: &SelectArgs) {
        if select.no_recorder && crate::options::recorders(set).is_empty() {
            self.note("--no-recorder leaves nothing out: no trace says which process recorded it");
        }
    }

    /// Says what was found while they were read.
    pub(crate) fn reading(&mut self, damage: &[Damage]) {
        damage
            .iter()
            .for_each(|damage| self.damage(&damage.to_string()));
    }

    /// The exit code of a command that did its work.
    pub(crate) fn finish(mut self, strict: bool) -> ExitCode {
        let lost = mapping::lost_pages();
        if lost > 0 {
            self.damage(&format!(
                "{} of the files could not be read any more while they were read (did a file become shorter, or does the \
                 disk fail?): what is told of them is wrong; run it again",
                number_of(lost, "page", "pages")
            ));
        }
        if self.damaged > self.shown {
            say!(
                "warning: {} more of this kind; `tracebraid info` counts them",
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
