//! The trace's metadata: a preamble, then one event class for each registration, each appended as a
//! whole.

use core::fmt::Write;

use crate::clock;
use crate::sys::{self, Errno, Path};
use crate::text::Text;

/// Maximum length of an appended piece. No piece crosses a page boundary of the file, because the
/// file's length changes page by page: after SIGKILL a piece is either complete or absent.
const PAGE: usize = 4096;
pub(crate) type Piece = Text<{ PAGE + 1 }>;

/// Properties of the process for the preamble.
pub(crate) struct About<'a> {
    pub(crate) uuid: [u8; 16],
    pub(crate) name: &'a [u8],
    pub(crate) pid: u32,
    /// Nanoseconds from CLOCK_MONOTONIC to the time since 1970.
    pub(crate) offset: u64,
    /// Nanoseconds that a probe takes, if they were measured.
    pub(crate) cost: Option<u64>,
}

/// Nanoseconds from CLOCK_MONOTONIC to CLOCK_REALTIME: the fastest of several measurements.
pub(crate) fn measured_offset() -> u64 {
    let mut best = (u64::MAX, 0);
    for _ in 0..8 {
        let before = clock::monotonic();
        let real = sys::clock(libc::CLOCK_REALTIME);
        let took = clock::monotonic().wrapping_sub(before);
        if took < best.0 {
            best = (took, real.wrapping_sub(before + took / 2));
        }
    }
    best.1
}

/// Writes the file with its preamble.
pub(crate) fn write_preamble(path: &Path, about: &About<'_>) -> Result<(), Errno> {
    let file = sys::open(path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?;
    let mut text = Piece::new();
    // Text truncates; the overflow is checked below.
    let _ = write_trace(&mut text, about);
    text.push(STREAM.as_bytes());
    if text.overflowed() {
        return Err(libc::ENAMETOOLONG);
    }
    sys::write(&file, text.bytes())
}

fn write_trace(text: &mut Piece, about: &About<'_>) -> core::fmt::Result {
    let order = if cfg!(target_endian = "little") {
        "le"
    } else {
        "be"
    };
    text.push(b"/* CTF 1.8 */\n\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"");
    write_uuid(text, &about.uuid)?;
    write!(
        text,
        "\";\n\tbyte_order = {order};\n{PACKET_HEADER}}};\n\nenv {{\n\thostname = \""
    )?;
    write_host(text);
    text.push(b"\";\n\tdomain = \"ust\";\n\ttracer_name = \"tracebraid-probe\";\n");
    writeln!(
        text,
        "\ttracer_major = {};",
        env!("CARGO_PKG_VERSION_MAJOR")
    )?;
    writeln!(
        text,
        "\ttracer_minor = {};",
        env!("CARGO_PKG_VERSION_MINOR")
    )?;
    write!(
        text,
        "\ttracer_buffering_scheme = \"pid\";\n\tvpid = {};\n\tprocname = \"",
        about.pid
    )?;
    push_escaped(text, about.name);
    write!(text, "\";\n\tarchitecture_bit_width = {};\n", usize::BITS)?;
    if let Some(cost) = about.cost {
        writeln!(text, "\ttracebraid_probe_cost_ns = {cost};")?;
    }
    text.push(b"};\n\n");
    write_clock(text, about.offset)
}

fn write_clock(text: &mut Piece, offset: u64) -> core::fmt::Result {
    text.push(b"clock {\n\tname = \"monotonic\";\n");
    let mut boot = [0; 36];
    let mut path = Path::new();
    path.push(b"/proc/sys/kernel/random/boot_id");
    let read = sys::open(&path, libc::O_RDONLY).and_then(|file| sys::read(&file, &mut boot));
    if read == Ok(boot.len()) {
        text.push(b"\tuuid = \"");
        text.push(&boot);
        text.push(b"\";\n");
    }
    let (seconds, rest) = (offset / 1_000_000_000, offset % 1_000_000_000);
    text.push(b"\tdescription = \"Monotonic Clock\";\n\tfreq = 1000000000;\n\tabsolute = TRUE;\n");
    write!(text, "\toffset_s = {seconds};\n\toffset = {rest};\n}};\n\n")
}

fn write_uuid(text: &mut Piece, uuid: &[u8; 16]) -> core::fmt::Result {
    for (at, byte) in uuid.iter().enumerate() {
        let dash = if matches!(at, 4 | 6 | 8 | 10) {
            "-"
        } else {
            ""
        };
        write!(text, "{dash}{byte:02x}")?;
    }
    Ok(())
}

fn write_host(text: &mut Piece) {
    let mut name = [0; 256];
    let mut path = Path::new();
    path.push(b"/proc/sys/kernel/hostname");
    let read = sys::open(&path, libc::O_RDONLY).and_then(|file| sys::read(&file, &mut name));
    let name = name.get(..read.unwrap_or(0)).unwrap_or_default();
    push_escaped(text, name.trim_ascii_end());
}

/// Appends text, escaped for use between quotes.
fn push_escaped<const N: usize>(text: &mut Text<N>, name: &[u8]) {
    for &byte in name {
        match byte {
            b'"' | b'\\' => text.push(&[b'\\', byte]),
            b' '..=b'~' => text.push(&[byte]),
            _ => text.push(b"_"),
        }
    }
}

/// Appends an event class, composed in `text`. `fields` is TSDL.
pub(crate) fn append(
    path: &Path,
    text: &mut Piece,
    id: u16,
    name: &[u8],
    fields: &[u8],
) -> Result<(), Errno> {
    text.clear();
    text.push(b"event {\n\tname = \"");
    push_escaped(text, name);
    let _ = write!(
        text,
        "\";\n\tid = {id};\n\tstream_id = 0;\n\tfields := struct {{\n"
    );
    text.push(fields);
    text.push(b"\t} align(32);\n};\n\n");
    if text.overflowed() {
        return Err(libc::ENAMETOOLONG);
    }
    let file = sys::open(path, libc::O_WRONLY | libc::O_APPEND)?;
    let length = sys::length(&file)?;
    let rest = PAGE - (length % PAGE as u64) as usize;
    if text.bytes().len() > rest {
        sys::write(&file, &[b'\n'; PAGE][..rest])?;
    }
    let length = sys::length(&file)?;
    sys::write(&file, text.bytes()).inspect_err(|_| sys::cut(&file, length))
}

const PACKET_HEADER: &str = "\tpacket.header := struct {
		integer { size = 32; align = 32; signed = false; } magic;
		integer { size = 8; align = 8; signed = false; } uuid[16];
		integer { size = 32; align = 32; signed = false; } stream_id;
		integer { size = 64; align = 64; signed = false; } stream_instance_id;
	};
";

const STREAM: &str = "stream {
	id = 0;
	event.header := struct {
		integer { size = 16; align = 32; signed = false; } id;
		integer { size = 64; align = 16; signed = false; map = clock.monotonic.value; } timestamp;
	};
	packet.context := struct {
		integer { size = 64; align = 64; signed = false; map = clock.monotonic.value; } timestamp_begin;
		integer { size = 64; align = 64; signed = false; map = clock.monotonic.value; } timestamp_end;
		integer { size = 64; align = 64; signed = false; } content_size;
		integer { size = 64; align = 64; signed = false; } packet_size;
		integer { size = 64; align = 64; signed = false; } packet_seq_num;
		integer { size = 64; align = 64; signed = false; } events_discarded;
		integer { size = 32; align = 32; signed = false; } begin_cpu_id;
		integer { size = 32; align = 32; signed = false; } tid;
	};
};

event {
	name = \"tracebraid:unfinished\";
	id = 0;
	stream_id = 0;
	fields := struct {
		integer { size = 16; align = 16; signed = false; } _size;
		integer { size = 8; align = 8; signed = false; base = 16; } _bytes[ _size ];
	};
};

event {
	name = \"tracebraid:clock_correlation\";
	id = 1;
	stream_id = 0;
	fields := struct {
		integer { size = 64; align = 8; signed = false; } _cycles;
		integer { size = 64; align = 8; signed = false; } _monotonic;
		integer { size = 64; align = 8; signed = false; } _realtime;
	} align(32);
};

";
