//! Identities of mapped files without a build id, as events `tracebraid_map_file`.
//!
//! Names of functions are looked up after the recording, when another file may have the path. If a
//! build id is missing, size, modification time and a hash of both ends of the file show whether it
//! is still the same. Reading a file can block on a disk, which the thread that empties the rings
//! must not do, so another thread reads it. A process may end before its file is read; the file is
//! then opened by its path as the recorder sees it, if the inode is the same.

use std::collections::HashSet;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use tracebraid_file_identity::FileIdentity;

use super::Mapping;
use super::modules::open;
use crate::state::Payload;

/// Maximum number of remembered paths.
const MOST_FILES: usize = 1 << 16;
/// Maximum wait at the end of a recording for files that are still being read.
const PATIENCE: Duration = Duration::from_millis(500);

/// Distinct mapped files without a build id.
pub(crate) struct MappedFiles {
    met: HashSet<Vec<u8>>,
    wanted: Option<Sender<Mapping>>,
    /// Payloads of events from the reader thread.
    read: Receiver<Option<Vec<u8>>>,
    unread: usize,
    /// All payloads so far.
    told: Vec<Vec<u8>>,
}

impl MappedFiles {
    pub(crate) fn new() -> MappedFiles {
        let (wanted, wants) = mpsc::channel::<Mapping>();
        let (to, read) = mpsc::channel();
        let reader = std::thread::Builder::new()
            .name("tracebraid-file".into())
            .spawn(move || {
                for mapping in wants {
                    if to.send(payload(&mapping)).is_err() {
                        return;
                    }
                }
            });
        MappedFiles {
            met: HashSet::new(),
            // If the thread cannot be started, files have no identity, and readers show no names
            // for them.
            wanted: reader.is_ok().then_some(wanted),
            read,
            unread: 0,
            told: Vec::new(),
        }
    }

    /// Handles a new mapping of a process.
    pub(crate) fn meet(&mut self, mapping: &Mapping) {
        if !lacks_identity(mapping)
            || self.met.len() >= MOST_FILES
            || self.met.contains(&mapping.path)
        {
            return;
        }
        self.met.insert(mapping.path.clone());
        let wanted = self.wanted.as_ref();
        let is_sent = wanted.is_some_and(|wanted| wanted.send(mapping.clone()).is_ok());
        self.unread += usize::from(is_sent);
    }

    /// Passes the payloads of files read since the last call to `to`.
    pub(crate) fn take(&mut self, mut to: impl FnMut(&[u8])) {
        while let Ok(read) = self.read.try_recv() {
            self.add(read, &mut to);
        }
    }

    /// Passes the payloads of all remaining files to `to`, at the end.
    pub(crate) fn take_rest(&mut self, mut to: impl FnMut(&[u8])) {
        let begin = Instant::now();
        while self.unread > 0
            && let Some(left) = PATIENCE.checked_sub(begin.elapsed())
            && let Ok(read) = self.read.recv_timeout(left)
        {
            self.add(read, &mut to);
        }
    }

    fn add(&mut self, read: Option<Vec<u8>>, to: &mut impl FnMut(&[u8])) {
        self.unread -= 1;
        if let Some(payload) = read {
            to(&payload);
            self.told.push(payload);
        }
    }

    /// All payloads so far.
    pub(crate) fn told(&self) -> &[Vec<u8>] {
        &self.told
    }
}

/// The same for mappings older than the recording, used in the thread that lists them.
#[derive(Default)]
pub(crate) struct FilesBefore(HashSet<Vec<u8>>);

impl FilesBefore {
    /// The payload for the file of a mapping, if it is the first of a file without a build id.
    pub(crate) fn payload(&mut self, mapping: &Mapping) -> Option<Vec<u8>> {
        let is_new = lacks_identity(mapping) && self.0.insert(mapping.path.clone());
        is_new.then(|| payload(mapping)).flatten()
    }
}

/// True for a file without a build id.
fn lacks_identity(mapping: &Mapping) -> bool {
    mapping.is_of_file() && mapping.build_id.is_empty()
}

/// The payload of `tracebraid_map_file` for the file of a mapping, if it can still be opened.
fn payload(mapping: &Mapping) -> Option<Vec<u8>> {
    let identity = FileIdentity::of_open(open(mapping)?).ok()?;
    let payload = Payload::default().text(&mapping.path).long(identity.size);
    let payload = payload.long(identity.mtime_ns as u64).long(identity.hash);
    Some(payload.bytes_of())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use super::*;

    fn mapping(path: &Path) -> Mapping {
        Mapping {
            pid: std::process::id(),
            begin: 0x1000,
            bytes: 0x1000,
            offset: 0,
            path: path.as_os_str().as_bytes().to_vec(),
            build_id: Vec::new(),
            number: 1,
            inode: 0,
        }
    }

    #[test]
    fn each_file_without_a_build_id_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        std::fs::write(&path, "foobar").unwrap();
        let mut files = MappedFiles::new();
        files.meet(&mapping(&path));
        files.meet(&mapping(&path));
        files.meet(&mapping(Path::new("[vdso]")));
        files.meet(&mapping(&directory.path().join("gone")));
        files.meet(&Mapping {
            build_id: vec![1, 2],
            ..mapping(&directory.path().join("other"))
        });
        let mut payloads = Vec::new();
        files.take_rest(|payload| payloads.push(payload.to_vec()));
        assert_eq!(payloads, files.told());
        let [payload] = &*payloads else {
            panic!("{payloads:?}");
        };
        let name = path.as_os_str().as_bytes();
        assert_eq!(payload.split_at(name.len()).0, name);
        let numbers = payload.get(name.len() + 1..).unwrap();
        assert_eq!(numbers.len(), 24);
        assert_eq!(numbers[..8], 6u64.to_le_bytes());
        assert_eq!(numbers[16..], 0x8594_4171_f739_67e8u64.to_le_bytes());
        let mut before = FilesBefore::default();
        assert_eq!(before.payload(&mapping(&path)).as_ref(), Some(payload));
        assert_eq!(before.payload(&mapping(&path)), None);
    }
}
