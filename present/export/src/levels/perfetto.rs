//! Perfetto: a track for each CPU, LWP and user-level thread, and arrows between them.
//!
//! A slice's arrow to the next slice of the same LWP or user-level thread must begin before it is
//! known that it will move. So each running slice begins an arrow with a number of its own; Perfetto
//! drops those that never end.

use std::collections::HashMap;
use std::io::{self, Write};

use tracebraid_levels::exported::{Item, Kind, Line, LineId, LinkKind, Sink, State};

use crate::perfetto::{Mark, Trace, Track};

/// Bytes after which the trace is written.
const CHUNK: usize = 1 << 16;

/// Writes Perfetto's format.
pub struct PerfettoWriter<W: Write> {
    output: W,
    trace: Trace,
    lines: HashMap<LineId, Shown>,
    arrows: u64,
    /// The arrow that the next slice of a line ends.
    ends: HashMap<LineId, u64>,
    /// The arrow that the last slice of what a line runs has begun.
    begun: HashMap<LineId, u64>,
}

struct Shown {
    line: Line,
    track: Track,
    /// Functions have a track of their own: they go on while their thread waits.
    functions: Option<Track>,
    open_functions: u32,
    is_open: bool,
}

impl<W: Write> PerfettoWriter<W> {
    /// A writer.
    pub fn new(output: W) -> PerfettoWriter<W> {
        PerfettoWriter {
            output,
            trace: Trace::default(),
            lines: HashMap::new(),
            arrows: 0,
            ends: HashMap::new(),
            begun: HashMap::new(),
        }
    }

    fn line(&mut self, line: &Line) {
        let parent = line.parent.and_then(|of| self.lines.get(&of));
        let track = self.trace.track(&line.title(), parent.map(|of| of.track));
        self.lines.insert(
            line.id,
            Shown {
                line: line.clone(),
                track,
                functions: None,
                open_functions: 0,
                is_open: false,
            },
        );
    }

    fn arrow(&mut self) -> u64 {
        self.arrows += 1;
        self.arrows
    }

    fn state(&mut self, time: i64, id: LineId, state: &State, on: Option<LineId>) {
        let Some(shown) = self.lines.get_mut(&id) else {
            return;
        };
        let (track, kind) = (shown.track, shown.line.kind);
        if std::mem::replace(&mut shown.is_open, *state != State::Ended) {
            self.trace.end(track, time);
        }
        if *state == State::Ended {
            return;
        }
        let detail = state.detail();
        let name = match state {
            State::Running(_) if !detail.is_empty() => detail.to_owned(),
            State::Blocked(_) if !detail.is_empty() => format!("{}: {detail}", state.word()),
            _ => state.word().to_owned(),
        };
        let on = on.and_then(|on| Some(self.lines.get(&on)?.line.title()));
        let mut notes: Vec<(&str, &str)> = Vec::new();
        notes.extend(on.as_deref().map(|on| ("on", on)));
        if matches!(state, State::Preempted(_)) {
            notes.push(("by", detail));
        }
        let is_running = matches!(state, State::Running(_) | State::Scheduler);
        let begins = match (kind, is_running) {
            (Kind::Lwp | Kind::Thread, true) => {
                let arrow = self.arrow();
                self.begun.insert(id, arrow);
                vec![arrow]
            }
            _ => Vec::new(),
        };
        let ends: Vec<u64> = self.ends.remove(&id).into_iter().collect();
        let mark = Mark {
            time,
            name: &name,
            category: state.word(),
            notes: &notes,
            arrows: &begins,
            ends: &ends,
        };
        self.trace.begin(track, &mark);
    }

    /// A migration: from the last running slice of what moves to its next one.
    fn migrates(&mut self, id: LineId) {
        if let Some(arrow) = self.begun.remove(&id) {
            self.ends.insert(id, arrow);
        }
    }

    /// A wake-up: an instant of the waker, and the woken line's state, which follows or has begun.
    fn wakes(&mut self, time: i64, from: LineId, to: LineId) {
        let arrow = self.arrow();
        let (Some(waker), Some(woken)) = (self.lines.get(&from), self.lines.get(&to)) else {
            return;
        };
        let name = format!("wakes {}", woken.line.title());
        let mark = Mark {
            time,
            name: &name,
            category: "wake-up",
            arrows: &[arrow],
            ..Mark::default()
        };
        self.trace.instant(waker.track, &mark);
        let mark = Mark {
            time,
            name: "woken",
            category: "wake-up",
            ends: &[arrow],
            ..Mark::default()
        };
        self.trace.instant(woken.track, &mark);
    }

    fn function(&mut self, time: i64, id: LineId, name: Option<&str>) {
        let Some(shown) = self.lines.get_mut(&id) else {
            return;
        };
        let parent = shown.track;
        let new = || self.trace.track("functions", Some(parent));
        let track = *shown.functions.get_or_insert_with(new);
        match name {
            Some(name) => {
                shown.open_functions += 1;
                let mark = Mark {
                    time,
                    name,
                    category: "function",
                    ..Mark::default()
                };
                self.trace.begin(track, &mark);
            }
            None if shown.open_functions > 0 => {
                shown.open_functions -= 1;
                self.trace.end(track, time);
            }
            // It was entered before the trace.
            None => {}
        }
    }

    fn event(&mut self, time: i64, id: LineId, name: &str) {
        if let Some(shown) = self.lines.get(&id) {
            let mark = Mark {
                time,
                name,
                category: "event",
                ..Mark::default()
            };
            self.trace.instant(shown.track, &mark);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.output.write_all(&self.trace.take_bytes())
    }
}

impl<W: Write> Sink for PerfettoWriter<W> {
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
                (LinkKind::LwpMigration | LinkKind::ThreadMigration, Some(line)) => {
                    self.migrates(*line);
                }
                _ => self.wakes(*time, *from, *to),
            },
            Item::Function { time, line, name } => self.function(*time, *line, *name),
            Item::Event { time, line, name } => self.event(*time, *line, name),
        }
        match self.trace.pending() < CHUNK {
            true => Ok(()),
            false => self.write(),
        }
    }

    fn finish(&mut self, end: i64) -> io::Result<()> {
        let mut lines: Vec<&Shown> = self.lines.values().collect();
        lines.sort_by_key(|shown| shown.line.id);
        for shown in lines {
            if shown.is_open {
                self.trace.end(shown.track, end);
            }
            if let Some(track) = shown.functions {
                (0..shown.open_functions).for_each(|_| self.trace.end(track, end));
            }
        }
        self.write()?;
        self.output.flush()
    }
}
