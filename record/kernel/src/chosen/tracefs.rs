//! Tracepoints of the running kernel, from tracefs.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use tracebraid_tracepoint::{FieldContent, Format};

/// Usual mount points of tracefs.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// An open tracefs.
#[derive(Debug)]
pub(crate) struct TraceFs {
    root: PathBuf,
    /// A detached mount, reached through its descriptor and removed when that is closed.
    _detached: Option<OwnedFd>,
}

impl TraceFs {
    /// Opens the mounted tracefs or, without one, a private mount that no other process sees.
    pub(crate) fn open() -> io::Result<TraceFs> {
        let mounted = MOUNTED
            .iter()
            .map(Path::new)
            .find(|root| root.join("events").is_dir());
        if let Some(root) = mounted {
            return Ok(TraceFs {
                root: root.to_owned(),
                _detached: None,
            });
        }
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::empty(),
        )?;
        Ok(TraceFs {
            root: format!("/proc/self/fd/{}", mount.as_raw_fd()).into(),
            _detached: Some(mount),
        })
    }

    /// All tracepoints by category and name, sorted.
    pub(crate) fn tracepoints(&self) -> io::Result<Vec<[String; 2]>> {
        let mut all = Vec::new();
        for category in directories(&self.root.join("events"))? {
            let names = directories(&self.root.join("events").join(&category))?;
            all.extend(names.into_iter().map(|name| [category.clone(), name]));
        }
        all.sort_unstable();
        Ok(all)
    }

    /// The id of a tracepoint, and the fields of its records that programs can read.
    pub(crate) fn format(&self, category: &str, name: &str) -> io::Result<Format> {
        let path = self
            .root
            .join("events")
            .join(category)
            .join(name)
            .join("format");
        let text = std::fs::read_to_string(&path)?;
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "cannot parse its format file");
        let mut format = Format::parse(category, &text, 8).ok_or_else(unknown)?;
        // The kernel overwrites the first eight bytes, and only the kernel knows the length of a
        // tail.
        format.fields.retain(|field| {
            field.offset >= OVERWRITTEN && !matches!(field.kind, FieldContent::Tail(_))
        });
        Ok(format)
    }
}

/// Size of the pointer with which records begin for BPF programs.
const OVERWRITTEN: u32 = 8;

fn directories(path: &Path) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(path)?.flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(directories
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect())
}
