//! Cache of function names in files, because unpacking debug information takes longer than most
//! reports.
//!
//! Each program file has a cache file. It is a text: the first line contains the version of
//! the program, the second line the program file with its size and time. Each further line contains
//! a position and, separated by tabs, the functions there, the innermost first. A cache file of
//! another version, or of a program file that has changed, is ignored and written again. A cache
//! file that cannot be read or written is ignored.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{Read, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tracebraid_storage::aside;

/// Position in a program file: the unit (`v` for addresses, `o` for offsets), and the number.
pub(crate) type SymbolKey = (char, u64);

/// Cached names of a program file.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The first two lines of the cache file.
    head: String,
    /// Functions by position, the innermost first. Empty if no name is known.
    names: BTreeMap<SymbolKey, Vec<String>>,
    is_new: bool,
}

/// Maximum size of a cache file.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum number of files in a directory; the oldest ones are deleted.
const MOST_FILES: usize = 512;

impl Kept {
    /// Reads the names of a program file from the cache; `None` if the program file cannot be
    /// accessed.
    pub(crate) fn read(directory: &Path, of: &Path) -> Option<Kept> {
        let mut kept = Kept {
            head: head(of)?,
            ..Kept::default()
        };
        let mut text = String::new();
        let file = File::open(place(directory, of)).ok();
        let read = file.and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text).ok());
        let lines = read.and_then(|_| text.strip_prefix(&kept.head));
        kept.names = lines
            .into_iter()
            .flat_map(str::lines)
            .filter_map(entry)
            .collect();
        Some(kept)
    }

    /// Cached functions at a position; `None` if the position is not cached.
    pub(crate) fn get(&self, place: SymbolKey) -> Option<&[String]> {
        self.names.get(&place).map(Vec::as_slice)
    }

    pub(crate) fn add(&mut self, place: SymbolKey, names: Vec<String>) {
        self.names.insert(place, names);
        self.is_new = true;
    }

    /// Writes the cache file, if names were added. If several processes write at the same time, the
    /// last one wins.
    pub(crate) fn write(&self, directory: &Path, of: &Path) {
        // The program file must not have changed since it was read.
        if !self.is_new || head(of).as_ref() != Some(&self.head) {
            return;
        }
        let mut text = self.head.clone();
        for ((letter, number), names) in &self.names {
            // A name with a tab or line break would make the line ambiguous.
            if names.iter().any(|name| name.contains(['\t', '\n', '\r'])) {
                continue;
            }
            let _ = write!(text, "{letter}{number:x}");
            names.iter().for_each(|name| text.extend(["\t", name]));
            text.push('\n');
        }
        let _ = put(directory, &place(directory, of), &text);
    }
}

fn entry(line: &str) -> Option<(SymbolKey, Vec<String>)> {
    let mut parts = line.split('\t');
    let place = parts.next()?;
    let letter = place.chars().next()?;
    let number = u64::from_str_radix(place.strip_prefix(letter)?, 16).ok()?;
    Some(((letter, number), parts.map(str::to_owned).collect()))
}

/// The first two lines of the cache file for the current state of a program file.
fn head(of: &Path) -> Option<String> {
    let about = of.metadata().ok()?;
    let version = env!("CARGO_PKG_VERSION");
    let (size, seconds, rest) = (about.size(), about.mtime(), about.mtime_nsec());
    let path = of.to_str().filter(|path| !path.contains('\n'))?;
    Some(format!(
        "tracebraid {version} functions 1\n{size} {seconds}.{rest:09} {path}\n"
    ))
}

fn place(directory: &Path, of: &Path) -> PathBuf {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(of);
    directory.join(format!("{hash:016x}.functions"))
}

fn put(directory: &Path, place: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut file = aside::beside(place)?;
    file.write_all(text.as_bytes())?;
    file.persist(place)?;
    forget_oldest(directory)
}

fn forget_oldest(directory: &Path) -> std::io::Result<()> {
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "functions")
        {
            files.push((path.metadata()?.modified()?, path));
        }
    }
    files.sort();
    let count = files.len().saturating_sub(MOST_FILES);
    files
        .iter()
        .take(count)
        .try_for_each(|(_, path)| fs::remove_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn what_was_found_is_there_the_next_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let (kept_in, of) = (
            directory.path().join("a/b"),
            directory.path().join("program"),
        );
        fs::write(&of, "program").expect("written");
        let mut kept = Kept::read(&kept_in, &of).expect("the file is there");
        assert_eq!(kept.get(('v', 7)), None);
        kept.add(('v', 7), names(&["inner", "operator new(unsigned long)"]));
        kept.add(('o', 7), names(&[]));
        kept.add(('v', 8), names(&["tab\there"]));
        kept.write(&kept_in, &of);
        let again = Kept::read(&kept_in, &of).expect("the file is there");
        assert_eq!(again.get(('v', 7)), kept.get(('v', 7)));
        assert_eq!(again.get(('o', 7)), Some(&[][..]));
        assert_eq!(again.get(('v', 8)), None, "a tab is ambiguous");
        // A changed file with the same name has no cached names.
        fs::write(&of, "another program").expect("written");
        let other = Kept::read(&kept_in, &of).expect("the file is there");
        assert_eq!(other.get(('v', 7)), None);
        kept.add(('v', 9), names(&["of the file before"]));
        kept.write(&kept_in, &of);
        let other = Kept::read(&kept_in, &of).expect("the file is there");
        assert_eq!(other.get(('v', 9)), None);
    }

    #[test]
    fn other_bytes_are_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let of = directory.path().join("program");
        fs::write(&of, "program").expect("written");
        let place = place(directory.path(), &of);
        let head = head(&of).expect("the file is there");
        for text in [
            "",
            "\n\n",
            "v7\tname",
            "tracebraid 0.0.0 functions 1\n1 2 x\nv7\tname\n",
            "\u{0}",
        ] {
            fs::write(&place, text).expect("written");
            let kept = Kept::read(directory.path(), &of).expect("the file is there");
            assert!(kept.names.is_empty(), "{text:?}");
        }
        fs::write(
            &place,
            [head.as_bytes(), b"v7\tname\nv\xff\tname\n"].concat(),
        )
        .expect("written");
        let kept = Kept::read(directory.path(), &of).expect("the file is there");
        assert!(kept.names.is_empty(), "not a text");
        fs::write(&place, format!("{head}v7\tname\nvx\tname\n\n7\nv8")).expect("written");
        let kept = Kept::read(directory.path(), &of).expect("the file is there");
        assert_eq!(kept.get(('v', 7)), Some(&names(&["name"])[..]));
        assert_eq!(kept.get(('v', 8)), Some(&[][..]));
    }

    #[test]
    fn there_are_not_too_many_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |number: usize| directory.path().join(format!("{number:04}.functions"));
        (0..MOST_FILES + 3).for_each(|number| fs::write(file(number), "").expect("written"));
        fs::write(directory.path().join("of another program"), "").expect("written");
        forget_oldest(directory.path()).expect("they go");
        assert_eq!(
            fs::read_dir(directory.path()).expect("read").count(),
            MOST_FILES + 1
        );
        assert!(!file(0).exists() && file(MOST_FILES + 2).exists());
    }
}
