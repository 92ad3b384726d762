//! FxT: a trace of a program, as libfxt writes it on a 64-bit little-endian machine.
//!
//! Records of the user-level scheduler and of functions get the codes of libfxt (`fut.h`), all others
//! codes from [`FIRST_CODE`] on, whose names `fxt_print` finds among the symbols. Threads are those
//! that analyses see; parameters are the integers of a record, then its texts in words. The symbols
//! come before the records in the file and are known after them, so that records are written to a
//! temporary file first.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use tracebraid_levels::exported::{Record, Value};

/// Codes of libfxt.
const NEW_LWP: u64 = 0xfff6;
const NAME: u64 = 0xfff7;
const DEATH: u64 = 0xfff8;
const BIRTH: u64 = 0xfff9;
const SWITCH: u64 = 0x31a;
const ENTER: u64 = 0x320;
const LEAVE: u64 = 0x420;

/// `FKT_I386_FUNCTION_MINI`: fxt_print looks up the names of codes from here on in the symbols.
const FIRST_CODE: u64 = 0x8000_0000;

/// Addresses of functions, which have names of their own in the symbols.
const FIRST_FUNCTION: u64 = 0x7000_0000_0000;

/// The largest number of parameters of a record.
const MOST_PARAMS: usize = 254;

/// Bytes of a name: fxt_print has room for 128.
const MOST_NAME: usize = 100;

/// Block types, and architecture.
const INFOS: i32 = 1;
const TIME: i32 = 0x10;
const UNAME: i32 = 0x11;
const IRQS: i32 = 0x12;
const SYMBOLS: i32 = 0x13;
const PIDS: i32 = 0x14;
const USER_64: i32 = 0x201;
const X86_64: u32 = 2;

/// Writes FxT's format.
pub struct FxtWriter<S: Write> {
    spool: BufWriter<S>,
    /// Codes of event classes and addresses of functions, by name.
    codes: HashMap<String, u64>,
    functions: HashMap<String, u64>,
    /// LWPs that were introduced.
    lwps: HashMap<i32, u64>,
    cpus: BTreeSet<u32>,
    range: Option<(i64, i64)>,
    host: String,
    records: u64,
}

impl<S: Read + Write + Seek> FxtWriter<S> {
    /// A writer of the trace of this host, with a temporary file for the records.
    pub fn new(spool: S, host: &str) -> FxtWriter<S> {
        FxtWriter {
            spool: BufWriter::with_capacity(1 << 16, spool),
            codes: HashMap::new(),
            functions: HashMap::new(),
            lwps: HashMap::new(),
            cpus: BTreeSet::new(),
            range: None,
            host: host.to_owned(),
            records: 0,
        }
    }

    /// Adds an event record, in the order of time.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        let begin = self.range.map_or(record.time, |range| range.0);
        self.range = Some((begin, record.time));
        self.cpus.extend(record.cpu);
        let is_user_level = record.ult != 0 && record.ult != u64::MAX;
        if is_user_level && record.lwp > 0 && !self.lwps.contains_key(&record.lwp) {
            let number = self.lwps.len() as u64;
            self.lwps.insert(record.lwp, number);
            self.write(record, NEW_LWP, &[number, record.lwp as u64])?;
        }
        let id = |name: &str| record.int(name).unwrap_or(0) as u64;
        match (&*record.name, record.level()) {
            ("sched_switch", 1..) => {
                self.write(record, SWITCH, &[id("next_tid"), id("prev_state")])
            }
            ("sched_process_exit", 1..) => self.write(record, DEATH, &[id("tid")]),
            ("tracebraid_levels:thread", _) => {
                let params = [id("tid"), id("ult"), id("pid")];
                self.write(record, BIRTH, &params)?;
                let name = record.text("name").unwrap_or_default();
                let mut params = vec![id("tid")];
                params.extend(words(name, 31));
                // Marcel's names are four words.
                params.resize(5, 0);
                self.write(record, NAME, &params)
            }
            ("tracebraid:prof_in", _) => self.function(record, ENTER),
            ("tracebraid:prof_out", _) => self.function(record, LEAVE),
            _ => self.other(record),
        }
    }

    fn function(&mut self, record: &Record, code: u64) -> io::Result<()> {
        let name = record.text("name").unwrap_or_default();
        let next = FIRST_FUNCTION + 16 * self.functions.len() as u64;
        let address = *self.functions.entry(name.to_owned()).or_insert(next);
        self.write(record, code, &[address])
    }

    fn other(&mut self, record: &Record) -> io::Result<()> {
        let next = FIRST_CODE + self.codes.len() as u64;
        let code = *self.codes.entry(record.name.to_string()).or_insert(next);
        let mut params = Vec::new();
        for (_, value) in &record.fields {
            match value {
                Value::Int(value) => params.push(*value as u64),
                Value::Float(value) => params.push(value.to_bits()),
                Value::Text(_) => {}
            }
        }
        for (_, value) in &record.fields {
            if let Value::Text(text) = value {
                params.extend(words(text, 8 * MOST_PARAMS));
            }
        }
        params.truncate(MOST_PARAMS);
        self.write(record, code, &params)
    }

    fn write(&mut self, record: &Record, code: u64, params: &[u64]) -> io::Result<()> {
        self.records += 1;
        let time = record.time.max(0) as u64;
        let head = [
            time,
            record.tid as u64,
            code << 8 | (params.len() as u64 + 1),
        ];
        for value in head.iter().chain(params) {
            self.spool.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it or the temporary file cannot be written.
    pub fn finish(mut self, mut output: impl Write) -> io::Result<()> {
        output.write_all(&X86_64.to_be_bytes())?;
        let blocks = [
            block(TIME, &self.time()),
            block(IRQS, &[0; 8]),
            block(UNAME, &self.uname()),
            block(SYMBOLS, &self.symbols()),
            block(PIDS, &[0; 8]),
        ];
        output.write_all(&block(INFOS, &blocks.concat()))?;
        let size = self.spool.stream_position()?;
        output.write_all(&(16 + size).to_le_bytes())?;
        output.write_all(&USER_64.to_le_bytes())?;
        output.write_all(&[0; 4])?;
        let mut spool = self
            .spool
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        spool.seek(SeekFrom::Start(0))?;
        io::copy(&mut spool, &mut output)?;
        output.flush()
    }

    /// Space, CPUs at 1 GHz (times are nanoseconds), processes, and the time of day in seconds.
    fn time(&self) -> Vec<u8> {
        let cpus = self.cpus.last().map_or(1, |last| last + 1);
        let mut bytes = Vec::new();
        let mut numbers = vec![1, cpus];
        numbers.extend((0..cpus).map(|_| 1000));
        numbers.extend([0, 0]);
        bytes.extend(numbers.iter().flat_map(|of: &u32| of.to_le_bytes()));
        let (begin, end) = self.range.unwrap_or_default();
        for time in [begin / 1_000_000_000, end / 1_000_000_000, 0, 0] {
            bytes.extend(time.to_le_bytes());
        }
        bytes.extend(4096u32.to_le_bytes());
        bytes
    }

    fn uname(&self) -> Vec<u8> {
        let text = format!("Linux {}", self.host);
        let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    }

    fn symbols(&self) -> Vec<u8> {
        let mut symbols: Vec<(u64, &str)> = Vec::new();
        for names in [&self.codes, &self.functions] {
            symbols.extend(
                names
                    .iter()
                    .map(|(name, address)| (*address, name.as_str())),
            );
        }
        symbols.sort_unstable();
        let mut bytes = Vec::new();
        for (address, name) in symbols {
            let name = shortened(name);
            bytes.extend(address.to_le_bytes());
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.extend([0; 8]);
        bytes
    }
}

fn block(kind: i32, content: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + content.len() as u64).to_le_bytes().to_vec();
    bytes.extend(kind.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(content);
    bytes
}

/// A text in words, the rest of the last one filled with zeros.
fn words(text: &str, most: usize) -> impl Iterator<Item = u64> {
    let bytes = text.as_bytes();
    let bytes = bytes.get(..most).unwrap_or(bytes).to_vec();
    let count = bytes.len().div_ceil(8);
    (0..count).map(move |index| {
        let rest = bytes.iter().skip(8 * index).take(8);
        let shifted = rest.enumerate();
        shifted.fold(0, |word, (place, byte)| {
            word | u64::from(*byte) << (8 * place)
        })
    })
}

/// The begin of a name, up to a whole character.
fn shortened(name: &str) -> &str {
    let end = (0..=MOST_NAME.min(name.len())).rev();
    let end = end.into_iter().find(|end| name.is_char_boundary(*end));
    name.get(..end.unwrap_or(0)).unwrap_or_default()
}
