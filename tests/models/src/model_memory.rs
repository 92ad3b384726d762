//! The memory report, by one plain pass over the events of each CPU.

use std::collections::BTreeMap;

use tracebraid_ctf::trace::TraceSet;

use crate::events::{ModelEvent, Record, by_cpu, merged};
use crate::law::Asked;

/// A thread id; 0 for idle, `None` if unknown.
pub type Who = Option<i32>;

/// Amounts by thread and kind of event.
pub type Found = BTreeMap<Who, BTreeMap<&'static str, i64>>;

/// The report for the first trace, with LTTng's event names.
pub fn find(set: &TraceSet, asked: Asked) -> Found {
    let mut found = Found::new();
    each(set, asked, |_, _, who, event| {
        for (what, amount) in counted(event) {
            *found.entry(who).or_default().entry(what).or_default() += amount;
        }
    });
    found
}

/// Pages allocated or freed by one event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    pub time: i64,
    pub cpu: u32,
    pub who: Who,
    pub what: &'static str,
    pub order: i64,
}

/// All moves in the order of time, without duplicate reports of the same pages.
pub fn moves(set: &TraceSet, asked: Asked) -> Vec<Move> {
    let mut moves = Vec::new();
    each(set, asked, |time, cpu, who, event| {
        let what = match event.name.as_str() {
            "kmem_mm_page_alloc" if event.int("pfn") == Some(-1) => "failed",
            "kmem_mm_page_alloc" => "allocated",
            "kmem_mm_page_free" => "freed",
            _ => return,
        };
        let order = event.int("order").unwrap_or(0);
        moves.push(Move {
            time,
            cpu,
            who,
            what,
            order,
        });
    });
    moves.sort();
    moves
}

/// Calls a function for each selected event, with its time, its CPU and the thread that runs there.
fn each(set: &TraceSet, asked: Asked, mut to: impl FnMut(i64, u32, Who, &Record)) {
    let mut running: BTreeMap<u32, Who> = BTreeMap::new();
    let wanted = |name: &str| {
        ["sched_", "kmem_", "x86_", "mm_", "lttng_"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    for entry in merged(by_cpu(set, wanted)) {
        let event = match &entry.what {
            ModelEvent::Packet { lost, .. } => {
                if *lost {
                    running.insert(entry.cpu, None);
                }
                continue;
            }
            ModelEvent::Event(event) => event,
            ModelEvent::Cut => {
                running.insert(entry.cpu, None);
                continue;
            }
        };
        match event.name.as_str() {
            "sched_switch" => {
                let next = event.id("next_tid").expect("a thread");
                running.insert(entry.cpu, Some(next));
            }
            _ => {
                let is_in = asked.range.0 <= entry.time && entry.time < asked.range.1;
                let is_chosen = asked.cpus.is_none_or(|cpus| cpus.contains(&entry.cpu));
                let who = running.get(&entry.cpu).copied().flatten();
                if is_in && is_chosen {
                    to(entry.time, entry.cpu, who, event);
                }
            }
        }
    }
}

fn counted(event: &Record) -> Vec<(&'static str, i64)> {
    let int = |name| event.int(name).unwrap_or(0);
    let pages = 1 << int("order");
    match event.name.as_str() {
        "kmem_mm_page_alloc" if int("pfn") == -1 => vec![("failed", 1)],
        "kmem_mm_page_alloc" => vec![("allocated_pages", pages), ("balance_pages", pages)],
        "kmem_mm_page_free" => vec![("freed_pages", pages), ("balance_pages", -pages)],
        "kmem_mm_page_free_batched" => vec![("batched_pages", 1)],
        "kmem_kmalloc" | "kmem_cache_alloc" => vec![
            ("objects", 1),
            ("requested_bytes", int("bytes_req")),
            ("allocated_bytes", int("bytes_alloc")),
        ],
        "kmem_kfree" | "kmem_cache_free" => vec![("freed_objects", 1)],
        "x86_exceptions_page_fault_user" => vec![("user_faults", 1)],
        "x86_exceptions_page_fault_kernel" => vec![("kernel_faults", 1)],
        "mm_filemap_add_to_page_cache" => vec![("added_pages", 1)],
        "mm_filemap_delete_from_page_cache" => vec![("removed_pages", 1)],
        "mm_vmscan_direct_reclaim_begin" => vec![("direct_reclaims", 1)],
        "mm_vmscan_direct_reclaim_end" => vec![("reclaimed_pages", int("nr_reclaimed"))],
        "mm_vmscan_kswapd_wake" => vec![("kswapd_wakes", 1)],
        _ => Vec::new(),
    }
}
