//! Frames in files that have no names, by file and by reason.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use tracebraid_symbols::{BuildId, Module};

/// Why a frame in a file has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhyNameless {
    /// The file is not the recorded one.
    Changed,
    /// The file does not exist, or cannot be read.
    Missing,
    /// The file has no symbol at the address.
    Stripped,
}

/// The file and the reason of a frame without a name.
#[derive(Clone, Debug)]
pub(crate) struct Nameless {
    pub(crate) why: WhyNameless,
    pub(crate) path: PathBuf,
    pub(crate) build_id: Option<BuildId>,
}

impl Nameless {
    pub(crate) fn in_module(why: WhyNameless, module: &Module) -> Nameless {
        Nameless {
            why,
            path: module.path.clone(),
            build_id: module.build_id.clone(),
        }
    }
}

/// Counts frames without names.
#[derive(Debug, Default)]
pub(crate) struct NamelessCounts {
    frames: u64,
    /// Per file, indexed by [`WhyNameless`].
    files: [HashMap<PathBuf, (u64, Option<BuildId>)>; 3],
}

impl NamelessCounts {
    /// Counts frames of programs, with and without names.
    pub(crate) fn add_frames(&mut self, frames: usize) {
        self.frames += frames as u64;
    }

    pub(crate) fn add(&mut self, frame: &Nameless) {
        let [changed, missing, stripped] = &mut self.files;
        let files = match frame.why {
            WhyNameless::Changed => changed,
            WhyNameless::Missing => missing,
            WhyNameless::Stripped => stripped,
        };
        match files.get_mut(Path::new(&frame.path)) {
            Some((frames, _)) => *frames += 1,
            None => _ = files.insert(frame.path.clone(), (1, frame.build_id.clone())),
        }
    }

    pub(crate) fn finish(self) -> NamelessFrames {
        let [changed_files, missing_files, stripped_files] = self.files.map(sorted);
        NamelessFrames {
            program_frames: self.frames,
            changed_files,
            missing_files,
            stripped_files,
        }
    }
}

/// Sorts files by the number of frames, descending.
fn sorted(files: HashMap<PathBuf, (u64, Option<BuildId>)>) -> Vec<NamelessFile> {
    let file = |(path, (frames, build_id))| NamelessFile {
        path,
        frames,
        build_id,
    };
    let mut files: Vec<NamelessFile> = files.into_iter().map(file).collect();
    files.sort_by(|a, b| (Reverse(a.frames), &a.path).cmp(&(Reverse(b.frames), &b.path)));
    files
}

/// Frames without names. In each list the files with the most frames come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NamelessFrames {
    /// All frames of programs, with and without names.
    #[serde(skip)]
    pub program_frames: u64,
    /// Files that changed since the recording, or that were not identified in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<NamelessFile>,
    /// Files that do not exist, or that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_files: Vec<NamelessFile>,
    /// Files that have no symbols at some of the addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stripped_files: Vec<NamelessFile>,
}

/// Minimum share of all frames for a warning about stripped files: nearly every stack begins in a
/// function of the C library that has no symbol.
const LEAST_STRIPPED_PERCENT: u64 = 25;

/// Prefix of files in memory, as the kernel names them.
const MEMFD: &str = "/memfd:";
/// Suffix of files that were deleted before they were recorded, as the kernel names them.
const DELETED: &str = " (deleted)";

/// Missing files by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingFiles {
    /// Files that no longer exist or cannot be read.
    pub gone: Vec<NamelessFile>,
    /// Files that had been deleted when they were recorded.
    pub deleted: Vec<NamelessFile>,
    /// Files that were never on a disk (`memfd_create`).
    pub in_memory: Vec<NamelessFile>,
}

impl NamelessFrames {
    /// The missing files by cause: files in memory, and files deleted before the recording, cannot
    /// be restored.
    pub fn missing(&self) -> MissingFiles {
        let mut missing = MissingFiles::default();
        for file in &self.missing_files {
            let path = file.path.to_string_lossy();
            let list = match path.starts_with(MEMFD) {
                true => &mut missing.in_memory,
                false if path.ends_with(DELETED) => &mut missing.deleted,
                false => &mut missing.gone,
            };
            list.push(file.clone());
        }
        missing
    }

    /// The stripped files, if they contain enough of the frames to be worth a line.
    pub fn stripped(&self) -> Option<&[NamelessFile]> {
        let frames: u64 = self.stripped_files.iter().map(|file| file.frames).sum();
        let is_much = frames > 0 && frames * 100 >= self.program_frames * LEAST_STRIPPED_PERCENT;
        is_much.then_some(&self.stripped_files)
    }
}

/// A file with frames that have no names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamelessFile {
    /// The file as the process saw it.
    pub path: PathBuf,
    /// Number of frames without names.
    pub frames: u64,
    /// The recorded build id, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub build_id: Option<BuildId>,
}

fn as_text<S: Serializer>(id: &Option<BuildId>, to: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => to.collect_str(id),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_by_reason_the_most_frames_first() {
        let mut counts = NamelessCounts::default();
        let mut add = |why, path: &str| {
            counts.add(&Nameless {
                why,
                path: path.into(),
                build_id: None,
            });
        };
        for path in ["b", "a", "c", "c"] {
            add(WhyNameless::Changed, path);
        }
        add(WhyNameless::Missing, "a");
        let frames = counts.finish();
        let names = |files: &[NamelessFile]| -> Vec<(String, u64)> {
            let name = |file: &NamelessFile| (file.path.display().to_string(), file.frames);
            files.iter().map(name).collect()
        };
        let expected =
            [("c", 2), ("a", 1), ("b", 1)].map(|(path, frames)| (path.to_owned(), frames));
        assert_eq!(names(&frames.changed_files), expected);
        assert_eq!(names(&frames.missing_files), [("a".to_owned(), 1)]);
        assert!(frames.stripped_files.is_empty());
    }
}
