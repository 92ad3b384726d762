//! Pajé: a text of events with a header that defines them.
//!
//! Containers: machine > CPU > LWP, and machine > process > user-level thread. An LWP has a container
//! in each CPU that it runs on: that of the CPU on which it is, or was last, shows its state, the
//! others show `elsewhere`. Links join these containers when LWPs and user-level threads migrate, and
//! user-level threads when one wakes another.
//!
//! Source: "Pajé trace file format", version 1.2.5 (L. M. Schnorr, 2013).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

use tracebraid_levels::exported::{Item, Kind, Line, LineId, LinkKind, Sink, State};

/// Definitions of events: number, name, and fields.
const EVENTS: [(u32, &str, &[(&str, &str)]); 11] = [
    (
        0,
        "PajeDefineContainerType",
        &[("Alias", "string"), ("Type", "string"), ("Name", "string")],
    ),
    (
        1,
        "PajeDefineStateType",
        &[("Alias", "string"), ("Type", "string"), ("Name", "string")],
    ),
    (
        2,
        "PajeDefineEventType",
        &[("Alias", "string"), ("Type", "string"), ("Name", "string")],
    ),
    (
        3,
        "PajeDefineLinkType",
        &[
            ("Alias", "string"),
            ("Type", "string"),
            ("StartContainerType", "string"),
            ("EndContainerType", "string"),
            ("Name", "string"),
        ],
    ),
    (
        4,
        "PajeDefineEntityValue",
        &[
            ("Alias", "string"),
            ("Type", "string"),
            ("Name", "string"),
            ("Color", "color"),
        ],
    ),
    (
        5,
        "PajeCreateContainer",
        &[
            ("Time", "date"),
            ("Alias", "string"),
            ("Type", "string"),
            ("Container", "string"),
            ("Name", "string"),
        ],
    ),
    (
        6,
        "PajeDestroyContainer",
        &[("Time", "date"), ("Type", "string"), ("Name", "string")],
    ),
    (
        7,
        "PajeSetState",
        &[
            ("Time", "date"),
            ("Type", "string"),
            ("Container", "string"),
            ("Value", "string"),
        ],
    ),
    (
        8,
        "PajeNewEvent",
        &[
            ("Time", "date"),
            ("Type", "string"),
            ("Container", "string"),
            ("Value", "string"),
        ],
    ),
    (
        9,
        "PajeStartLink",
        &[
            ("Time", "date"),
            ("Type", "string"),
            ("Container", "string"),
            ("StartContainer", "string"),
            ("Value", "string"),
            ("Key", "string"),
        ],
    ),
    (
        10,
        "PajeEndLink",
        &[
            ("Time", "date"),
            ("Type", "string"),
            ("Container", "string"),
            ("EndContainer", "string"),
            ("Value", "string"),
            ("Key", "string"),
        ],
    ),
];

/// Types of containers, states, events and links.
const TYPES: &str = "\
0 CM 0 \"Machine\"
0 CC CM \"CPU\"
0 CL CC \"LWP\"
0 CP CM \"Process\"
0 CT CP \"User-level thread\"
1 SC CC \"CPU state\"
1 SL CL \"LWP state\"
1 ST CT \"Thread state\"
2 ET CT \"Event\"
2 EL CL \"LWP event\"
3 LW CM CT CT \"Wake-up\"
3 LL CM CL CL \"LWP migration\"
3 LT CM CL CL \"Thread migration\"
";

/// Number of names that get a value of their own in the state of CPUs: viewers list all values.
const MOST_NAMES: usize = 4096;

/// Writes Pajé's format.
pub struct PajeWriter<W: Write> {
    output: W,
    lines: HashMap<LineId, Line>,
    /// By LWP and CPU, for those that have a container. LWPs are in one CPU at a time.
    rows: BTreeSet<(LineId, LineId)>,
    /// CPU whose container shows an LWP's state, and that state's value.
    places: HashMap<LineId, (LineId, String)>,
    /// Aliases of values, by type and name.
    values: BTreeMap<(&'static str, String), String>,
    /// Time of the first item, from which times are counted.
    origin: Option<i64>,
    /// Machine, CPUs, LWPs and threads wait for the first time.
    links: u64,
    has_unknown_cpu: bool,
}

/// The CPU of LWPs that were on no known one.
const NO_CPU: LineId = LineId(u32::MAX);

impl<W: Write> PajeWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut output: W) -> io::Result<PajeWriter<W>> {
        for (number, name, fields) in EVENTS {
            writeln!(output, "%EventDef {name} {number}")?;
            for (field, kind) in fields {
                writeln!(output, "% {field} {kind}")?;
            }
            writeln!(output, "%EndEventDef")?;
        }
        output.write_all(TYPES.as_bytes())?;
        Ok(PajeWriter {
            output,
            lines: HashMap::new(),
            rows: BTreeSet::new(),
            places: HashMap::new(),
            values: BTreeMap::new(),
            origin: None,
            links: 0,
            has_unknown_cpu: false,
        })
    }

    /// Seconds from the first item.
    fn time(&mut self, time: i64) -> String {
        let origin = *self.origin.get_or_insert(time);
        let since = time.saturating_sub(origin).max(0);
        format!("{}.{:09}", since / 1_000_000_000, since % 1_000_000_000)
    }

    /// A line. Containers are created at the begin: most exist before.
    fn line(&mut self, line: &Line) -> io::Result<()> {
        let kind = match line.kind {
            Kind::Machine => "CM",
            Kind::Cpu => "CC",
            Kind::Process => "CP",
            Kind::Thread => "CT",
            // Has containers below CPUs.
            Kind::Lwp => "",
        };
        if !kind.is_empty() {
            let parent = line.parent.map_or_else(|| "0".to_owned(), alias);
            let title = quoted(&line.title());
            let time = "0.000000000";
            writeln!(
                self.output,
                "5 {time} {} {kind} {parent} {title}",
                alias(line.id)
            )?;
        }
        self.lines.insert(line.id, line.clone());
        Ok(())
    }

    /// The container of an LWP in a CPU.
    fn row(&mut self, lwp: LineId, cpu: LineId) -> io::Result<String> {
        let row = format!("r{}_{}", lwp.0, cpu.0);
        if self.rows.insert((lwp, cpu)) {
            if cpu == NO_CPU && !self.has_unknown_cpu {
                self.has_unknown_cpu = true;
                writeln!(
                    self.output,
                    "5 0.000000000 {} CC l0 \"CPU unknown\"",
                    alias(cpu)
                )?;
            }
            let title = self.lines.get(&lwp).map(Line::title).unwrap_or_default();
            let title = match self.lines.get(&cpu) {
                Some(cpu) => format!("{title} on CPU {}", cpu.number),
                None => title,
            };
            let title = quoted(&title);
            writeln!(self.output, "5 0.000000000 {row} CL {} {title}", alias(cpu))?;
        }
        Ok(row)
    }

    /// Alias of a value; `shade` picks one of several colours.
    fn value(&mut self, kind: &'static str, state: &State) -> io::Result<String> {
        let name = match (kind, state) {
            ("SC", State::Running(name)) => name.to_string(),
            // A row of its own shows which thread an LWP or CPU runs.
            (_, State::Blocked(reason)) if !reason.is_empty() => format!("blocked: {reason}"),
            _ => state.word().to_owned(),
        };
        let is_full = self.values.len() >= MOST_NAMES;
        let key = (kind, name);
        if let Some(alias) = self.values.get(&key) {
            return Ok(alias.clone());
        }
        let (key, color) = match is_full {
            true => ((kind, "other".to_owned()), "0.5 0.5 0.5".to_owned()),
            false => {
                let color = color(state, &key.1, kind);
                (key, color)
            }
        };
        if let Some(alias) = self.values.get(&key) {
            return Ok(alias.clone());
        }
        let alias = format!("v{}", self.values.len());
        writeln!(
            self.output,
            "4 {alias} {kind} {} \"{color}\"",
            quoted(&key.1)
        )?;
        self.values.insert(key, alias.clone());
        Ok(alias)
    }

    fn state(
        &mut self,
        time: i64,
        id: LineId,
        state: &State,
        on: Option<LineId>,
    ) -> io::Result<()> {
        let Some(kind) = self.lines.get(&id).map(|line| line.kind) else {
            return Ok(());
        };
        let (kind, container) = match kind {
            Kind::Cpu => ("SC", alias(id)),
            Kind::Thread => ("ST", alias(id)),
            Kind::Lwp => {
                let cpu = on.unwrap_or(NO_CPU);
                ("SL", self.row(id, cpu)?)
            }
            Kind::Machine | Kind::Process => return Ok(()),
        };
        let value = self.value(kind, state)?;
        if kind == "SL" {
            self.put(time, id, (on.unwrap_or(NO_CPU), value.clone()))?;
        }
        let time = self.time(time);
        writeln!(self.output, "7 {time} {kind} {container} {value}")
    }

    /// Notes which container shows an LWP's state. The one before no longer does.
    fn put(&mut self, time: i64, lwp: LineId, place: (LineId, String)) -> io::Result<()> {
        let cpu = place.0;
        let before = self.places.insert(lwp, place).map(|before| before.0);
        if let Some(before) = before.filter(|before| *before != cpu) {
            let (row, elsewhere) = (self.row(lwp, before)?, self.elsewhere()?);
            let time = self.time(time);
            writeln!(self.output, "7 {time} SL {row} {elsewhere}")?;
        }
        Ok(())
    }

    /// The LWP leaves the container of a CPU for that of another.
    fn moves(&mut self, time: i64, lwp: LineId, from: LineId, to: LineId) -> io::Result<()> {
        let cpu = to;
        let (from, to) = (self.row(lwp, from)?, self.row(lwp, to)?);
        let elsewhere = self.elsewhere()?;
        let text = self.time(time);
        writeln!(self.output, "7 {text} SL {from} {elsewhere}")?;
        if let Some((place, value)) = self.places.get_mut(&lwp) {
            *place = cpu;
            writeln!(self.output, "7 {text} SL {to} {value}")?;
        }
        self.link(time, "LL", (&from, &to), "migration")
    }

    fn elsewhere(&mut self) -> io::Result<String> {
        let key = ("SL", "elsewhere".to_owned());
        if let Some(alias) = self.values.get(&key) {
            return Ok(alias.clone());
        }
        let alias = format!("v{}", self.values.len());
        writeln!(self.output, "4 {alias} SL \"elsewhere\" \"1.0 1.0 1.0\"")?;
        self.values.insert(key, alias.clone());
        Ok(alias)
    }

    fn link(
        &mut self,
        time: i64,
        kind: &str,
        (from, to): (&str, &str),
        value: &str,
    ) -> io::Result<()> {
        let time = self.time(time);
        let key = self.links;
        self.links += 1;
        writeln!(self.output, "9 {time} {kind} l0 {from} {value} {key}")?;
        writeln!(self.output, "10 {time} {kind} l0 {to} {value} {key}")
    }

    /// The container that shows a thread: its own, or an LWP's in its CPU.
    fn container(&mut self, id: LineId) -> io::Result<(Kind, String)> {
        match self.lines.get(&id).map(|line| line.kind) {
            Some(Kind::Lwp) => {
                let cpu = self.places.get(&id).map_or(NO_CPU, |place| place.0);
                Ok((Kind::Lwp, self.row(id, cpu)?))
            }
            kind => Ok((kind.unwrap_or(Kind::Machine), alias(id))),
        }
    }

    fn event(&mut self, time: i64, line: LineId, name: &str) -> io::Result<()> {
        let (kind, container) = self.container(line)?;
        let kind = match kind {
            Kind::Lwp => "EL",
            Kind::Thread => "ET",
            _ => return Ok(()),
        };
        let time = self.time(time);
        writeln!(self.output, "8 {time} {kind} {container} {}", quoted(name))
    }
}

impl<W: Write> Sink for PajeWriter<W> {
    fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        match item {
            Item::Line(line) => self.line(line),
            Item::State {
                time,
                line,
                state,
                on,
            } => self.state(*time, *line, state, *on),
            Item::Link {
                time,
                kind,
                moves,
                from,
                to,
            } => match (kind, moves) {
                (LinkKind::LwpMigration, Some(lwp)) => self.moves(*time, *lwp, *from, *to),
                (LinkKind::ThreadMigration, _) => {
                    let (from, to) = (self.container(*from)?.1, self.container(*to)?.1);
                    self.link(*time, "LT", (&from, &to), "migration")
                }
                _ => match (self.container(*from)?, self.container(*to)?) {
                    ((Kind::Thread, from), (Kind::Thread, to)) => {
                        self.link(*time, "LW", (&from, &to), "wakes")
                    }
                    _ => Ok(()),
                },
            },
            Item::Function { time, line, name } => match name {
                Some(name) => self.event(*time, *line, &format!("enters {name}")),
                None => self.event(*time, *line, "leaves"),
            },
            Item::Event { time, line, name } => self.event(*time, *line, name),
        }
    }

    fn finish(&mut self, end: i64) -> io::Result<()> {
        let time = self.time(end);
        for (lwp, cpu) in std::mem::take(&mut self.rows) {
            writeln!(self.output, "6 {time} CL r{}_{}", lwp.0, cpu.0)?;
        }
        let mut lines: Vec<&Line> = self.lines.values().collect();
        // Children have higher numbers than their parents.
        lines.sort_by_key(|line| std::cmp::Reverse(line.id));
        if self.has_unknown_cpu {
            writeln!(self.output, "6 {time} CC {}", alias(NO_CPU))?;
        }
        for line in lines {
            let kind = match line.kind {
                Kind::Machine => "CM",
                Kind::Cpu => "CC",
                Kind::Process => "CP",
                Kind::Thread => "CT",
                Kind::Lwp => continue,
            };
            writeln!(self.output, "6 {time} {kind} {}", alias(line.id))?;
        }
        self.output.flush()
    }
}

fn alias(id: LineId) -> String {
    format!("l{}", id.0)
}

/// A text in quotation marks, which the format cannot escape.
fn quoted(text: &str) -> String {
    let plain = text.chars().map(|c| match c {
        '"' => '\'',
        c if c.is_control() => ' ',
        c => c,
    });
    format!("\"{}\"", plain.collect::<String>())
}

/// Colours without a pair that the colour-blind confuse (Okabe and Ito).
fn color(state: &State, name: &str, kind: &str) -> String {
    let fixed = match state {
        State::Idle => "0.93 0.93 0.93",
        State::Running(_) if kind == "SC" => return shade(name),
        State::Running(_) => "0.0 0.62 0.45",
        State::Scheduler => "0.8 0.47 0.65",
        State::Preempted(_) => "0.84 0.37 0.0",
        State::WaitsForCpu => "0.9 0.62 0.0",
        State::WaitsForLwp => "0.94 0.89 0.26",
        State::InKernel => "0.0 0.45 0.7",
        State::Blocked(_) => "0.34 0.71 0.91",
        State::Ended => "1.0 1.0 1.0",
    };
    fixed.to_owned()
}

/// A colour of its own for the name of a thread.
fn shade(name: &str) -> String {
    let hash = name.bytes().fold(2_166_136_261u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
    });
    let part = |shift: u32| 0.25 + f64::from(hash >> shift & 0xff) / 255.0 * 0.6;
    format!("{:.2} {:.2} {:.2}", part(0), part(8), part(16))
}
