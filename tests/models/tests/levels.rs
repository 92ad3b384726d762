//! The model of the merge of two schedulers against what the generator did.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_models::levels::{LevelShape, LevelTraces, Merged, UNKNOWN, merge, record};
use tracebraid_testkit::recorded::temporary;

fn generated(seed: u64, shape: LevelShape, name: &str) -> (LevelTraces, Merged) {
    let directory = temporary().join(format!("levels-{}-{seed}-{name}", std::process::id()));
    let traces = record(seed, shape, &directory);
    let set = TraceSet::open(&traces.all()).expect("the traces can be opened");
    let merged = merge(&set, shape.clock_error as i64);
    std::fs::remove_dir_all(&directory).expect("the traces can be removed");
    (traces, merged)
}

/// Number of records whose user-level thread, LWP and CPU are all known.
fn check(what: &str, shape: LevelShape, traces: &LevelTraces, merged: &Merged) -> usize {
    let truth = &traces.truth;
    let serials = |records: Vec<&u64>| records.into_iter().copied().collect::<Vec<_>>();
    assert_eq!(
        serials(merged.records.keys().collect()),
        serials(truth.records.keys().collect()),
        "{what}: each record once"
    );
    let mut known = 0;
    for (serial, found) in &merged.records {
        let expected = &truth.records[serial];
        let what = format!("{what}, record {serial}: {found:?}, {expected:?}");
        let owner = expected.owner;
        assert!(found.cpu.is_none_or(|cpu| cpu == owner.cpu), "{what}");
        assert!(found.lwp == -1 || found.lwp == owner.lwp, "{what}");
        let is_current = found.ult == owner.current;
        // The entry of the interrupt may be lost.
        let may_be_interrupted = shape.lost_kernel_packets > 0 && expected.is_kernel && is_current;
        let is_right = found.ult == owner.ult || may_be_interrupted;
        assert!(found.ult == UNKNOWN || is_right, "{what}");
        known += usize::from(found.cpu.is_some() && found.lwp != -1 && found.ult != UNKNOWN);
    }
    known
}

#[test]
fn the_model_finds_the_owner_of_every_record() {
    for (name, shape) in LevelShape::all() {
        // The model reads a stream for each thread.
        if shape.shares_stream {
            continue;
        }
        for seed in 0..6 {
            let what = format!("{name}, seed {seed}");
            let (traces, merged) = generated(seed, shape, &name.replace(' ', "-"));
            let known = check(&what, shape, &traces, &merged);
            let all = merged.records.len();
            let lost = shape.lost_kernel_packets + shape.lost_user_packets;
            let least = match (lost, shape.unrecorded_steps) {
                (0, 0) => all,
                (0, _) => all * 9 / 10,
                _ => all / 2,
            };
            assert!(known >= least, "{what}: {known} of {all} are known");
        }
    }
}
