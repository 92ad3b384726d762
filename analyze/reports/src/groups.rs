//! Groups of histograms.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_follow::{By, CpuKey, Groupings, Head, People, Process, Thread, Views};
use tracebraid_statistics::{Distribution, Powers};
use tracebraid_tables::{Column, Group, Section, Unit};

/// Histograms by group, in the order in which they are printed.
pub(crate) type Groups = Vec<(Group, Powers)>;

/// Groups of several kinds.
pub(crate) const OF: Column = Column::new("of", "Of", Unit::Text);

/// The table of the requested histograms, if there are any; `about` is the column of the usual
/// groups.
pub(crate) fn section(
    views: &Views,
    groupings: Groupings,
    about: Column,
    groups: impl Fn(By) -> Groups,
) -> Option<Section> {
    let by = views.groupings(groupings);
    let about = if by == groupings.usual { about } else { OF };
    let all = by.iter().flat_map(|by| groups(*by)).collect();
    (!by.is_empty()).then(|| tracebraid_tables::histogram(about, all))
}

/// Histograms of threads that are shown.
pub(crate) struct OfThreads<'a> {
    pub(crate) head: &'a Head,
    pub(crate) people: &'a People,
    pub(crate) threads: Vec<(Thread, Powers)>,
}

impl OfThreads<'_> {
    /// By thread or by process, those with most values first; else all together.
    pub(crate) fn groups(&self, by: By) -> Groups {
        match by {
            By::Thread => self.by_thread(),
            By::Process => self.by_process(),
            _ => all(self.threads.iter().map(|(_, powers)| powers)),
        }
    }

    fn by_thread(&self) -> Groups {
        let mut threads: Vec<&(Thread, Powers)> = self.threads.iter().collect();
        threads.sort_by_key(|(thread, powers)| (Reverse(powers.count()), thread.trace, thread.tid));
        let group =
            |(thread, powers): &(Thread, Powers)| (of_thread(self.head, thread), powers.clone());
        let groups = threads.into_iter().map(group);
        groups.filter(|(_, powers)| powers.count() > 0).collect()
    }

    fn by_process(&self) -> Groups {
        let threads = self.threads.iter();
        let threads = threads.map(|(thread, powers)| (thread.clone(), powers));
        let add = |sum: &mut Powers, powers: &Powers| sum.merge(powers);
        let mut processes: Vec<(Process, Powers)> = self.people.processes(threads, add);
        processes.retain(|(_, powers)| powers.count() > 0);
        processes.sort_by_key(|(process, powers)| {
            let Process {
                trace, pid, tid, ..
            } = *process;
            (Reverse(powers.count()), trace, pid, tid)
        });
        let named = |(process, powers): (Process, Powers)| {
            let id = process.pid.map(|pid| pid.to_string());
            let id = id.or(process.tid.map(|tid| format!("tid {tid}")));
            let group = Group {
                name: called(self.head, process.trace, process.name.as_deref(), id),
                thread: Some(Thread::from(&process)),
            };
            (group, powers)
        };
        processes.into_iter().map(named).collect()
    }
}

/// Groups in the order of their numbers of values, then of their names.
pub(crate) fn most_first(mut groups: Groups) -> Groups {
    groups.sort_by(|(a, own), (b, other)| (other.count(), &a.name).cmp(&(own.count(), &b.name)));
    groups
}

/// One group of all values; none without values.
pub(crate) fn all(parts: impl Iterator<Item = impl Borrow<Powers>>) -> Groups {
    let mut all = Powers::default();
    parts.for_each(|part| all.merge(part.borrow()));
    let all = (all.count() > 0).then(|| ("all".to_owned().into(), all));
    all.into_iter().collect()
}

/// The values of a CPU, among those of the CPUs in their order.
pub(crate) fn of_cpu(cpus: &mut Vec<(CpuKey, Distribution)>, cpu: CpuKey) -> &mut Distribution {
    let at = cpus.binary_search_by_key(&cpu, |own| own.0);
    let at = at.unwrap_or_else(|at| {
        cpus.insert(at, (cpu, Distribution::default()));
        at
    });
    &mut cpus[at].1
}

/// By CPU, in the order of CPUs; each part has the values of some CPUs.
pub(crate) fn by_cpu<'p>(
    head: &Head,
    parts: impl Iterator<Item = &'p (CpuKey, Distribution)>,
) -> Groups {
    let mut cpus: BTreeMap<CpuKey, Powers> = BTreeMap::new();
    for (cpu, values) in parts {
        cpus.entry(*cpu).or_default().merge(&values.powers());
    }
    let name = |cpu: CpuKey| head.of_host(cpu.trace, format!("CPU {}", cpu.cpu));
    let groups = cpus.into_iter();
    groups
        .map(|(cpu, powers)| (name(cpu).into(), powers))
        .collect()
}

/// The group of a thread.
pub(crate) fn of_thread(head: &Head, thread: &Thread) -> Group {
    let id = thread.tid.map(|tid| tid.to_string());
    Group {
        name: called(head, thread.trace, thread.name.as_deref(), id),
        thread: Some(thread.clone()),
    }
}

fn called(head: &Head, trace: u32, name: Option<&str>, id: Option<String>) -> String {
    let called = match (name, id) {
        (Some(name), Some(id)) => format!("{name} ({id})"),
        (None, Some(id)) => format!("? ({id})"),
        (_, None) => "unknown thread".to_owned(),
    };
    head.of_host(trace, called)
}
