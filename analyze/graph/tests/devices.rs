//! Paths through waits for devices, and those of commands of devices: equal to plain models on
//! random graphs.

use std::sync::Arc;

use proptest::prelude::*;
use tracebraid_follow::ThreadKey;
use tracebraid_graph::{
    ActorId, CommandState, DeviceActivity, DeviceCommand, DeviceTimes, DeviceWait, Graph, Segment,
    SegmentKind, State, Stretch, WaitReason, Wake,
};

use crate::random::{ACTORS, END, graph};

fn command() -> impl Strategy<Value = DeviceCommand> {
    let steps = [0i64..20, 0..10, 0..10, 0..20];
    let of = (0u32..2, 0u32..2, 0..ACTORS as i32, 0i64..END, 0i64..30);
    (of, steps).prop_map(|((device, process, tid, called, ready), steps)| {
        let mut at = called;
        let [queued, submitted, started, ended] = steps.map(|step| {
            at += step;
            at
        });
        DeviceCommand {
            device,
            thread: ThreadKey { trace: 0, tid },
            process,
            queue: None,
            name: "kernel".into(),
            is_kernel: true,
            called: Some(called),
            queued,
            ready: (queued + ready).min(started),
            submitted,
            started,
            ended,
        }
    })
}

const COMMANDS: usize = 12;

fn devices() -> impl Strategy<Value = DeviceTimes> {
    let wait = (0..ACTORS as i32, 0i64..END, 1i64..40, 0..COMMANDS as u32);
    let commands = prop::collection::vec(command(), COMMANDS);
    (commands, prop::collection::vec(wait, 0..30)).prop_map(|(commands, waits)| {
        let mut times = DeviceTimes::new(commands);
        let wait = |(tid, begin, length, command): (i32, i64, i64, u32)| {
            let ended = times.commands()[command as usize].ended;
            let wait = DeviceWait {
                begin,
                end: (begin + length).min(ended),
                command,
            };
            (ThreadKey { trace: 0, tid }, wait)
        };
        let waits: Vec<_> = waits.into_iter().map(wait).collect();
        times.set_waits(waits);
        times
    })
}

/// Activity of the device at a time before the command is complete.
fn activity_at(times: &DeviceTimes, command: u32, time: i64) -> DeviceActivity {
    let awaited = &times.commands()[command as usize];
    let executes =
        |of: &DeviceCommand| of.device == awaited.device && of.started <= time && time < of.ended;
    let earlier = times
        .commands()
        .iter()
        .position(|of| executes(of) && of.started < awaited.started && time < awaited.started);
    if let Some(place) = earlier {
        let is_own = times.commands()[place].process == awaited.process;
        return DeviceActivity {
            command: place as u32,
            state: match is_own {
                true => CommandState::Executing,
                false => CommandState::ExecutingForOther,
            },
        };
    }
    let state = match time {
        _ if time >= awaited.started => CommandState::Executing,
        _ if time >= awaited.queued && time < awaited.ready => CommandState::Dependency,
        _ if time < awaited.submitted => CommandState::HostQueue,
        _ => CommandState::DeviceQueue,
    };
    DeviceActivity { command, state }
}

/// A time line whose waits are divided, nanosecond by nanosecond.
fn divided(times: &DeviceTimes, key: ThreadKey, line: &[Stretch]) -> Vec<Stretch> {
    let mut divided: Vec<Stretch> = Vec::new();
    for (place, stretch) in line.iter().enumerate() {
        divided.push(*stretch);
        let State::Blocked { call, object, .. } = stretch.state else {
            continue;
        };
        let until = line.get(place + 1).map_or(2 * END, |next| next.begin);
        for time in stretch.begin..until {
            let waits = times.waits(key, (i64::MIN, i64::MAX)).iter();
            let mut waits = waits.filter(|wait| wait.begin <= time && time < wait.end);
            let state = waits.next().map_or(stretch.state, |wait| State::Blocked {
                call,
                object,
                wake: Wake::Command(activity_at(times, wait.command, time)),
                reason: WaitReason::Device,
                is_idle: false,
            });
            match divided.last_mut() {
                Some(last) if last.begin == time => last.state = state,
                Some(last) if last.state == state => {}
                _ => divided.push(Stretch { begin: time, state }),
            }
        }
    }
    divided
}

/// A graph in which no path leaves a time line for work that began earlier.
fn without_cuts(mut graph: Graph) -> Graph {
    graph.requests = Vec::new().into();
    for (tid, actor) in (0..).zip(&mut graph.actors) {
        actor.key = ThreadKey { trace: 0, tid };
        actor.works.clear();
        for stretch in &mut actor.line {
            if let State::Blocked { is_idle, .. } = &mut stretch.state {
                *is_idle = false;
            }
        }
    }
    graph
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn paths_are_those_through_divided_time_lines(
        graph in graph().prop_map(without_cuts),
        times in devices(),
        of in 0u32..ACTORS,
        window in (0i64..END, 0i64..END),
    ) {
        let window = (window.0.min(window.1), window.0.max(window.1));
        let mut model = graph.clone();
        for actor in &mut model.actors {
            actor.line = divided(&times, actor.key, &actor.line);
        }
        let graph = Graph { devices: Arc::new(times), ..graph };
        let path = graph.path(ActorId(of), window.0, window.1);
        prop_assert_eq!(&path, &model.path(ActorId(of), window.0, window.1));
        prop_assert!(path.tiles(window.0, window.1));
    }

    #[test]
    fn waits_for_devices_leave_no_gaps_in_any_graph(
        graph in graph(),
        times in devices(),
        of in 0u32..ACTORS,
        window in (0i64..END, 0i64..END),
    ) {
        let window = (window.0.min(window.1), window.0.max(window.1));
        let graph = Graph { devices: Arc::new(times), ..graph };
        let path = graph.path(ActorId(of), window.0, window.1);
        prop_assert!(path.tiles(window.0, window.1));
    }

    #[test]
    fn paths_of_commands_are_those_of_the_thread_and_then_of_the_device(
        graph in graph().prop_map(without_cuts),
        times in devices(),
        of in prop::option::of(0u32..ACTORS),
        place in 0..COMMANDS as u32,
    ) {
        let graph = Graph { devices: Arc::new(times), ..graph };
        let command = &graph.devices.commands()[place as usize];
        let begin = command.called.expect("a call");
        let path = graph.command_path(of.map(ActorId), place).expect("a path");
        prop_assert!(path.tiles(begin, command.ended));
        let is_on_device = |segment: &&Segment| matches!(segment.kind, SegmentKind::OnDevice(_));
        let (on_device, before): (Vec<&Segment>, Vec<&Segment>) =
            path.segments.iter().partition(is_on_device);
        if let Some(of) = of {
            let of_thread = graph.path(ActorId(of), begin, command.queued);
            prop_assert!(before.into_iter().eq(&of_thread.segments));
        }
        let mut at = command.queued;
        for segment in on_device {
            prop_assert_eq!(segment.begin, at);
            at = segment.end;
            for time in segment.begin..segment.end {
                let expected = activity_at(&graph.devices, place, time);
                prop_assert_eq!(segment.kind, SegmentKind::OnDevice(expected), "{}", time);
            }
        }
        prop_assert_eq!(at, command.ended);
    }
}
