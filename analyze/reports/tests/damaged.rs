//! Reports on traces that cannot be decoded completely.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Together};
use tracebraid_models::plain::{CpuReport, plain};
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::disk::DiskAnalysis;
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::irq::IrqAnalysis;
use tracebraid_reports::memory::MemoryAnalysis;
use tracebraid_reports::net::NetAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_reports::syscalls::SyscallAnalysis;
use tracebraid_reports::waits::WaitAnalysis;

use tracebraid_models::law::{
    ALL, Asked, LARGE, Lawful, any_tree, as_in_one_piece, as_modelled, every_way, json,
};
use tracebraid_models::traces::{kernel_trace, ours};

/// A copy of a recorded trace in which some packets of two CPUs have undecodable bytes in the
/// middle; removed when dropped.
struct Damaged(std::path::PathBuf);

impl Damaged {
    fn new(name: &str) -> Damaged {
        let from = ours(name, name).expect("it is committed");
        static COPIES: AtomicU32 = AtomicU32::new(0);
        let copy = COPIES.fetch_add(1, Ordering::Relaxed);
        let to = std::env::temp_dir().join(format!("damaged-{name}-{}-{copy}", std::process::id()));
        std::fs::create_dir_all(&to).expect("a directory for the copy");
        for file in std::fs::read_dir(&from)
            .expect("a trace")
            .map(|file| file.expect("a file"))
        {
            if file.file_type().expect("a type").is_file() {
                std::fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
            }
        }
        let set = TraceSet::open(std::slice::from_ref(&to)).expect("the copy can be opened");
        for (stream, places) in set.traces[0].streams.iter().zip([&[1, 2][..], &[0]]) {
            for &packet in places {
                // At this offset the damage does not hit a decoded field, whose value would be
                // believed.
                let packet = &stream.packets[packet];
                let at = packet.offset + packet.content_bits / 8 * 47 / 100;
                let path = &stream.files[packet.file as usize].path;
                let file = std::fs::File::options().write(true).open(path);
                file.and_then(|file| file.write_all_at(&[0xFF; 256], at))
                    .expect("it can be damaged");
            }
        }
        Damaged(to)
    }

    fn set(&self) -> TraceSet {
        TraceSet::open(std::slice::from_ref(&self.0)).expect("the copy can be opened")
    }
}

impl Drop for Damaged {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn cpu(set: &TraceSet) -> CpuReport {
    let analysis = CpuAnalysis::new(set, Selection::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    plain(&outcome.expect("not cancelled").report)
}

/// After damage the running thread is unknown up to the next switch, however the trace is folded,
/// and according to a plain pass.
#[test]
fn what_cannot_be_decoded_makes_unknown_who_runs() {
    let name = "kernel-mix-small";
    let damaged = Damaged::new(name);
    let set = damaged.set();
    let sound = cpu(&kernel_trace(name).expect("it is committed"));
    let found = cpu(&set);
    for (at, cuts) in [2, 1, 0, 0].into_iter().enumerate() {
        let (before, after) = (&sound.cpus[at], &found.cpus[at]);
        assert_eq!(after.losses - before.losses, cuts, "CPU {at}");
        assert_eq!(
            after.unknown_ns > before.unknown_ns + 1_000_000,
            cuts > 0,
            "CPU {at}"
        );
        assert_eq!(
            after.inconsistent_switches, before.inconsistent_switches,
            "CPU {at}"
        );
    }
    let (begin, end) = tracebraid_models::events::extent(&set);
    let third = (end - begin) / 3;
    let range = (begin + third, end - third);
    for asked in [ALL, Asked { range, ..ALL }] {
        as_modelled::<CpuAnalysis>(name, &set, asked, LARGE);
    }
    any_tree::<CpuAnalysis>(&set, 1);
}

fn holds<A: Lawful>(set: &TraceSet) {
    as_in_one_piece::<A>("damaged", set, ALL, LARGE);
    any_tree::<A>(set, 1);
}

fn report<A: KernelAnalysis>(set: &TraceSet) -> serde_json::Value {
    let analysis = A::new(set, Selection::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    serde_json::to_value(outcome.expect("not cancelled").report)
        .expect("a report can be serialized")
}

/// All reports treat damage as a loss of events.
#[test]
fn what_cannot_be_decoded_is_lost() {
    let name = "kernel-mix-small";
    let damaged = Damaged::new(name);
    let set = damaged.set();
    holds::<DiskAnalysis>(&set);
    holds::<FilesAnalysis>(&set);
    holds::<IoAnalysis>(&set);
    holds::<IrqAnalysis>(&set);
    holds::<MemoryAnalysis>(&set);
    holds::<NetAnalysis>(&set);
    holds::<ProcessAnalysis>(&set);
    holds::<SchedAnalysis>(&set);
    holds::<SyscallAnalysis>(&set);
    holds::<WaitAnalysis>(&set);
    let sound = kernel_trace(name).expect("it is committed");
    let unknown = |report: serde_json::Value| {
        report["total"]["unknown_thread"]
            .as_u64()
            .expect("a number")
    };
    for (before, after) in [
        (
            report::<SyscallAnalysis>(&sound),
            report::<SyscallAnalysis>(&set),
        ),
        (report::<WaitAnalysis>(&sound), report::<WaitAnalysis>(&set)),
        (
            report::<FilesAnalysis>(&sound),
            report::<FilesAnalysis>(&set),
        ),
    ] {
        assert!(unknown(after) > unknown(before));
    }
    let active = cpu(&set).total.active_ns;
    assert_eq!(
        report::<ProcessAnalysis>(&set)["total"]["active_ns"],
        active
    );
}

/// Where streams are merged by time, damage has a position in the order of time, too.
#[test]
fn damage_is_the_same_where_streams_are_merged() {
    let damaged = Damaged::new("kernel-discarded");
    let set = damaged.set();
    type Parts = (CpuAnalysis, IoAnalysis, SyscallAnalysis);
    let together = Together::<Parts>::new(&set, &Selection::default(), Default::default());
    let outcome = fold(&set, &together, Options::default(), &Control::default());
    let whole = outcome.expect("not cancelled").report;
    assert_eq!(json(&whole.0), json(&cpu(&set)));
    assert!(
        whole
            .0
            .rows("cpus")
            .map(|cpu| cpu.unsigned("losses"))
            .sum::<u64>()
            >= 3
    );
    every_way("damaged", &set, &together, &json(&whole), LARGE);
}
