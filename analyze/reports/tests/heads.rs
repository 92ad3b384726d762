//! Reports on kernel events do not depend on packet heads: the same trace with fewer or wrong
//! fields in them gives the same reports.

use tracebraid_clocks::PacketAnalysis;
use tracebraid_ctf::schema::Roles;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_graph::GraphAnalysis;
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
use tracebraid_testkit::bare::Bare;
use tracebraid_testkit::rng::Rng;

use crate::counted::Directory;
use crate::law::{for_each, for_each_per_cpu};
use tracebraid_models::events::extent;
use tracebraid_models::law::{ALL, Asked, Lawful, Ways, as_told, folded};
use tracebraid_models::synthetic::{self, Shape};

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 2000,
    packet: 900,
    ..Shape::PLAIN
};

const WAYS: Ways = &[(1, u64::MAX), (1, 1), (2, 2000)];

/// The report on the other trace equals that on the first, however it is folded.
fn same_report<A: Lawful>(what: &str, (whole, other): (&TraceSet, &TraceSet), asked: Asked) {
    let expected = folded(whole, &asked.analysis::<A>(whole), (1, u64::MAX));
    as_told::<A>(what, other, asked, &expected, WAYS);
}

fn same_reports(what: &str, whole: &TraceSet, other: &Bare) {
    let directory = Directory::new();
    other.save(&directory.0).expect("the trace can be written");
    let other = TraceSet::open(&[&directory.0]).expect("the trace can be opened");
    let (begin, end) = extent(whole);
    let third = (end - begin) / 3;
    let middle = Asked {
        range: (begin + third, end - third),
        cpus: Some(&[0, 1]),
    };
    for asked in [ALL, middle] {
        for_each!(same_report(what, (whole, &other), asked));
        for_each_per_cpu!(same_report(what, (whole, &other), asked));
    }
}

fn shapes() -> [Shape; 3] {
    let two_streams = Shape {
        two_streams: true,
        ..SHAPE
    };
    // A whole stream in one packet, as DPDK writes it.
    let one_packet = Shape {
        packet: 1 << 19,
        ..SHAPE
    };
    [SHAPE, two_streams, one_packet]
}

#[test]
fn reports_do_not_need_times_or_sizes_in_heads() {
    const TIMES: [Roles; 2] = [Roles::CLOCK_TIMESTAMP, Roles::PACKET_END_TIMESTAMP];
    const SIZES: [Roles; 2] = [Roles::PACKET_CONTENT_LENGTH, Roles::PACKET_TOTAL_LENGTH];
    let lacks: [&[Roles]; 4] = [
        &TIMES[..1],
        &TIMES[1..],
        &TIMES,
        &[TIMES[0], TIMES[1], SIZES[0], SIZES[1]],
    ];
    for (seed, shape) in (0..).zip(shapes()) {
        let (path, whole) = synthetic::trace(seed, shape);
        let bare = Bare::read(&path).expect("the trace can be read");
        for roles in lacks {
            let less = bare
                .without(roles, true)
                .expect("it can be read without them");
            same_reports(&format!("seed {seed} without {roles:?}"), &whole, &less);
        }
        let _ = std::fs::remove_dir_all(path);
    }
}

#[test]
fn reports_do_not_need_right_times_in_heads() {
    for (seed, shape) in (10..).zip(shapes()) {
        let (path, whole) = synthetic::trace(seed, shape);
        let bare = Bare::read(&path).expect("the trace can be read");
        for round in 0..2 {
            let mut odd = bare.clone();
            assert!(odd.make_odd(&mut Rng::new(seed * 10 + round)) > 0);
            same_reports(&format!("seed {seed} with odd times {round}"), &whole, &odd);
        }
        let _ = std::fs::remove_dir_all(path);
    }
}
