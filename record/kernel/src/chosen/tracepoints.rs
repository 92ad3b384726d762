//! Tracepoints of the kernel that are chosen by name or by a pattern.

use std::collections::BTreeSet;

use tracebraid_tracepoint::Format;

use super::names::{did_you_mean, is_pattern, matches, some_of};
use super::tracefs::TraceFs;
use super::{Attachment, ChosenClass, ChosenEvents, Condition, Layout, Point, describe_tracepoint};

impl ChosenEvents {
    pub(super) fn tracepoints(&mut self, category: &str, name: &str) -> Result<(), String> {
        let chosen = format!("tracepoint:{category}:{name}");
        let unread = |error: std::io::Error| {
            format!(
                "{chosen}: cannot list tracepoints ({error}): mount tracefs at /sys/kernel/tracing, or run as root"
            )
        };
        let tracefs = TraceFs::open().map_err(unread)?;
        let all = tracefs.tracepoints().map_err(unread)?;
        let is_chosen = |[found, tracepoint]: &&[String; 2]| {
            matches(category, found) && matches(name, tracepoint)
        };
        let found: Vec<&[String; 2]> = all.iter().filter(is_chosen).collect();
        if found.is_empty() {
            return Err(unknown(&all, category, name));
        }
        let is_optional = is_pattern(category) || is_pattern(name);
        let mut unread = Vec::new();
        for [category, name] in found {
            if crate::bpf::has_program(name) {
                self.own.insert(name.clone());
                continue;
            }
            match tracefs.format(category, name) {
                Ok(format) => self.tracepoint(&format, name, is_optional),
                Err(error) if is_optional => unread.push(format!("{category}:{name} ({error})")),
                Err(error) => return Err(format!("cannot record {chosen}: {error}")),
            }
        }
        if !unread.is_empty() {
            let count = unread.len();
            let names = some_of(&unread);
            self.notes.push(format!(
                "{count} of the tracepoints that {chosen} matches are not recorded, since their fields cannot be read: {names}"
            ));
        }
        Ok(())
    }

    pub(super) fn tracepoint(&mut self, format: &Format, name: &str, is_optional: bool) {
        // Patterns may overlap.
        if let Some(known) = self.attached(format) {
            known.is_optional &= is_optional;
            return;
        }
        self.attach(format, name, is_optional, &Condition::Hit);
    }

    /// Adds a tracepoint of all processes.
    pub(super) fn tracepoint_of_all(&mut self, format: &Format, name: &str) {
        let is_optional = self.attached(format).is_none_or(|known| known.is_optional);
        (self.attachments).retain(|attachment| !attachment.point.is_tracepoint(format.id));
        self.attach(format, name, is_optional, &Condition::AnyHit);
    }

    fn attached(&mut self, format: &Format) -> Option<&mut Attachment> {
        let mut attachments = self.attachments.iter_mut();
        attachments.find(|attachment| attachment.point.is_tracepoint(format.id))
    }

    fn attach(&mut self, format: &Format, name: &str, is_optional: bool, condition: &Condition) {
        let kind = self.kind(ChosenClass {
            name: name.to_owned(),
            layout: Layout::Tracepoint(format.clone()),
        });
        self.attachments.push(Attachment {
            point: Point::Tracepoint(format.id),
            name: format!("tracepoint {}", format.name),
            is_optional,
            description: describe_tracepoint(kind, format, condition),
        });
    }
}

/// A message about an unknown tracepoint, with similar names.
fn unknown(all: &[[String; 2]], category: &str, name: &str) -> String {
    let full: Vec<String> = all.iter().map(|pair| pair.join(":")).collect();
    let wanted = format!("{category}:{name}");
    let mut near = did_you_mean(&wanted, full.iter().map(String::as_str));
    if near.is_empty() {
        // The name may exist in another category.
        let others = all.iter().filter(|[_, other]| other == name);
        let others: Vec<String> = others.map(|pair| pair.join(":")).collect();
        let categories: BTreeSet<&str> =
            all.iter().map(|[category, _]| category.as_str()).collect();
        near = match others.is_empty() {
            false => format!("; did you mean '{}'?", others.join("' or '")),
            true => did_you_mean(category, categories.into_iter()),
        };
    }
    format!("this kernel has no tracepoint {wanted}{near}")
}
