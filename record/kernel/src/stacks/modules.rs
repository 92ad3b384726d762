//! Files that processes have mapped, with their unwind tables.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tracebraid_unwind::Module;

use super::Mapping;
use super::vdso;

/// Cache in which each file is read once.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    known: HashMap<Key, Option<Rc<Module>>>,
}

/// A file: two files with the same path differ in their build ids or, without these, in their
/// inodes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    path: Vec<u8>,
    build_id: Vec<u8>,
    inode: u64,
}

/// Suffix of the path of a file that has been removed.
const DELETED: &[u8] = b" (deleted)";

impl Modules {
    /// The file of a mapping; `None` if it is not an ELF file, can no longer be opened, or has been
    /// replaced.
    pub(crate) fn of(&mut self, mapping: &Mapping) -> Option<Rc<Module>> {
        let is_vdso = mapping.path == b"[vdso]";
        if !is_vdso && !mapping.path.starts_with(b"/") {
            return None;
        }
        let key = Key {
            path: mapping.path.clone(),
            build_id: mapping.build_id.clone(),
            inode: mapping.inode,
        };
        if let Some(module) = self.known.get(&key) {
            return module.clone();
        }
        let module = match is_vdso {
            true => vdso::image()
                .ok()
                .and_then(|image| Module::parse(&image).ok()),
            // Another process may still have it open, or again.
            false => Module::read(open(mapping)?).ok(),
        };
        let is_same = |module: &Module| is_same_id(module.build_id(), &mapping.build_id);
        let module = module.filter(is_same).map(Rc::new);
        self.known.insert(key, module.clone());
        module
    }
}

/// The kernel cuts build ids at 20 bytes, and reports none that is outside the first page.
fn is_same_id(of_file: &[u8], of_mapping: &[u8]) -> bool {
    of_mapping.is_empty() || of_file.starts_with(of_mapping)
}

/// Opens the file: as the process has mapped it, or by its path as the process or this process sees
/// it, if that is still the same file.
pub(crate) fn open(mapping: &Mapping) -> Option<File> {
    let process = PathBuf::from(format!("/proc/{}", mapping.number));
    let end = mapping.begin.wrapping_add(mapping.bytes);
    let mapped = process.join(format!("map_files/{:x}-{end:x}", mapping.begin));
    // The process may have mapped another file there since.
    if let Some(file) = open_now(&mapped).ok().filter(|file| is_it(file, mapping)) {
        return Some(file);
    }
    let path = mapping.path.strip_suffix(DELETED).unwrap_or(&mapping.path);
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let seen = process
        .join("root")
        .join(path.strip_prefix("/").unwrap_or(path));
    [seen.as_path(), path]
        .into_iter()
        .filter_map(|path| open_now(path).ok())
        .find(|file| is_it(file, mapping))
}

/// Opens a file without blocking: by now the path may lead to a pipe.
fn open_now(path: &Path) -> std::io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(path)
}

/// True if an open file can be the mapped one; build ids are compared once it has been read.
fn is_it(file: &File, mapping: &Mapping) -> bool {
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    metadata.is_file()
        && (!mapping.build_id.is_empty() || mapping.inode == 0 || metadata.ino() == mapping.inode)
}
