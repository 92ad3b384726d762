//! `tracebraid-testkit`: the test tools on the command line.

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tracebraid_ctf::schema::CtfVersion;
use tracebraid_testkit::damage;
use tracebraid_testkit::directory;
use tracebraid_testkit::generate::{self, Options};
use tracebraid_testkit::grow::{self, Target};
use tracebraid_testkit::layouts;
use tracebraid_testkit::reference::Reader;

/// Test tools of tracebraid.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Grow(GrowArgs),
    Generate(GenerateArgs),
    Layout(LayoutArgs),
    Damage(DamageArgs),
    Count(CountArgs),
}

/// Lengthen a recorded trace by repeating its packets at later times.
///
/// SRC is a trace directory, or a directory with several traces (an LTTng session), which are all
/// shifted alike. The result has correct packet times, sequence numbers, counts of discarded
/// events, and LTTng index files where the source has them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tracebraid-testkit grow trace/kernel longer --times 10\n  \
    tracebraid-testkit grow trace longer --events 45000000")]
struct GrowArgs {
    /// The trace to repeat.
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// Output directory; must be new or empty.
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// Number of repetitions, including the first.
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "events",
        conflicts_with = "events"
    )]
    times: Option<u64>,
    /// Repeat until the trace has at least this many events.
    #[arg(long, value_name = "E")]
    events: Option<u64>,
}

/// Write a random trace; equal options give equal traces.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tracebraid-testkit generate out --seed 7\n  \
    tracebraid-testkit generate out --seed 7 --ctf 2 --events 10000\n  \
    tracebraid-testkit generate out --seed 7 --babeltrace-2.0 && babeltrace2 out")]
struct GenerateArgs {
    /// Output directory; must be new or empty.
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// Seed; each value gives a different trace.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Version of the format.
    #[arg(long, value_name = "VERSION", default_value = "1.8")]
    ctf: Version,
    /// Approximate number of events in all streams together.
    #[arg(long, value_name = "N", default_value_t = 60)]
    events: u64,
    /// Number of stream classes [default: random].
    #[arg(long, value_name = "K")]
    stream_classes: Option<u64>,
    /// Number of streams of each class [default: random].
    #[arg(long, value_name = "K")]
    streams: Option<u64>,
    /// Write only what babeltrace2 2.0.4 reads and prints correctly (CTF 1.8).
    #[arg(long = "babeltrace-2.0")]
    babeltrace: bool,
}

/// Write a trace in the layout of a tracer; equal arguments give equal traces.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tracebraid-testkit layout dpdk out --events 2000000")]
struct LayoutArgs {
    /// Name of the layout; `all` writes a directory for each.
    #[arg(value_name = "LAYOUT")]
    layout: String,
    /// Output directory.
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// Approximate number of events.
    #[arg(long, value_name = "N", default_value_t = 6_000)]
    events: u64,
}

/// Damage a trace in place; print the position, and how much a reader can still read.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tracebraid-testkit generate out --seed 3 && tracebraid-testkit damage out HugeLength")]
struct DamageArgs {
    /// Directory of a single sound trace.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// TruncatedStream, ContentBeyondPacket, ZeroPacketLength, UnknownEventClass,
    /// UnterminatedString, HugeLength, ClockBackwards, BadMagic, WrongUuid, EmptyStream,
    /// GarbageIndex or ForeignIndex.
    #[arg(value_name = "DAMAGE")]
    damage: String,
}

/// Count the events of a trace by name, with the reference reader.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tracebraid-testkit count trace/kernel")]
struct CountArgs {
    /// A trace directory, or a directory with several traces.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Version {
    #[value(name = "1.8")]
    V1_8,
    #[value(name = "2")]
    V2,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Grow(args) => run_grow(&args),
        Command::Generate(args) => run_generate(&args),
        Command::Layout(args) => run_layout(&args),
        Command::Damage(args) => run_damage(&args),
        Command::Count(args) => run_count(&args),
    }
}

fn run_grow(args: &GrowArgs) -> Result<()> {
    let target = match (args.times, args.events) {
        (_, Some(events)) => Target::Events(events),
        (times, None) => Target::Times(times.unwrap_or(1)),
    };
    let report = grow::grow(&args.source, &args.destination, target)?;
    println!(
        "{} repetitions of {} events, {} cycles apart: {} events in {} packets, {} bytes",
        report.times,
        report.source_events,
        report.shift,
        report.events,
        report.packets,
        report.bytes
    );
    Ok(())
}

fn run_generate(args: &GenerateArgs) -> Result<()> {
    if args.babeltrace && args.ctf != Version::V1_8 {
        bail!("--babeltrace-2.0 requires --ctf 1.8");
    }
    let version = match args.ctf {
        Version::V1_8 => CtfVersion::V1_8,
        Version::V2 => CtfVersion::V2_0,
    };
    let options = Options {
        seed: args.seed,
        version,
        events: args.events,
        stream_classes: args.stream_classes,
        streams: args.streams,
        babeltrace: args.babeltrace,
    };
    let generated = generate::generate(&options)?;
    if args.destination.is_dir() && std::fs::read_dir(&args.destination)?.next().is_some() {
        bail!("{} is not empty", args.destination.display());
    }
    generated.save(&args.destination)?;
    let packets: usize = generated
        .streams
        .iter()
        .map(|stream| stream.packets.len())
        .sum();
    println!(
        "{} events in {packets} packets of {} streams",
        generated.event_count(),
        generated.streams.len()
    );
    Ok(())
}

fn run_layout(args: &LayoutArgs) -> Result<()> {
    if args.layout != "all" {
        return layouts::write(&args.layout, args.events, &args.destination);
    }
    layouts::names()
        .try_for_each(|name| layouts::write(name, args.events, &args.destination.join(name)))
}

fn run_damage(args: &DamageArgs) -> Result<()> {
    let Some(kind) = damage::ALL
        .into_iter()
        .find(|kind| format!("{kind:?}") == args.damage)
    else {
        bail!(
            "no damage is named {:?}; the kinds are {:?}",
            args.damage,
            damage::ALL
        );
    };
    match damage::damage(&args.trace, kind)? {
        Some(expected) => println!("{expected:#?}"),
        None => bail!("{kind:?} is impossible in this trace"),
    }
    Ok(())
}

fn run_count(args: &CountArgs) -> Result<()> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for trace in directory::find_traces(&args.trace)? {
        let class = directory::trace_class(&trace)?;
        let reader = Reader::new(&class);
        for file in directory::stream_files(&trace)? {
            let stream = reader.stream(&std::fs::read(&file)?);
            if let Some(error) = stream.first_error() {
                eprintln!("{}: {error}", file.display());
            }
            for packet in &stream.packets {
                let events = &class.streams[packet.head.stream_class].events;
                for event in &packet.events {
                    *counts
                        .entry(events[event.class].name.to_string())
                        .or_default() += 1;
                }
            }
        }
    }
    for (name, count) in &counts {
        println!("{name}\t{count}");
    }
    println!("total\t{}", counts.values().sum::<u64>());
    Ok(())
}
