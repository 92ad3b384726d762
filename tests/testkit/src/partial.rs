//! Copies of a recorded trace without some of its CPUs, or without some packets of a CPU.

use std::ops::Range;
use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::TraceSet;

use crate::index::{self, IndexEntry};
use crate::recorded;

/// Number of CPUs of the trace, 0 to 3.
pub const CPUS: u32 = 4;

const ALL: [u32; CPUS as usize] = [0, 1, 2, 3];

/// CPUs whose channel files are kept; true if their packet indexes are kept, too.
pub const KEPT: [(&[u32], bool); 6] = [
    (&[0], true),
    (&[3], false),
    (&[1, 2], false),
    (&[0, 3], true),
    (&[0, 1, 2], true),
    (&[1, 2, 3], false),
];

/// The trace with all CPUs.
pub fn whole() -> PathBuf {
    recorded::unpacked("kernel-mix-small").join("kernel-mix-small/kernel")
}

/// Copy of the trace with the channel files of some CPUs. Deleted on drop.
///
/// # Panics
/// All functions panic if a file cannot be read or written.
#[derive(Debug)]
pub struct PartialTrace(PathBuf);

impl PartialTrace {
    /// The trace with the channel files of these CPUs only.
    pub fn of(kept: &[u32], with_index: bool) -> PartialTrace {
        let name = kept
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join("-");
        let directory = std::env::temp_dir().join(format!(
            "tracebraid-partial-{}-{name}-{with_index}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let copy = |from: &Path, to: &Path| std::fs::copy(from, to).expect("a copy");
        std::fs::create_dir_all(directory.join("index")).expect("a directory");
        copy(&whole().join("metadata"), &directory.join("metadata"));
        for cpu in kept {
            let file = format!("kchan_{cpu}");
            copy(&whole().join(&file), &directory.join(&file));
            if with_index {
                let index = format!("index/{file}.idx");
                copy(&whole().join(&index), &directory.join(&index));
            }
        }
        PartialTrace(directory)
    }

    /// The trace with all CPUs, of which `cpu` has only the packets in the range.
    pub fn cut(cpu: u32, packets: Range<usize>) -> PartialTrace {
        let copy = PartialTrace::of(&ALL, false).renamed(&format!("cut-{}", packets.start));
        let set = copy.open();
        let mut streams = set.traces[0].streams.iter();
        let stream = streams.find(|stream| stream.files[0].path.ends_with(format!("kchan_{cpu}")));
        let packets = &stream.expect("the CPU's stream").packets[packets];
        let last = packets.last().expect("a packet");
        let bytes = packets[0].offset as usize..(last.offset + last.bytes) as usize;
        let file = copy.0.join(format!("kchan_{cpu}"));
        let whole = std::fs::read(&file).expect("the file");
        std::fs::write(&file, &whole[bytes]).expect("a part of it");
        copy
    }

    /// The trace with all CPUs and indexes. Changes the index of the last CPU, whose stream has
    /// nine packets.
    pub fn with_changed_index(
        name: &str,
        change: impl FnOnce(&mut Vec<IndexEntry>),
    ) -> PartialTrace {
        let copy = PartialTrace::of(&ALL, true).renamed(&format!("changed-{name}"));
        let path = copy.0.join("index/kchan_3.idx");
        let mut entries = index::decode(&std::fs::read(&path).expect("an index")).expect("entries");
        change(&mut entries);
        std::fs::write(&path, index::encode(&entries)).expect("a copy");
        copy
    }

    /// Renames the directory, so that the same CPUs can be copied again.
    fn renamed(mut self, extension: &str) -> PartialTrace {
        let directory = self.0.with_extension(extension);
        std::fs::rename(&self.0, &directory).expect("a new name");
        self.0 = directory;
        self
    }

    /// All variants, each with the CPUs that have a channel file.
    pub fn all() -> Vec<(&'static [u32], PartialTrace)> {
        let without = KEPT.map(|(kept, with_index)| (kept, PartialTrace::of(kept, with_index)));
        let cut = [0..4, 4..9].map(|packets| (&[0, 1, 2, 3][..], PartialTrace::cut(3, packets)));
        without.into_iter().chain(cut).collect()
    }

    /// The trace's directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Opens the copy as a trace set.
    pub fn open(&self) -> TraceSet {
        TraceSet::open(&[&self.0]).expect("the trace can be opened")
    }
}

impl Drop for PartialTrace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
