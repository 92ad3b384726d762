//! Executions by commands of devices, and waits for them: equal to those of the whole graph, for
//! all ways to read the trace, and to the times of the commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_devices::{DeviceAnalysis, Keep};
use tracebraid_executions::{BuildRules, Builder, Ecct, FrameKind, Names, Sampled, metrics};
use tracebraid_follow::{KernelAnalysis, Selection, Window};
use tracebraid_graph::{ActorId, DeviceCommand, DeviceTimes, Graph, GraphAnalysis, Path};
use tracebraid_language::Datum;
use tracebraid_language::executions::Definitions;
use tracebraid_profile::Samples;
use tracebraid_testkit::recorded::unpacked;

use crate::stream::{
    AWAY, Collect, InWords, SECOND, built, check_rules, folded, in_words, rules, ways,
};
use crate::told::Words;

fn set(name: &str) -> TraceSet {
    TraceSet::open(&[unpacked(name).join(name)]).expect("a trace")
}

fn devices(set: &TraceSet) -> Arc<DeviceTimes> {
    let mut analysis = DeviceAnalysis::new(set, Window::default()).keeping(Keep::Waits);
    loop {
        let found = folded(set, &analysis);
        if !analysis.learn(&found) {
            return Arc::new(analysis.device_times(&found));
        }
    }
}

fn rules_of(set: &TraceSet, definitions: &[&str]) -> BuildRules {
    let mut all = Definitions::default();
    for definition in definitions {
        all.add(definition).expect("a definition");
    }
    BuildRules {
        definitions: all,
        devices: devices(set),
        ..BuildRules::default()
    }
}

fn whole_graph(set: &TraceSet, devices: &Arc<DeviceTimes>) -> Graph {
    Graph {
        devices: Arc::clone(devices),
        ..folded(set, &GraphAnalysis::new(set, Selection::default()))
    }
}

/// Kernels in the order of their calls.
fn kernels(devices: &DeviceTimes) -> Vec<(u32, &DeviceCommand)> {
    let commands = (0..).zip(devices.commands());
    let mut kernels: Vec<(u32, &DeviceCommand)> = commands.filter(|of| of.1.is_kernel).collect();
    kernels.sort_by_key(|(place, of)| (of.called, *place));
    kernels
}

/// Calling contexts of a path, by name.
fn contexts(graph: &Graph, path: &Path) -> BTreeMap<Words, u64> {
    let sampled = Sampled::new(
        &set("gpu-pipeline"),
        graph,
        &Samples::default(),
        Names::default(),
    );
    let mut builder = Builder::new(graph, &sampled.stacks, &sampled.threads, Names::default());
    let Ecct { times } = builder.ecct(path);
    let words = |context| -> Words {
        let frames = builder.contexts.frames(context).into_iter();
        frames
            .map(|frame| (frame.kind, builder.names.text(frame.name).to_owned()))
            .collect()
    };
    let times = times.into_iter();
    times
        .map(|(context, time)| (words(context), time))
        .collect()
}

/// The executions of a definition in the order of begins, the same for all ways to read the trace.
fn found(set: &TraceSet, rules: &BuildRules) -> (Vec<InWords>, Vec<u64>) {
    let mut firsts: Option<(Vec<InWords>, Vec<u64>)> = None;
    for options in ways() {
        let (Collect(found), built) = built(set, rules, &Samples::default(), options);
        let union = &built.union;
        let mut found: Vec<InWords> = found
            .iter()
            .map(|of| in_words(&union.contexts, &union.names, of))
            .collect();
        found.sort_by_key(|of| of.window);
        let found = (found, built.unfinished);
        assert_eq!(
            firsts.get_or_insert_with(|| found.clone()),
            &found,
            "{options:?}"
        );
    }
    firsts.expect("there are ways")
}

fn thread(graph: &Graph, command: &DeviceCommand) -> ActorId {
    let mut of_tid = graph.with_tid(command.thread.tid);
    of_tid.next().expect("the thread").0
}

#[test]
fn kernels_are_executions_with_the_times_of_their_commands() {
    let set = set("gpu-pipeline");
    let rules = rules_of(&set, &["kernel w*", "kernel none"]);
    let graph = whole_graph(&set, &rules.devices);
    let kernels = kernels(&rules.devices);
    let (found, unfinished) = found(&set, &rules);
    assert_eq!((found.len(), kernels.len()), (8, 8));
    assert_eq!(unfinished, [0, 0]);
    for (found, (place, command)) in found.iter().zip(kernels) {
        let window = (command.called.expect("a call"), command.ended);
        assert_eq!((found.kind, found.window), (0, window));
        assert_eq!(found.values[0], Datum::text(b"work"));
        let actor = thread(&graph, command);
        let path = graph.command_path(Some(actor), place).expect("a path");
        assert_eq!(found.ecct, contexts(&graph, &path));
        let expected = metrics(&graph, &path);
        let own = found.metrics.iter().zip(&expected);
        assert!(
            own.filter(|(_, of)| of.is_some())
                .all(|(one, of)| one == of)
        );
        let duration = window.0.abs_diff(window.1);
        assert_eq!(found.ecct.values().sum::<u64>(), duration);
        assert_eq!(found.steps.iter().map(|step| step.0).sum::<u64>(), duration);
        // The process is alone on the device, with one queue in use at a time.
        let on_device = |detail: &str| {
            let reason = (FrameKind::Reason, "device".to_owned());
            let words = vec![reason, (FrameKind::Detail, detail.to_owned())];
            found.ecct.get(&words).copied().unwrap_or(0)
        };
        assert_eq!(on_device("work"), command.started.abs_diff(command.ended));
        let waits = ["work, in host queue", "work, in device queue", "write"].map(on_device);
        assert_eq!(
            waits.iter().sum::<u64>(),
            command.queued.abs_diff(command.started)
        );
    }
}

#[test]
fn frames_are_executions_from_call_to_call() {
    let set = set("gpu-pipeline");
    let rules = rules_of(&set, &["frame work"]);
    let graph = whole_graph(&set, &rules.devices);
    let kernels = kernels(&rules.devices);
    let (found, unfinished) = found(&set, &rules);
    assert_eq!((found.len(), unfinished), (7, vec![1]));
    let mut waited = 0;
    for (found, pair) in found.iter().zip(kernels.windows(2)) {
        let [begin, end] = [pair[0].1, pair[1].1].map(|of| of.called.expect("a call"));
        assert_eq!(found.window, (begin, end));
        let path = graph.path(thread(&graph, pair[0].1), begin, end);
        assert_eq!(found.ecct, contexts(&graph, &path));
        assert_eq!(found.ecct.values().sum::<u64>(), begin.abs_diff(end));
        let of_device = found
            .ecct
            .iter()
            .filter(|(words, _)| words.contains(&(FrameKind::Reason, "device".to_owned())));
        waited += of_device.map(|(_, time)| time).sum::<u64>();
    }
    assert!(waited > 0, "the thread waits for the device");
}

#[test]
fn only_executions_in_the_window_are_made() {
    let set = set("gpu-pipeline");
    let mut rules = rules_of(&set, &["kernel work", "frame f : work"]);
    let all = found(&set, &rules).0;
    let (from, to) = (all[4].window.0, all[9].window.1);
    rules.window.from = Some(tracebraid_ctf::clock::Timestamp(from));
    rules.window.to = Some(tracebraid_ctf::clock::Timestamp(to));
    let is_in = |of: &InWords| from <= of.window.0 && of.window.1 < to;
    let windows = |found: &[InWords]| -> Vec<_> {
        let inside = found.iter().filter(|of| is_in(of));
        inside.map(|of| (of.kind, of.window)).collect()
    };
    let (within, _) = found(&set, &rules);
    assert_eq!(windows(&within), windows(&all));
    assert_eq!(within.len(), windows(&all).len());
    assert!((3..all.len()).contains(&within.len()));
}

#[test]
fn waits_for_devices_are_those_of_the_whole_graph() {
    let set = set("gpu-pipeline");
    let rules = BuildRules {
        devices: devices(&set),
        ..rules(&[AWAY])
    };
    let of_device = |all: &BTreeMap<Vec<u64>, InWords>| {
        let words = all.values().flat_map(|of| of.ecct.keys());
        let is_it = |words: &&Words| words.contains(&(FrameKind::Reason, "device".to_owned()));
        words.filter(is_it).count()
    };
    let without = BuildRules {
        devices: Arc::default(),
        ..rules.clone()
    };
    let behind = [0, 3_000_000, SECOND];
    let found = check_rules(&set, rules, &Samples::default(), &behind);
    assert!(of_device(&found) > 0);
    let found = check_rules(&set, without, &Samples::default(), &behind[2..]);
    assert_eq!(of_device(&found), 0);
}

#[test]
fn without_a_kernel_trace_kernels_have_the_time_on_the_device() {
    let set = set("opencl-calls");
    let rules = rules_of(&set, &["kernel *"]);
    let kernels = kernels(&rules.devices);
    let (found, _) = found(&set, &rules);
    assert_eq!(found.len(), kernels.len());
    assert!(!found.is_empty());
    for (found, (_, command)) in found.iter().zip(kernels) {
        assert_eq!(found.threads, [None, None]);
        let (begin, end) = found.window;
        assert_eq!(found.ecct.values().sum::<u64>(), begin.abs_diff(end));
        let on_device = found
            .ecct
            .iter()
            .filter(|(words, _)| words.first() == Some(&(FrameKind::Reason, "device".to_owned())));
        let on_device: u64 = on_device.map(|(_, time)| time).sum();
        assert_eq!(on_device, command.queued.abs_diff(command.ended));
    }
}
