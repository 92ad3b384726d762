//! Evaluates all items of the text in order, and returns the trace class.
//!
//! An item is freed after it has been evaluated, so the syntax tree of a text with a million event
//! classes takes no more memory than its largest item.

use std::collections::HashMap;

use super::assembly::{Assembly, Events};
use super::ast::{ItemKind, TopLevel};
use super::blocks::{self, Stream, Trace};
use super::build::no_field;
use super::error::{Res, error, short};
use super::parser::Parser;
use super::sema::{Limits, Sema};
use crate::schema::{ClockClass, ClockIndex, ClockOrigin, CtfVersion, EnvValue, TraceClass};

/// Evaluates the text.
pub(super) fn evaluate(text: &str, limits: Limits) -> Res<TraceClass> {
    if let Some(class) = Evaluation::new(limits, Clocks::default()).run(text)? {
        return Ok(class);
    }
    let clocks = Clocks::all(text)?;
    match Evaluation::new(limits, clocks).run(text)? {
        Some(class) => Ok(class),
        None => error(0, "the clocks of this metadata cannot be found"),
    }
}

#[derive(Default)]
struct Clocks {
    list: Vec<ClockClass>,
    names: HashMap<String, ClockIndex>,
    /// All clocks of the text were found in an earlier pass.
    are_known: bool,
}

impl Clocks {
    /// The clocks of the whole text.
    fn all(text: &str) -> Res<Self> {
        let mut clocks = Clocks::default();
        let mut parser = Parser::new(text)?;
        let mut parts = Vec::new();
        while let Some(mut item) = parser.item(parts)? {
            if item.kind == ItemKind::Clock {
                clocks.add(&item)?;
            }
            item.parts.clear();
            parts = item.parts;
        }
        clocks.are_known = true;
        Ok(clocks)
    }

    /// Adds the clock of a block.
    fn add(&mut self, item: &TopLevel<'_>) -> Res<()> {
        let clock = blocks::clock(item)?;
        if self
            .names
            .insert(clock.id.clone(), self.list.len())
            .is_some()
        {
            return error(
                item.at,
                format!("there is a clock `{}` already", short(&clock.id)),
            );
        }
        self.list.push(clock);
        Ok(())
    }
}

/// State after the items evaluated so far.
struct Evaluation<'a> {
    clocks: Clocks,
    sema: Sema<'a>,
    trace: Option<Trace<'a>>,
    /// Items before the `trace` block: types need the byte order that it contains.
    waiting: Vec<TopLevel<'a>>,
    streams: Vec<Stream<'a>>,
    events: Events<'a>,
}

impl<'a> Evaluation<'a> {
    fn new(limits: Limits, mut clocks: Clocks) -> Self {
        let mut sema = Sema::new(limits);
        sema.clock_names = std::mem::take(&mut clocks.names);
        Evaluation {
            clocks,
            sema,
            trace: None,
            waiting: Vec::new(),
            streams: Vec::new(),
            events: Events::new(limits),
        }
    }

    /// Evaluates all items. `None` if a clock is described after a field that is mapped to it; all
    /// clocks must then be found in an earlier pass.
    fn run(mut self, text: &'a str) -> Res<Option<TraceClass>> {
        let mut parser = Parser::new(text)?;
        let mut parts = Vec::new();
        while let Some(item) = parser.item(parts)? {
            parts = Vec::new();
            match item.kind {
                ItemKind::Clock => {
                    if !self.clock(&item)? {
                        return Ok(None);
                    }
                }
                ItemKind::Trace => self.trace(item)?,
                _ if self.trace.is_none() => self.waiting.push(item),
                _ => parts = self.item(item)?,
            }
        }
        self.finish().map(Some)
    }

    /// Evaluates a `clock` block; false if an earlier field refers to the clock.
    fn clock(&mut self, item: &TopLevel<'a>) -> Res<bool> {
        if self.clocks.are_known {
            return Ok(true);
        }
        self.clocks.names = std::mem::take(&mut self.sema.clock_names);
        self.clocks.add(item)?;
        self.sema.clock_names = std::mem::take(&mut self.clocks.names);
        let id = self.clocks.list.last().map_or("", |clock| &clock.id);
        Ok(!self.sema.missed_clocks.contains(id))
    }

    fn trace(&mut self, mut item: TopLevel<'a>) -> Res<()> {
        if self.trace.is_some() {
            return error(item.at, "there is a `trace` block already");
        }
        self.sema.byte_order = blocks::trace_byte_order(&item)?;
        for item in std::mem::take(&mut self.waiting) {
            self.item(item)?;
        }
        self.trace = Some(self.scoped(&mut item, blocks::trace)?);
        Ok(())
    }

    /// Evaluates any other item and returns its list of parts, emptied for reuse.
    fn item(&mut self, mut item: TopLevel<'a>) -> Res<Vec<super::ast::Part<'a>>> {
        match item.kind {
            ItemKind::Declaration => {
                for part in item.parts.drain(..) {
                    self.sema.part(part)?;
                }
            }
            ItemKind::Env => blocks::environment(&mut self.sema, &item)?,
            ItemKind::Stream => {
                let stream = self.scoped(&mut item, blocks::stream)?;
                self.streams.push(stream);
            }
            ItemKind::Event => {
                let event = self.scoped(&mut item, blocks::event)?;
                self.events.add(event)?;
            }
            ItemKind::Trace | ItemKind::Clock | ItemKind::Callsite => {}
        }
        item.parts.clear();
        Ok(item.parts)
    }

    /// Evaluates a block in its own lexical scope.
    fn scoped<T>(
        &mut self,
        item: &mut TopLevel<'a>,
        block: fn(&mut Sema<'a>, &mut TopLevel<'a>) -> Res<T>,
    ) -> Res<T> {
        self.sema.scopes.begin();
        let result = block(&mut self.sema, item);
        self.sema.scopes.end();
        result
    }

    fn finish(mut self) -> Res<TraceClass> {
        let Some(trace) = self.trace else {
            return error(
                0,
                "no `trace` block: the metadata needs one with `major`, `minor` and `byte_order`",
            );
        };
        let mut clocks = self.clocks.list;
        let mut assembly = Assembly::new(&clocks, self.events, &mut self.sema.open_locations);
        let (packet_header, streams) = assembly.assemble(trace.packet_header, self.streams)?;
        if assembly.used_implicit_clock && clocks.is_empty() {
            clocks.push(blocks::default_clock());
        }
        if let Some((path, _)) = self
            .sema
            .open_locations
            .iter()
            .find(|(_, resolved)| !resolved)
        {
            return error(path.first.at, no_field(path));
        }
        let environment = self.sema.environment;
        if is_lttng(&environment) {
            // Old versions did not mark this clock as absolute.
            for clock in clocks.iter_mut().filter(|clock| clock.id == "monotonic") {
                clock.origin = ClockOrigin::UnixEpoch;
            }
        }
        Ok(TraceClass {
            version: CtfVersion::V1_8,
            namespace: None,
            name: None,
            uid: None,
            uuid: trace.uuid,
            byte_order: self.sema.byte_order,
            environment,
            packet_header,
            clocks,
            streams,
        })
    }
}

fn is_lttng(environment: &[(String, EnvValue)]) -> bool {
    environment.iter().any(|(key, value)| {
        key == "tracer_name" && matches!(value, EnvValue::Str(name) if name.starts_with("lttng"))
    })
}
