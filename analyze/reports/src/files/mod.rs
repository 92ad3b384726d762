//! Files: bytes read and written, latency of calls, and the processes that use each file.
//!
//! Each CPU is followed alone: entries are paired with exits while their thread runs. The files of
//! descriptors depend on the order of time over all CPUs. Items ([`FileItem`]) are played in slices
//! of time in parallel (`slice`), which are then appended to the state before them (`compose`); or,
//! where that is impossible, in order by a [`FileMachine`] whose calls a `Counter` counts.
//! `docs/reference/files.md` defines each number.

mod cache;
mod compose;
mod counter;
mod options;
mod report;
mod rows;
mod slice;
mod slice_files;
mod slice_steps;
mod stats;
mod tally;
mod unmerged;

use std::collections::VecDeque;
use std::sync::Arc;

pub use options::{FilesOptions, GROUPINGS, type_names};
use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Ahead, Dictionaries, SliceActs, SlicePart, Texts, ThreadAct};
pub use tracebraid_files::FileChoice;
use tracebraid_files::{
    Around, CallFilter, Class, FileItem, FileMachine, FileRules, Seen, TableAct,
};
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::files::cache::Cache;
use crate::files::counter::Counter;
use crate::files::slice::{Beginning, Slice};
use crate::files::tally::Tally;
use crate::files::unmerged::Unmerged;
use tracebraid_follow::{Event, Input, Items, Packet, PerCpu, Rules, Selection, ThreadKey};
use tracebraid_tables::Report;

/// Analyses the use of files.
pub type FilesAnalysis = PerCpu<FilesRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct FilesRules {
    follow: FileRules,
    options: FilesOptions,
    /// Bounds of durations, for a second pass.
    ranges: Option<Vec<(Class, (u64, u64))>>,
}

/// State after some chunks.
///
/// Besides items that wait to be played, it has a bounded number of entries for each thread, for
/// each file that a thread uses, and for each descriptor that is open or was changed since the
/// start of the oldest open call; with `--view log` also one for each call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FilesPartial {
    seen: Seen,
    /// Items before this time have been taken.
    until: Option<i64>,
    /// A part of a slice is being played in the order of time and is not composed yet.
    is_replaying: bool,
    /// A thread may get a table of its own when its call ends.
    is_unclear: bool,
    /// Sums of calls besides those in `played`.
    sums: Tally,
    /// Sums of composed slices.
    unmerged: Vec<Unmerged>,
    played: Played,
    /// Slices to be played next; empty once all are composed.
    #[serde(skip)]
    next: VecDeque<Next>,
}

/// State at the end of the played slices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Played {
    machine: FileMachine,
    /// Texts that `machine` refers to.
    texts: Texts,
    tally: Tally,
    #[serde(skip)]
    cache: Cache<tracebraid_files::FileId>,
}

impl Rules for FilesRules {
    type Partial = FilesPartial;
    type Report = Report;

    type Options = FilesOptions;

    fn new(selection: &Selection, options: &FilesOptions) -> Self {
        let ranges = options.views.ranges.as_ref();
        let of = |(name, range): (&String, &(u64, u64))| Some((Class::from_name(name)?, *range));
        let calls = CallFilter {
            durations: options.views.limits,
            sizes: options.sizes,
            chosen: options.calls.chosen(),
        };
        FilesRules {
            follow: FileRules {
                selection: selection.clone(),
                calls,
                files: options.files.clone(),
                marks: Vec::new(),
            },
            options: options.clone(),
            ranges: ranges.map(|ranges| ranges.iter().filter_map(of).collect()),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        self.follow.wants(event)
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let ends = |event: &KernelEvent| match event {
            KernelEvent::Exit(exit) if event.is_of_latencies() => {
                exit.fixed().is_none_or(|call| call.action().is_io())
            }
            _ => false,
        };
        if !has(&ends) {
            return Some(
                "no reads or writes were recorded: enable system calls (lttng enable-event --kernel \
                 --syscall --all, or open,openat,close,read,write,... for few)",
            );
        }
        let switches = has(&|event| matches!(event, KernelEvent::Switch(_)));
        (!switches).then_some(
            "the threads of calls are unknown: enable sched_switch, or add the context tid",
        )
    }

    fn first(&self) -> FilesPartial {
        FilesPartial {
            seen: Seen::first(),
            ..FilesPartial::default()
        }
    }

    fn packet(&self, partial: &mut FilesPartial, packet: &Packet) {
        self.follow.packet(&mut partial.seen, packet);
    }

    #[inline(always)]
    fn event(&self, partial: &mut FilesPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        self.follow.event(&mut partial.seen, event, body);
    }

    fn exchange(&self, partial: &mut FilesPartial, resident: &mut FilesPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut FilesPartial, later: FilesPartial) {
        self.follow.merge(&mut earlier.seen, later.seen);
        earlier.sums.join(later.sums, self.options.views.top());
    }

    fn slices<'a>(
        &'a self,
        partial: &mut FilesPartial,
        watermark: i64,
    ) -> Vec<tracebraid_engine::Slice<'a, FilesPartial>> {
        partial.seen.keep_texts();
        let begin = partial.until.replace(watermark).unwrap_or(i64::MIN);
        let (items, acts) = partial.seen.queue.cut(watermark);
        let since = partial.seen.asked_since(watermark);
        let dictionaries = Arc::new(partial.seen.dictionaries.clone());
        partial.seen.forget_texts(watermark);
        if items.is_empty() {
            return Vec::new();
        }
        vec![Box::new(move |_| {
            let next = Next {
                acts: SliceActs::new(listed(acts)),
                items,
                dictionaries,
                begin,
                since,
            };
            Box::new(move |partial| partial.next.push_back(next))
        })]
    }

    fn follow_up<'a>(
        &'a self,
        partial: &mut FilesPartial,
    ) -> Vec<tracebraid_engine::Slice<'a, FilesPartial>> {
        let mut slices = self.unmerged(partial);
        while !partial.is_replaying
            && let Some(mut next) = partial.next.pop_front()
        {
            match self.part(partial, &mut next) {
                SlicePart::Ahead(ahead) => slices.push(self.slice(next, ahead)),
                SlicePart::InOrder(until) => {
                    let items = match until {
                        Some(until) => next.items.cut(until),
                        None => std::mem::take(&mut next.items),
                    };
                    next.begin = until.unwrap_or(next.begin);
                    partial.is_replaying = true;
                    slices.push(self.replayed(items, Arc::clone(&next.dictionaries)));
                    partial.next.push_front(next);
                }
            }
        }
        slices
    }

    fn finish(&self, input: &Input, mut partial: FilesPartial) -> Report {
        partial.seen.keep_texts();
        self.follow.end(&mut partial.seen);
        let items = std::mem::take(&mut partial.seen.queue.items);
        let dictionaries = std::mem::take(&mut partial.seen.dictionaries);
        self.replay(&mut partial.played, items, &dictionaries);
        let top = self.options.views.top();
        let tally = std::mem::take(&mut partial.played.tally);
        partial.sums.join(tally, top);
        for unmerged in std::mem::take(&mut partial.unmerged) {
            unmerged.merge_into(&mut partial.sums, top);
        }
        partial.played.tally = std::mem::take(&mut partial.sums);
        report::report(self, input, partial)
    }
}

/// A slice whose acts are known and in the order of time.
#[derive(Clone, Debug)]
struct Next {
    acts: SliceActs,
    items: Items<FileItem>,
    dictionaries: Arc<Dictionaries>,
    begin: i64,
    /// State before this time is not needed.
    since: i64,
}

/// Acts that decide which thread uses which descriptor table, in the order of time.
fn listed(mut acts: Items<TableAct>) -> Vec<ThreadAct> {
    let mut all = Vec::new();
    acts.play(None, |cpu, time, (tid, act)| {
        let trace = cpu.trace;
        all.push((ThreadKey { trace, tid }, time, act));
    });
    all
}

impl FilesRules {
    /// Slices that merge the sums of composed slices.
    fn unmerged<'a>(
        &'a self,
        partial: &mut FilesPartial,
    ) -> Vec<tracebraid_engine::Slice<'a, FilesPartial>> {
        let all = std::mem::take(&mut partial.unmerged);
        let top = self.options.views.top();
        let one = |unmerged: Unmerged| -> tracebraid_engine::Slice<'a, FilesPartial> {
            Box::new(move |resident: &mut FilesPartial| {
                unmerged.merge_into(&mut resident.sums, top);
                Box::new(|_: &mut FilesPartial| {})
            })
        };
        all.into_iter().map(one).collect()
    }

    /// The next part of a slice.
    fn part(&self, partial: &mut FilesPartial, next: &mut Next) -> SlicePart {
        let descriptors = &mut partial.played.machine.descriptors;
        if self.options.files.is_all() {
            return next.acts.next(descriptors, partial.is_unclear);
        }
        // With patterns of paths, the selection of calls depends on facts that are unknown within a
        // slice.
        next.acts.all_in_order(descriptors)
    }

    /// A slice that is played in parallel with others.
    fn slice<'a>(&'a self, next: Next, ahead: Ahead) -> tracebraid_engine::Slice<'a, FilesPartial> {
        Box::new(move |_resident: &mut FilesPartial| {
            let Next {
                acts,
                mut items,
                dictionaries,
                begin,
                since,
            } = next;
            // Freed here and not while composing, since freeing takes time.
            drop(acts);
            let beginning = Beginning {
                ahead,
                dictionaries,
                time: begin,
            };
            let mut slice = Slice::new(self, beginning);
            items.play(None, |cpu, time, item| slice.apply(cpu, time, item));
            slice.end(since);
            drop(items);
            Box::new(move |partial: &mut FilesPartial| {
                let unmerged = compose::compose(self, &mut partial.played, slice, since);
                partial.unmerged.push(unmerged);
            })
        })
    }

    /// A part of a slice that is played once the state before it is known.
    fn replayed<'a>(
        &'a self,
        items: Items<FileItem>,
        dictionaries: Arc<Dictionaries>,
    ) -> tracebraid_engine::Slice<'a, FilesPartial> {
        Box::new(move |_resident: &mut FilesPartial| {
            Box::new(move |partial: &mut FilesPartial| {
                self.replay(&mut partial.played, items, &dictionaries);
                partial.is_replaying = false;
                partial.is_unclear = partial.played.machine.is_unclear();
            })
        })
    }

    /// Plays items in the order of time.
    fn replay(&self, played: &mut Played, mut items: Items<FileItem>, dictionaries: &Dictionaries) {
        let Played {
            machine,
            texts,
            tally,
            cache,
        } = played;
        let rules = self;
        let mut counter = Counter {
            rules,
            tally,
            cache,
        };
        items.play(None, |cpu, time, mut item| {
            item.texts(|text| *text = dictionaries.known(*text, texts));
            let mut around = Around {
                rules: &self.follow,
                texts: &mut *texts,
            };
            machine.apply(&mut counter, &mut around, cpu, time, item);
        });
    }
}
