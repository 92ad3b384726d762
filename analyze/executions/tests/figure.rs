//! The sample sequence of Figure 2 of Doray and Dagenais, "Diagnosing performance variations by
//! comparing multi-level execution traces" (2016).

use tracebraid_executions::FrameKind::{Detail, Function, Reason, Thread};
use tracebraid_graph::{ActorId, Graph, NO_OBJECT, Request, State, WaitReason, Wake};
use tracebraid_kernel_model::{Device, Syscall};

use crate::told::{actor, functions, tree, words};

fn blocked(wake: Wake) -> State {
    State::Blocked {
        call: Syscall::OTHER,
        object: NO_OBJECT,
        wake,
        reason: match wake {
            Wake::Request(_) => WaitReason::BlockDevice,
            _ => WaitReason::Thread,
        },
        is_idle: false,
    }
}

#[test]
fn the_sequence_gives_the_papers_tree() {
    let [one, two] = [ActorId(0), ActorId(1)];
    let graph = Graph {
        known_from: 1,
        known_until: 11,
        actors: vec![
            actor(
                1,
                "thread 1",
                &[
                    (1, State::Running(0)),
                    (3, blocked(Wake::Thread(two))),
                    (7, State::Running(0)),
                ],
            ),
            actor(
                2,
                "thread 2",
                &[
                    (1, State::Running(1)),
                    (6, blocked(Wake::Request(0))),
                    (7, State::Running(1)),
                ],
            ),
        ],
        requests: vec![Request {
            begin: 6,
            issued: 6,
            end: 7,
            by: Some(two),
            trace: 0,
            device: Device(8 << 20),
            sectors: 8,
        }]
        .into(),
        disks: vec![((0, Device(8 << 20)), "sda".to_owned())],
        longest_request: 1,
        ..Graph::default()
    };
    // The samples give the exact stack at each time: each stack is valid for the time before it.
    let ran = |time, names: &[&str]| (time, None, functions(names));
    let samples = [
        vec![
            ran(2, &["A"]),
            ran(8, &["A", "B"]),
            ran(9, &["A"]),
            ran(10, &["A", "X"]),
            ran(11, &["A"]),
        ],
        vec![ran(3, &[]), ran(4, &["X"]), ran(5, &[]), ran(7, &["X"])],
    ];
    let found = tree(&graph, &samples, (one, 1, 11));
    let a = (Function, "A");
    let (b, x, other) = ((Function, "B"), (Function, "X"), (Thread, "thread 2"));
    let expected = [
        (words(&[a]), 3),
        (words(&[a, b]), 2),
        (words(&[a, b, other]), 1),
        (words(&[a, b, other, x]), 2),
        (
            words(&[a, b, other, x, (Reason, "block-device"), (Detail, "sda")]),
            1,
        ),
        (words(&[a, x]), 1),
    ];
    assert_eq!(found, expected.into_iter().collect());
}
