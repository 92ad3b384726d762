//! Converts pages to event records, one CPU at a time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracebraid_ctf::schema::Uuid;
use tracebraid_ctf::write::EventPlan;
use tracebraid_ctf::write::trace::Session;

use super::file::{Buffer, CpuData, TraceDat};
use super::pages::{Page, RawEvent};
use crate::bytes::{Bytes, number};
use crate::compression::Algorithm;
use crate::error::ImportError;
use crate::input::{Input, uuid_of};
use crate::output::{Clock, Facts, Kept, Output, payload};
use crate::summary::{Summary, Tally};
use crate::tracepoint::Format;

/// Limit for the decompressed size of a chunk of pages: 64 MiB. Larger chunks are rejected.
const MOST_CHUNK: u64 = 1 << 26;

/// Clocks that do not count nanoseconds.
const NO_NANOSECONDS: [&str; 3] = ["counter", "x86-tsc", "ppc-tb"];

/// Writes all instances, each as a separate trace.
pub(super) fn write(
    mut input: Input,
    file: &TraceDat,
    session: &Session,
    summary: &mut Summary,
    stop: &AtomicBool,
) -> Result<(), ImportError> {
    let mut tally = Tally::default();
    let uuid = input.uuid()?;
    for (index, buffer) in file.buffers.iter().enumerate() {
        let below = match buffer.name.as_str() {
            "" => PathBuf::from("kernel"),
            name => PathBuf::from(format!("instance-{index}-{}", directory_name(name))),
        };
        let mut own = uuid;
        own[15] ^= index as u8;
        let facts = facts(file, buffer, uuid, own);
        let mut writer = Writer {
            output: Output::new(session, &below, &facts)?,
            file,
            classes: HashMap::new(),
            tally: &mut tally,
            summary,
            stop,
        };
        for cpu in &buffer.cpus {
            writer.cpu(&mut input, buffer, *cpu)?;
            writer.output.finish_cpu(cpu.cpu)?;
        }
        writer.output.finish()?;
    }
    tally.tell(summary);
    say_lacks(file, summary);
    Ok(())
}

/// The characters of a name that are valid in the name of a directory.
fn directory_name(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.chars().filter(is_plain).take(64).collect()
}

fn clock_name<'a>(file: &'a TraceDat, buffer: &'a Buffer) -> &'a str {
    match buffer.clock.as_str() {
        "" => file.options.clock.as_deref().unwrap_or("local"),
        name => super::file::bare_clock(name),
    }
}

/// The clock of the main instance. If the time of day is known, it is known for this clock.
fn main_clock(file: &TraceDat) -> &str {
    let main = file.buffers.iter().find(|buffer| buffer.name.is_empty());
    let told = || file.options.clock.as_deref().unwrap_or("local");
    main.map_or_else(told, |main| clock_name(file, main))
}

/// Properties of an instance, whose trace has its own UUID besides that of the file.
fn facts(file: &TraceDat, buffer: &Buffer, of_file: Uuid, uuid: Uuid) -> Facts {
    let clock = clock_name(file, buffer);
    let options = &file.options;
    let is_of_day = match options.has_date {
        true => clock == main_clock(file),
        false => clock == "tai",
    };
    // Instances with the same kernel clock share a clock in CTF. A single instance has no other
    // clock to be related to.
    let is_shared = !is_of_day && file.buffers.len() > 1;
    let more = [
        ("tracer_version", options.version.clone()),
        ("trace_clock", Some(clock.to_owned())),
    ];
    let instance = (!buffer.name.is_empty()).then(|| buffer.name.clone());
    let more = more.into_iter().chain([("instance", instance)]);
    Facts {
        uuid,
        tracer: "ftrace",
        hostname: options.machine(|words| words.nth(1).map(str::to_owned)),
        release: options.machine(|words| words.nth(2).map(str::to_owned)),
        machine: options.machine(|words| words.last().map(str::to_owned)),
        clock: Clock {
            name: clock_identifier(clock),
            offset: is_of_day.then_some(0),
            uuid: is_shared.then(|| uuid_of((of_file, clock))),
        },
        has_cpus: true,
        more: more
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
    }
}

/// The name of a clock in a form that CTF can express.
fn clock_identifier(name: &str) -> String {
    let plain = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    format!("ftrace_{}", plain.collect::<String>())
}

fn say_lacks(file: &TraceDat, summary: &mut Summary) {
    summary.find_lacks();
    if file
        .buffers
        .iter()
        .any(|buffer| NO_NANOSECONDS.contains(&clock_name(file, buffer)))
        && file.options.cycles.is_none()
    {
        summary.lacks.push(
            "the clock does not count nanoseconds: times are in cycles of the clock".to_owned(),
        );
    }
    if !file.options.has_date {
        summary
            .lacks
            .push("the time of day is unknown (use trace-cmd record --date)".to_owned());
    }
    if file.options.is_guest {
        summary
            .lacks
            .push("times of the guest are not corrected to its host's clock".to_owned());
    }
    if file.tables.unknown > 0 {
        summary.lacks.push(format!(
            "{} event formats could not be parsed",
            file.tables.unknown
        ));
    }
}

/// An event class: its format, and its plan unless CTF cannot express it.
type Class<'f> = (&'f Format, Option<Arc<EventPlan>>);

struct Writer<'f, 's> {
    output: Output,
    file: &'f TraceDat,
    /// By `common_type`; `None` if there is no format.
    classes: HashMap<u32, Option<Class<'f>>>,
    tally: &'s mut Tally,
    summary: &'s mut Summary,
    stop: &'s AtomicBool,
}

impl Writer<'_, '_> {
    fn cpu(&mut self, input: &mut Input, buffer: &Buffer, cpu: CpuData) -> Result<(), ImportError> {
        if cpu.size == 0 {
            return Ok(());
        }
        let end = cpu.offset.saturating_add(cpu.size);
        if end > input.length() {
            let what = format!(
                "the file ends {} bytes before the events of CPU {} do",
                end - input.length(),
                cpu.cpu
            );
            self.summary
                .damage
                .push(format!("byte {}: {what}", input.length()));
        }
        let end = end.min(input.length());
        match buffer.is_compressed {
            true => self.chunks(input, buffer, cpu, end),
            false => self.plain(input, buffer, cpu, end),
        }
    }

    fn plain(
        &mut self,
        input: &mut Input,
        buffer: &Buffer,
        cpu: CpuData,
        end: u64,
    ) -> Result<(), ImportError> {
        let size = self.page_size(buffer)?;
        let mut at = cpu.offset;
        while at < end {
            let bytes = input.at(at, size.min((end - at) as usize))?;
            let bytes = bytes.to_vec();
            self.page(&bytes, cpu.cpu, at)?;
            at += size as u64;
        }
        Ok(())
    }

    fn page_size(&self, buffer: &Buffer) -> Result<usize, ImportError> {
        match buffer.page {
            size @ 64..=0x10_0000 => Ok(size as usize),
            size => Err(ImportError::Unsupported(format!(
                "{size} bytes is not a valid page size of a ring buffer"
            ))),
        }
    }

    /// Compressed pages, several per chunk.
    fn chunks(
        &mut self,
        input: &mut Input,
        buffer: &Buffer,
        cpu: CpuData,
        end: u64,
    ) -> Result<(), ImportError> {
        let size = self.page_size(buffer)?;
        let big = self.file.tables.big;
        let count = number(input.at(cpu.offset, 4)?, big);
        let mut at = cpu.offset.saturating_add(4);
        for _ in 0..count {
            if at >= end {
                return Ok(());
            }
            let head = input.part(at, 8)?;
            let mut head = Bytes::new(&head, at, big);
            let (compressed, told) = (u64::from(head.u32()?), u64::from(head.u32()?));
            let pages = self.chunk(input, at, compressed, told);
            match pages {
                Ok(pages) => {
                    for page in pages.chunks(size) {
                        self.page(page, cpu.cpu, at)?;
                    }
                }
                Err(what) => {
                    self.summary
                        .damage
                        .push(format!("byte {at}: events of CPU {}: {what}", cpu.cpu));
                    self.output.discard(cpu.cpu, None, 1)?;
                }
            }
            at = at.saturating_add(8 + compressed);
        }
        Ok(())
    }

    fn chunk(&self, input: &Input, at: u64, compressed: u64, told: u64) -> Result<Vec<u8>, String> {
        if told > MOST_CHUNK {
            return Err(format!("a chunk of {told} bytes is too large"));
        }
        let bytes = input
            .part(at + 8, compressed)
            .map_err(|error| error.to_string())?;
        let algorithm: Algorithm = self.file.compression;
        algorithm.all(&bytes, told)
    }

    fn page(&mut self, bytes: &[u8], cpu: u32, offset: u64) -> Result<(), ImportError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ImportError::Interrupted);
        }
        let tables = &self.file.tables;
        let Some(page) = Page::parse(bytes, tables.long, tables.big) else {
            self.tally
                .count("a page of events is damaged and was skipped", offset);
            return self.output.discard(cpu, None, 1);
        };
        if let Some(missed) = page.missed {
            // At least one event.
            let missed = missed.max(1);
            let until = self.time(page.time);
            self.output.discard(cpu, Some(until), missed)?;
            self.summary.lost = self.summary.lost.saturating_add(missed);
        }
        for event in page.events() {
            match event {
                Ok(event) => self.event(event, cpu, offset)?,
                Err(_) => {
                    self.tally.count(
                        "the rest of a page of events is damaged and was skipped",
                        offset,
                    );
                    self.output.discard(cpu, None, 1)?;
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, event: RawEvent<'_>, cpu: u32, offset: u64) -> Result<(), ImportError> {
        let big = self.file.tables.big;
        let kept = match self.write(event, cpu, big)? {
            Some(kept) => kept,
            None => {
                self.tally
                    .count("an event has no format and was skipped", offset);
                return Ok(());
            }
        };
        match kept {
            Kept::Yes => {}
            Kept::Late => self.tally.count(
                "an event is older than the previous event and was skipped",
                offset,
            ),
            Kept::Broken => self
                .tally
                .count("an event is damaged and was skipped", offset),
        }
        Ok(())
    }

    fn write(
        &mut self,
        event: RawEvent<'_>,
        cpu: u32,
        big: bool,
    ) -> Result<Option<Kept>, ImportError> {
        let Some(kind) = event.data.get(..2).map(|bytes| number(bytes, big) as u32) else {
            return Ok(Some(Kept::Broken));
        };
        let file = self.file;
        if !self.classes.contains_key(&kind) {
            let class = match file.tables.formats.get(&kind) {
                Some(format) => Some((
                    format,
                    self.output.class(&format.name, format.add_to(payload()))?,
                )),
                None => None,
            };
            self.classes.insert(kind, class);
        }
        let Some(Some((format, plan))) = self.classes.get(&kind) else {
            return Ok(None);
        };
        let Some(plan) = plan.as_ref().filter(|_| format.fits(event.data, big)) else {
            return Ok(Some(Kept::Broken));
        };
        let comm = file.names.of(tid(format, event.data, big));
        let time = self.time(event.time);
        let kept = self
            .output
            .record(cpu, plan, time, comm, |to| format.give(event.data, big, to))?;
        if kept == Kept::Yes {
            self.summary.event(&format.name);
        }
        Ok(Some(kept))
    }

    /// The time in nanoseconds that trace-cmd would display.
    fn time(&self, time: u64) -> u64 {
        let options = &self.file.options;
        let time = match options.cycles {
            Some(cycles) => {
                let nanoseconds =
                    (u128::from(time) * u128::from(cycles.mult)) >> cycles.shift.min(127);
                (nanoseconds as u64).wrapping_sub(cycles.offset)
            }
            None => time,
        };
        time.wrapping_add(options.offset as u64)
    }
}

/// The thread of an event.
fn tid(format: &Format, raw: &[u8], big: bool) -> i32 {
    let field = format.field("common_pid");
    let bytes = field.and_then(|field| raw.get(field.offset as usize..field.end() as usize));
    bytes.map_or(-1, |bytes| number(bytes, big) as i32)
}
