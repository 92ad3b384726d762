//! Both passes over the traces of each host.

use std::path::{Path, PathBuf};

use tracebraid_ctf::schema::build::clock;
use tracebraid_ctf::schema::{ByteOrder, ClockClass, EnvValue, StreamClass, TraceClass, Uuid};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::write::lttng::{self, HeaderKind};
use tracebraid_ctf::write::trace::{Options as WriteOptions, Session};
use tracebraid_ctf::write::{StreamPlan, WriteError};
use tracebraid_engine::{Control, FoldError, Options as FoldOptions, fold, slice_times};
use tracebraid_kernel_model::events::user_level::SUPER_TRACE;

use crate::catalogue::{Catalogue, OF_CPUS, WITHOUT_CPU, common_context};
use crate::merge::Merge;
use crate::sources::{Source, Sources, by_host, is_super_trace};
use crate::states::States;
use crate::summary::Merged;
use crate::survey::Survey;

/// Parameters of a merge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number of threads; 0 for the number of CPUs available.
    pub threads: usize,
    /// Size of the chunks of the first pass in bytes; 0 for the default.
    pub chunk_bytes: u64,
    /// Size of a window of the second pass in bytes; 0 for the default. The super-trace depends on
    /// it: where its packets end.
    pub window_bytes: u64,
    /// Largest clock error in nanoseconds by which a record is moved; `None` for the default.
    pub bound: Option<u64>,
}

/// Reason why there is no super-trace.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The fold was cancelled, or an index is wrong.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The super-trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// No trace can be merged.
    #[error("no trace can be merged{}", listed(.0))]
    Nothing(Vec<String>),
}

fn listed(left_out: &[String]) -> String {
    left_out.iter().map(|one| format!("\n  {one}")).collect()
}

/// Bound in nanoseconds if both levels have the same clock. The clock that BPF programs read (fast, and
/// safe in NMIs) may differ from CLOCK_MONOTONIC for a moment: by up to 4 us in 2 of 830,000 records.
const SAME_CLOCK: u64 = 10_000;
/// Bound if clocks are only known to have the same origin.
const OTHER_CLOCK: u64 = 20_000;
/// Least size of a window in bytes of packets.
const LEAST_WINDOW: u64 = 4 << 20;
/// Least size of a window in packets of each stream: at each border, one is read twice.
const WINDOW_PACKETS: u64 = 3;

/// Merges the traces into a super-trace at `to`; with several hosts, into one for each host below
/// `to`.
///
/// # Errors
/// If the merge is cancelled, an index is wrong, nothing can be merged, or a write fails.
pub fn merge(
    set: &TraceSet,
    to: &Path,
    options: Options,
    control: &Control,
) -> Result<Vec<Merged>, MergeError> {
    let mut left_out = Vec::new();
    let mut hosts: Vec<Sources> = Vec::new();
    for (host, set) in by_host(set) {
        let sources = Sources::new(host, set);
        match sources.group().is_empty() {
            true => left_out.extend(sources.left_out),
            false => hosts.push(sources),
        }
    }
    if hosts.is_empty() {
        return Err(MergeError::Nothing(left_out));
    }
    let session = Session::create(to)?;
    let part = session.path().to_owned();
    let merged = merge_hosts(&hosts, session, to, options, control);
    if merged.is_err() {
        // A part of a super-trace is of no use.
        let _ = std::fs::remove_dir_all(part);
    }
    let mut all = merged?;
    if let Some(first) = all.first_mut() {
        first.left_out.extend(left_out);
    }
    Ok(all)
}

fn merge_hosts(
    hosts: &[Sources],
    session: Session,
    to: &Path,
    options: Options,
    control: &Control,
) -> Result<Vec<Merged>, MergeError> {
    let is_one = hosts.len() == 1;
    let mut all = Vec::new();
    for (number, sources) in hosts.iter().enumerate() {
        let below = match is_one {
            true => PathBuf::new(),
            false => host_directory(sources, number),
        };
        let mut merged = merge_host(sources, &session, &below, options, control)?;
        merged.path = if is_one {
            to.to_owned()
        } else {
            to.join(&below)
        };
        all.push(merged);
    }
    session.finish()?;
    Ok(all)
}

fn host_directory(sources: &Sources, number: usize) -> PathBuf {
    let name = sources.host.as_deref().unwrap_or("host");
    let plain = |letter: char| {
        let is_plain = letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if is_plain { letter } else { '_' }
    };
    let name: String = name.chars().map(plain).collect();
    // Names may become equal.
    PathBuf::from(format!("{name}-{number}"))
}

fn merge_host(
    sources: &Sources,
    session: &Session,
    below: &Path,
    options: Options,
    control: &Control,
) -> Result<Merged, MergeError> {
    let window_bytes = window_bytes(sources, options);
    let windows = slice_times(&sources.set, sources.group(), window_bytes);
    let survey = Survey {
        sources,
        windows: &windows,
    };
    let first_pass = FoldOptions {
        threads: options.threads,
        chunk_bytes: options.chunk_bytes,
        ..FoldOptions::default()
    };
    let states = fold(&sources.set, &survey, first_pass, control)?.report;
    let catalogue = Catalogue::new(sources, &states.reasons);
    let class = trace_class(sources, &catalogue);
    let plans = [OF_CPUS, WITHOUT_CPU].map(|stream| StreamPlan::new(&class, stream));
    let [of_cpus, without] = plans;
    let compiled = catalogue.compile([of_cpus?, without?]);
    let Some((catalogue, plans)) = compiled else {
        return Err(
            WriteError::Misuse("the derived event classes cannot be written".into()).into(),
        );
    };
    let class = with_events(class, &catalogue);
    let write = WriteOptions {
        version: sources.version(),
        ..WriteOptions::default()
    };
    let trace = session.trace(below, &class, write)?;
    let second_pass = FoldOptions {
        threads: options.threads,
        chunk_bytes: window_bytes,
        slice_bytes: 1,
        by_time: true,
        ..FoldOptions::default()
    };
    let bound = bound(sources, options);
    let merge = Merge::new(
        sources,
        &windows,
        &states,
        (&catalogue, &plans),
        trace,
        bound,
    );
    let outcome = fold(&sources.set, &merge, second_pass, control)?;
    merge.close()?;
    Ok(summary(sources, &states, &catalogue, outcome))
}

fn bound(sources: &Sources, options: Options) -> i64 {
    let default = if sources.has_one_clock {
        SAME_CLOCK
    } else {
        OTHER_CLOCK
    };
    options.bound.unwrap_or(default).min(1 << 60) as i64
}

fn window_bytes(sources: &Sources, options: Options) -> u64 {
    if options.window_bytes > 0 {
        return options.window_bytes;
    }
    let streams = sources.group();
    let packet = |stream: &tracebraid_engine::StreamRef| {
        let content = stream.of(&sources.set).map(|(_, content)| content);
        content.map_or(0, |content| {
            content.bytes() / content.packets.len().max(1) as u64
        })
    };
    let packets: u64 = streams.iter().map(packet).sum();
    packets.saturating_mul(WINDOW_PACKETS).max(LEAST_WINDOW)
}

fn summary(
    sources: &Sources,
    states: &States,
    catalogue: &Catalogue,
    outcome: tracebraid_engine::Outcome<crate::summary::Counts>,
) -> Merged {
    let mut lost = (0, 0);
    for stream in sources.group() {
        let Some((_, content)) = stream.of(&sources.set) else {
            continue;
        };
        let last = content
            .packets
            .iter()
            .rev()
            .find_map(|packet| packet.discarded)
            .unwrap_or(0);
        match sources.source(sources.number(stream)) {
            Some(Source::Kernel(_)) => lost.0 += last,
            _ => lost.1 += last,
        }
    }
    let refused = catalogue.refused.iter();
    let refused = refused.map(|class| format!("event class {class}"));
    Merged {
        path: PathBuf::new(),
        host: sources.host.clone(),
        has_kernel: sources.kernel.is_some(),
        counts: outcome.report,
        threads: states.ults.count(),
        lwps: states.lwps.len(),
        processes: states.processes.clone(),
        lost,
        left_out: sources.left_out.iter().cloned().chain(refused).collect(),
        notes: sources.notes.clone(),
        damage: outcome.damage,
    }
}

/// The metadata of a super-trace, without event classes.
fn trace_class(sources: &Sources, catalogue: &Catalogue) -> TraceClass {
    let order = ByteOrder::Little;
    let mut class = lttng::trace_class(uuid(sources), order);
    class.environment = environment(sources);
    class.clocks = vec![super_clock(sources)];
    let many = catalogue.classes(OF_CPUS).len() > MOST_COMPACT;
    let header = if many {
        HeaderKind::Large
    } else {
        HeaderKind::Compact
    };
    let stream = |id: u64, context: &[(&str, u32)]| StreamClass {
        common_context: Some(common_context()),
        ..lttng::stream_class(id, order, 0, header, context)
    };
    class.streams = vec![
        stream(OF_CPUS as u64, &[("cpu_id", 32)]),
        stream(WITHOUT_CPU as u64, &[]),
    ];
    class
}

/// Most event classes of LTTng's compact headers.
const MOST_COMPACT: usize = 30;

fn with_events(mut class: TraceClass, catalogue: &Catalogue) -> TraceClass {
    for (number, stream) in class.streams.iter_mut().enumerate() {
        stream.events = catalogue.classes(number);
    }
    class
}

/// Times are nanoseconds on the clock of the kernel trace.
fn super_clock(sources: &Sources) -> ClockClass {
    let base = sources.base();
    let own = sources.clock();
    let name = own
        .and_then(|own| own.name.clone())
        .unwrap_or_else(|| "monotonic".into());
    let new = clock(&name, 1_000_000_000, 0);
    ClockClass {
        offset_seconds: base.div_euclid(1_000_000_000),
        offset_cycles: base.rem_euclid(1_000_000_000),
        uuid: own.and_then(|own| own.uuid),
        uid: own.and_then(|own| own.uid.clone()),
        description: own.and_then(|own| own.description.clone()),
        origin: own.map_or(new.origin.clone(), |own| own.origin.clone()),
        ..new
    }
}

/// A UUID made of those of the sources: the same input yields the same bytes.
fn uuid(sources: &Sources) -> Uuid {
    let mut uuid = *b"tracebraidlevels";
    for (number, trace) in (1u8..).zip(&sources.set.traces) {
        for (own, other) in uuid.iter_mut().zip(trace.uuid().unwrap_or_default()) {
            *own = own.rotate_left(3) ^ other.wrapping_mul(number | 1);
        }
    }
    // Version 4, variant 1.
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// Variables of the kernel trace that a super-trace has of its own.
const OWN: [&str; 7] = [
    "domain",
    "tracer_name",
    "tracer_buffering_scheme",
    "tracer_buffering_id",
    "isolation",
    "vpid",
    PROBE_COST,
];

/// Nanoseconds that a probe takes, in the environments of traces of programs.
const PROBE_COST: &str = "tracebraid_probe_cost_ns";

/// The least cost of a probe in the merged traces: a correction by it never takes too much.
fn probe_cost(sources: &Sources) -> Option<i128> {
    let traces = sources.set.traces.iter();
    let costs = traces.filter_map(|trace| match trace.layout.class.env(PROBE_COST) {
        Some(EnvValue::Int(cost)) => Some(*cost),
        _ => None,
    });
    costs.min()
}

fn environment(sources: &Sources) -> Vec<(String, EnvValue)> {
    let text = |value: &str| EnvValue::Str(value.into());
    let mut all = vec![
        ("domain".to_owned(), text("kernel")),
        ("tracer_name".to_owned(), text("tracebraid-levels")),
        (SUPER_TRACE.to_owned(), EnvValue::Int(1)),
    ];
    let traces = &sources.set.traces;
    let trace = match sources.kernel {
        Some(kernel) => traces.get(kernel),
        None => traces.iter().find(|trace| !is_super_trace(trace)),
    };
    let Some(trace) = trace else {
        return all;
    };
    if sources.kernel.is_none() {
        all.push(("tracebraid_levels_cpus".to_owned(), text("lwps")));
    } else if let Some(EnvValue::Str(name)) = trace.layout.class.env("tracer_name") {
        all.push(("tracebraid_levels_kernel_tracer".to_owned(), text(name)));
    }
    let cost = probe_cost(sources);
    all.extend(cost.map(|cost| (PROBE_COST.to_owned(), EnvValue::Int(cost))));
    let own = trace.layout.class.environment.iter();
    let own = own.filter(|(name, _)| !OWN.contains(&name.as_str()) && name != "procname");
    all.extend(own.cloned());
    all
}
