//! Reads the records of perf.data in the order of the file, compressed or not, and passes them on
//! in the order of time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tracebraid_ctf::write::trace::Session;

use super::attr::Attr;
use super::header::{Header, Records};
use super::order::{Order, Record};
use super::sample::Sample;
use super::side::kind;
use super::writer::Writer;
use crate::bytes::{Bytes, number};
use crate::compression::ZstdStream;
use crate::error::ImportError;
use crate::input::Input;
use crate::output::Output;
use crate::summary::{Summary, Tally};

/// Size of a record's head in bytes.
const HEAD: usize = 8;

/// Reads the records.
pub(super) struct Reader<'s> {
    input: Input,
    header: Header,
    session: &'s Session,
    order: Order,
    /// Events by the ids of their counters.
    by_id: HashMap<u64, usize>,
    /// Created for the first event.
    writer: Option<Writer>,
    zstd: Option<ZstdStream>,
    /// Decompressed bytes that do not form a complete record yet.
    partial: Vec<u8>,
    tally: Tally,
    summary: Summary,
}

/// The head of a record in the file.
struct Head {
    kind: u32,
    misc: u16,
    size: usize,
}

impl Head {
    fn parse(bytes: &[u8], big: bool) -> Option<Head> {
        let mut at = Bytes::new(bytes, 0, big);
        Some(Head {
            kind: at.u32().ok()?,
            misc: at.u16().ok()?,
            size: usize::from(at.u16().ok()?),
        })
    }
}

impl<'s> Reader<'s> {
    pub(super) fn new(
        input: Input,
        header: Header,
        session: &'s Session,
        summary: Summary,
    ) -> Reader<'s> {
        let mut reader = Reader {
            input,
            header,
            session,
            order: Order::default(),
            by_id: HashMap::new(),
            writer: None,
            zstd: None,
            partial: Vec::new(),
            tally: Tally::default(),
            summary,
        };
        reader.index();
        reader
    }

    fn index(&mut self) {
        let attrs = self.header.attrs.iter().enumerate();
        let ids = attrs.flat_map(|(index, attr)| attr.ids.iter().map(move |id| (*id, index)));
        self.by_id = ids.collect();
    }

    /// Reads all records, up to the first record with an implausible size.
    pub(super) fn read(&mut self, records: Records, stop: &AtomicBool) -> Result<(), ImportError> {
        let mut at = records.begin;
        while at < records.end {
            if stop.load(Ordering::Relaxed) {
                return Err(ImportError::Interrupted);
            }
            let rest = records.end - at;
            let big = self.header.big;
            let head = Head::parse(self.input.at(at, HEAD)?, big);
            let Some(head) = head.filter(|head| head.size >= HEAD && head.size as u64 <= rest)
            else {
                let what = "no complete record begins here; the rest of the file is skipped";
                self.summary.damage.push(format!("byte {at}: {what}"));
                break;
            };
            let body = self
                .input
                .at(at, head.size)?
                .get(HEAD..)
                .unwrap_or_default()
                .to_vec();
            let skipped = self.take(&head, body, at, records.is_pipe)?;
            at = at.saturating_add(head.size as u64).saturating_add(skipped);
        }
        let left = self.order.finish();
        self.write(left)
    }

    /// Processes a record; returns the number of bytes after it that belong to it.
    fn take(
        &mut self,
        head: &Head,
        body: Vec<u8>,
        offset: u64,
        is_pipe: bool,
    ) -> Result<u64, ImportError> {
        let word = |at: usize| {
            body.get(at..at + 8)
                .map(|bytes| number(bytes, self.header.big))
        };
        match head.kind {
            kind::FINISHED_ROUND => {
                let ready = self.order.finish_round();
                self.write(ready)?;
            }
            kind::COMPRESSED => self.decompress(&body, offset)?,
            kind::COMPRESSED2 => {
                let size = word(0).unwrap_or(0).min(body.len() as u64) as usize;
                self.decompress(
                    body.get(8..8 + size).or(body.get(8..)).unwrap_or_default(),
                    offset,
                )?;
            }
            kind::AUXTRACE => return Ok(word(0).unwrap_or(0)),
            kind::TRACING_DATA if is_pipe => return self.take_tracing_data(&body, offset),
            kind::HEADER_ATTR if is_pipe => self.take_attr(&body, offset),
            kind::HEADER_FEATURE if is_pipe => {
                let feature = word(0).unwrap_or(0).min(u64::from(u32::MAX)) as u32;
                let content = body.get(8..).unwrap_or_default();
                if let Err(error) = self.header.read_feature(feature, content, offset + 16) {
                    self.summary.damage.push(error.to_string());
                }
            }
            kind::BUILD_ID if is_pipe => self.wait(head, body, offset)?,
            kind if kind < kind::FIRST_OF_PERF => self.wait(head, body, offset)?,
            _ => {}
        }
        Ok(0)
    }

    /// Reads an event of a file that was written to a pipe.
    fn take_attr(&mut self, body: &[u8], offset: u64) {
        let big = self.header.big;
        let size = body.get(4..8).map_or(0, |size| number(size, big)) as usize;
        let (Some(attr), Some(ids)) = (body.get(..size), body.get(size..)) else {
            return self
                .tally
                .count("the description of an event is damaged", offset);
        };
        match Attr::parse(attr, offset + HEAD as u64, big) {
            Ok(mut attr) => {
                attr.ids = ids.chunks_exact(8).map(|id| number(id, big)).collect();
                self.header.attrs.push(attr);
                self.index();
            }
            Err(_) => self
                .tally
                .count("the description of an event is damaged", offset),
        }
    }

    /// Reads formats of tracepoints, which follow their record, of a file that was written to a
    /// pipe.
    fn take_tracing_data(&mut self, body: &[u8], offset: u64) -> Result<u64, ImportError> {
        let size = body
            .get(..4)
            .map_or(0, |size| number(size, self.header.big));
        let begin = offset + (HEAD + body.len()) as u64;
        let content = self.input.part(begin, size)?;
        if let Err(error) = self.header.read_tracing_data(&content, begin) {
            self.summary.damage.push(error.to_string());
        }
        Ok(size.next_multiple_of(8))
    }

    /// Decompresses a record. Its content may end anywhere within another record.
    fn decompress(&mut self, bytes: &[u8], offset: u64) -> Result<(), ImportError> {
        let mut zstd = self.zstd.take().unwrap_or_else(ZstdStream::new);
        let fed = zstd.feed(bytes, |piece| self.take_piece(piece, offset));
        self.zstd = Some(zstd);
        match fed {
            Err(Stop::Damage(what)) => Err(ImportError::malformed(
                offset,
                format!("a compressed record: {what}"),
            )),
            Err(Stop::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    }

    fn take_piece(&mut self, piece: &[u8], offset: u64) -> Result<(), Stop> {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(piece);
        let mut rest = all.as_slice();
        while let Some(head) = Head::parse(rest, self.header.big) {
            if head.size < HEAD {
                return Err(Stop::Damage(
                    "the decompressed data contains no valid record".to_owned(),
                ));
            }
            let Some((record, behind)) = rest.split_at_checked(head.size) else {
                break;
            };
            let body = record.get(HEAD..).unwrap_or_default().to_vec();
            if head.kind < kind::FIRST_OF_PERF {
                self.wait(&head, body, offset).map_err(Stop::Error)?;
            }
            rest = behind;
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    /// Determines the event, time and CPU of a record, and adds it to the buffer.
    fn wait(&mut self, head: &Head, body: Vec<u8>, offset: u64) -> Result<(), ImportError> {
        let Some((attr, when)) = self.place(head, &body) else {
            self.tally
                .count("a record belongs to no known event and was skipped", offset);
            return Ok(());
        };
        let is_told = self
            .header
            .attrs
            .get(attr)
            .is_some_and(|attr| attr.has(super::attr::sample_type::TIME));
        if !matches!(
            head.kind,
            kind::MMAP
                | kind::LOST
                | kind::COMM
                | kind::EXIT
                | kind::FORK
                | kind::SAMPLE
                | kind::MMAP2
                | kind::LOST_SAMPLES
                | kind::SWITCH
                | kind::SWITCH_CPU_WIDE
                | kind::BUILD_ID
        ) {
            return Ok(());
        }
        let record = Record {
            time: if is_told { when.time } else { 0 },
            has_no_time: false,
            offset,
            kind: head.kind,
            misc: head.misc,
            cpu: when.cpu,
            attr,
            body: body.into(),
        };
        let ready = self.order.add(record);
        self.write(ready)
    }

    /// The event of a record, and its time and CPU.
    fn place(&self, head: &Head, body: &[u8]) -> Option<(usize, Sample<'static>)> {
        let big = self.header.big;
        if head.kind == kind::BUILD_ID {
            return Some((0, Sample::default()));
        }
        let first = self.header.attrs.first()?;
        if head.kind == kind::SAMPLE {
            let attr = match self.header.attrs.len() {
                1 => 0,
                _ => {
                    let at = first.id_in_sample()? as usize;
                    *self.by_id.get(&number(body.get(at..at + 8)?, big))?
                }
            };
            let when = Sample::parse_head(self.header.attrs.get(attr)?, body, big).ok()?;
            return Some((attr, when));
        }
        let when = Sample::parse_trailer(first, body, big).ok()?;
        Some((self.by_id.get(&when.id).copied().unwrap_or(0), when))
    }

    fn write(&mut self, records: Vec<Record>) -> Result<(), ImportError> {
        if records.is_empty() {
            return Ok(());
        }
        if self.writer.is_none() {
            let facts = self.header.facts(self.input.uuid()?);
            let output = Output::new(self.session, Path::new("kernel"), &facts)?;
            self.writer = Some(Writer::new(
                output,
                std::mem::take(&mut self.header.build_ids),
            ));
        }
        if let Some(writer) = &mut self.writer {
            for record in records {
                writer.write(&self.header, record, &mut self.tally, &mut self.summary)?;
            }
        }
        Ok(())
    }

    /// Ends the trace.
    pub(super) fn finish(mut self) -> Result<(Header, Summary), ImportError> {
        if self.order.was_full {
            let what = "the buffer that sorts events by time was full: events that follow too late are skipped";
            self.summary.damage.push(what.to_owned());
        }
        match self.writer.take() {
            Some(writer) => writer.finish(&self.header, &mut self.tally, &mut self.summary)?,
            None => drop(Output::new(
                self.session,
                Path::new("kernel"),
                &self.header.facts(self.input.uuid()?),
            )?),
        }
        self.tally.tell(&mut self.summary);
        Ok((self.header, self.summary))
    }
}

/// The reason why decompression stopped.
enum Stop {
    Damage(String),
    Error(ImportError),
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Damage(what)
    }
}
