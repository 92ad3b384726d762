//! The parts of perf.data before and after its records: events, formats of tracepoints, properties
//! of the machine.

use tracebraid_ctf::schema::Uuid;

use super::attr::{Attr, Rate};
use super::classes::SampleClass;
use super::features::{self, BuildId, ClockReference};
use crate::bytes::Bytes;
use crate::error::ImportError;
use crate::input::Input;
use crate::output::{Clock, Facts};
use crate::summary::Summary;
use crate::tracepoint::{Tables, read_event_formats, read_ftrace_formats, read_preamble};

/// Magic numbers of the format's second version; the second is that of a machine of the other byte
/// order.
pub(crate) const MAGIC: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// All properties of a file besides its records.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub(crate) big: bool,
    pub(crate) attrs: Vec<Attr>,
    /// Formats of tracepoints.
    pub(crate) tables: Option<Tables>,
    pub(crate) hostname: Option<String>,
    pub(crate) release: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) clock: Option<ClockReference>,
    pub(crate) build_ids: Vec<BuildId>,
    /// The records are in other files.
    pub(crate) is_directory: bool,
}

/// Position of the records in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The file was written to a pipe: features are records, too.
    pub(crate) is_pipe: bool,
}

/// Largest number of events of a recording, larger than in practice.
const MOST_ATTRS: u64 = 1 << 16;

/// Size of the head of a file, and of a file that was written to a pipe, in bytes.
const HEAD: u64 = 104;
const PIPE_HEAD: u64 = 16;

impl Header {
    /// Reads the head of the file and the sections after the records.
    pub(crate) fn read(
        input: &Input,
        summary: &mut Summary,
    ) -> Result<(Header, Records), ImportError> {
        let head = input.head(HEAD)?;
        let big = head.starts_with(MAGIC[1]);
        let mut at = Bytes::new(&head, 0, big);
        at.take(8)?;
        let mut header = Header {
            big,
            ..Header::default()
        };
        if at.u64()? == PIPE_HEAD {
            let records = Records {
                begin: PIPE_HEAD,
                end: input.length(),
                is_pipe: true,
            };
            return Ok((header, records));
        }
        let attr_size = at.u64()?;
        let (attrs, data) = ((at.u64()?, at.u64()?), (at.u64()?, at.u64()?));
        at.take(16)?;
        let mut bits = [0; 4];
        for word in &mut bits {
            *word = at.u64()?;
        }
        header.read_attrs(input, attr_size, attrs)?;
        let records = records(input, data, summary)?;
        if let Err(error) = header.read_features(input, data, bits) {
            summary.damage.push(format!(
                "{error}: the descriptions of the machine and of the tracepoints are incomplete"
            ));
        }
        Ok((header, records))
    }

    fn read_attrs(
        &mut self,
        input: &Input,
        size: u64,
        (offset, bytes): (u64, u64),
    ) -> Result<(), ImportError> {
        if size < 64 + 16 || bytes < size || bytes / size > MOST_ATTRS {
            let what =
                format!("invalid table of events: {bytes} bytes of entries of {size} bytes each");
            return Err(ImportError::malformed(16, what));
        }
        let table = input.part(offset, bytes)?;
        for (index, entry) in table.chunks_exact(size as usize).enumerate() {
            let at = offset + index as u64 * size;
            let (attr, ids) = entry.split_at(size as usize - 16);
            let mut attr = Attr::parse(attr, at, self.big)?;
            let mut ids = Bytes::new(ids, at + size - 16, self.big);
            let (ids_offset, ids_bytes) = (ids.u64()?, ids.u64()?);
            attr.ids = self.numbers(&input.part(ids_offset, ids_bytes)?);
            self.attrs.push(attr);
        }
        Ok(())
    }

    fn numbers(&self, bytes: &[u8]) -> Vec<u64> {
        let chunks = bytes.chunks_exact(8);
        chunks
            .map(|chunk| crate::bytes::number(chunk, self.big))
            .collect()
    }

    /// Reads the table of sections after the records, with an entry for each feature that is set.
    fn read_features(
        &mut self,
        input: &Input,
        data: (u64, u64),
        bits: [u64; 4],
    ) -> Result<(), ImportError> {
        let set: Vec<u32> = (0..256)
            .filter(|bit| bits[*bit as usize / 64] >> (bit % 64) & 1 == 1)
            .collect();
        let begin = data.0.saturating_add(data.1);
        let table = input.part(begin, set.len() as u64 * 16)?;
        let mut table = Bytes::new(&table, begin, self.big);
        let mut first_error = None;
        for feature in set {
            let (offset, size) = (table.u64()?, table.u64()?);
            if features::is_read(feature) {
                let read = input
                    .part(offset, size)
                    .and_then(|bytes| self.read_feature(feature, &bytes, offset));
                first_error = first_error.or(read.err());
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Reads the formats of tracepoints.
    pub(crate) fn read_tracing_data(
        &mut self,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), ImportError> {
        let mut at = Bytes::new(bytes, offset, self.big);
        let (_, mut tables) = read_preamble(&mut at)?;
        tables.read_header_info(&mut at)?;
        let read = read_ftrace_formats(&mut tables, &mut at)
            .and_then(|()| read_event_formats(&mut tables, &mut at));
        self.tables = Some(tables);
        read
    }

    /// Sampling rates, which event names do not contain: `cycles=4000Hz;cpu-clock=100000`, in Hertz
    /// or in events per sample (clocks: nanoseconds). Tracepoints are omitted, since each event is
    /// a sample.
    fn sampling(&self) -> Option<String> {
        let attrs = self.attrs.iter().filter(|attr| !attr.is_tracepoint());
        let rates = attrs.filter_map(|attr| {
            let name = SampleClass { attr, format: None }.name();
            match attr.rate {
                Rate::Period(0) | Rate::Hertz(0) => None,
                Rate::Period(period) => Some(format!("{name}={period}")),
                Rate::Hertz(hertz) => Some(format!("{name}={hertz}Hz")),
            }
        });
        let rates: Vec<String> = rates.collect();
        (!rates.is_empty()).then(|| rates.join(";"))
    }

    /// Properties of the trace for its metadata.
    pub(crate) fn facts(&self, uuid: Uuid) -> Facts {
        let clock = self.attrs.iter().find_map(|attr| attr.clock);
        let name = match clock {
            None => "perf_clock",
            Some(0) => "realtime",
            Some(1) => "monotonic",
            Some(4) => "monotonic_raw",
            Some(7) => "boottime",
            Some(11) => "tai",
            Some(_) => "clock",
        };
        let offset = match clock {
            Some(0) => Some(0),
            // The name of this clock alone does not determine the time of day.
            _ => self.clock.map(|reference| reference.offset()),
        };
        let sampling = self.sampling();
        let more = [
            ("tracer_version", &self.version),
            ("command_line", &self.command),
            ("perf_sampling", &sampling),
        ];
        let more = more
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        Facts {
            uuid,
            tracer: "perf",
            hostname: self.hostname.clone(),
            release: self.release.clone(),
            machine: self.machine.clone(),
            clock: Clock {
                name: name.to_owned(),
                offset,
                uuid: None,
            },
            has_cpus: self
                .attrs
                .iter()
                .all(|attr| attr.has(super::attr::sample_type::CPU)),
            more: more.collect(),
        }
    }
}

/// Position of the records, as far as the file contains them.
fn records(
    input: &Input,
    (begin, size): (u64, u64),
    summary: &mut Summary,
) -> Result<Records, ImportError> {
    let told = begin.saturating_add(size);
    if begin > input.length() {
        let what = "the records should begin here, but the file is shorter";
        return Err(ImportError::malformed(begin, what));
    }
    let mut end = told;
    if size == 0 && begin < input.length() {
        // perf writes the size when it ends.
        let message = "byte 48: perf did not complete the file: the size of the records is missing; they are read up to the end of the file";
        summary.damage.push(message.to_owned());
        end = input.length();
    } else if told > input.length() {
        let missing = told - input.length();
        summary.damage.push(format!(
            "byte {}: the file ends {missing} bytes before its records do",
            input.length()
        ));
        end = input.length();
    }
    Ok(Records {
        begin,
        end,
        is_pipe: false,
    })
}
