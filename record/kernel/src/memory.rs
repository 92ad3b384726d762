//! A recording that keeps only the newest events, in memory (a flight recorder).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;

use tracebraid_ctf::index::IndexEntry;
use tracebraid_ctf::schema::TraceClass;
use tracebraid_ctf::write::WriteError;
use tracebraid_ctf::write::stream::PacketSink;
use tracebraid_ctf::write::trace::{Options, Session};

#[derive(Debug)]
pub(crate) struct Kept {
    /// Packets in the order in which they ended.
    packets: VecDeque<Packet>,
    bytes: u64,
    most: u64,
}

#[derive(Debug)]
struct Packet {
    cpu: usize,
    bytes: Vec<u8>,
    entry: IndexEntry,
}

/// The sink for the packets of one CPU.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) cpu: usize,
    pub(crate) kept: Rc<RefCell<Kept>>,
}

impl Kept {
    /// Keeps at most `most` bytes.
    pub(crate) fn new(most: u64) -> Kept {
        Kept {
            packets: VecDeque::new(),
            bytes: 0,
            most,
        }
    }

    fn add(&mut self, packet: Packet) {
        self.bytes += packet.bytes.len() as u64;
        self.packets.push_back(packet);
        // The newest packet stays, even if it exceeds the limit.
        while self.bytes > self.most
            && self.packets.len() > 1
            && let Some(oldest) = self.packets.pop_front()
        {
            self.bytes -= oldest.bytes.len() as u64;
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the packets as a trace of `cpus` CPUs.
    pub(crate) fn write(
        &self,
        directory: &Path,
        class: &TraceClass,
        options: Options,
        cpus: usize,
    ) -> Result<(), WriteError> {
        let session = Session::create(directory)?;
        let mut trace = session.trace(Path::new(""), class, options)?;
        let files = (0..cpus).map(|cpu| trace.files(&stream_name(cpu)));
        let mut files = files.collect::<Result<Vec<_>, _>>()?;
        for packet in &self.packets {
            if let Some(files) = files.get_mut(packet.cpu) {
                files.packet(&packet.bytes, &packet.entry)?;
            }
        }
        files.into_iter().try_for_each(PacketSink::finish)?;
        drop(trace);
        session.finish().map(|_| ())
    }
}

/// Name of the file with a CPU's events.
pub(crate) fn stream_name(cpu: usize) -> String {
    format!("channel0_{cpu}")
}

impl PacketSink for Memory {
    type Output = ();

    fn packet(&mut self, bytes: &[u8], entry: &IndexEntry) -> Result<(), WriteError> {
        self.kept.borrow_mut().add(Packet {
            cpu: self.cpu,
            bytes: bytes.to_vec(),
            entry: *entry,
        });
        Ok(())
    }

    fn finish(self) -> Result<(), WriteError> {
        Ok(())
    }
}
