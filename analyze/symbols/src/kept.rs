//! Names of functions that were found before, kept in files: to unpack debug information takes
//! longer than most of what they are for.
//!
//! There is a file for each file that told names: text, a line for the program's version, one for
//! the file with its size and time, and one for each address, with the functions there from the
//! innermost on, behind tabs. What is of another version, or of a file that is another one now, is
//! passed over and written anew. What cannot be read or written is as if it were not there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{Read, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tracebraid_storage::aside;

/// A place in a file: the letter of what is counted (`v` addresses, `o` offsets), and the number.
pub(crate) type SymbolKey = (char, u64);

/// Names that a file told.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The first two lines.
    head: String,
    /// By place: functions, the innermost first. None, if nothing is known.
    names: BTreeMap<SymbolKey, Vec<String>>,
    is_new: bool,
}

/// Bytes of a file at most.
const MOST_BYTES: u64 = 64 << 20;
/// Files in a directory at most: those that were written first go.
const MOST_FILES: usize = 512;

impl Kept {
    /// What is kept in that directory of what a file told, if the file can be looked at.
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

    /// The functions at a place, if it was asked for before.
    pub(crate) fn get(&self, place: SymbolKey) -> Option<&[String]> {
        self.names.get(&place).map(Vec::as_slice)
    }

    pub(crate) fn add(&mut self, place: SymbolKey, names: Vec<String>) {
        self.names.insert(place, names);
        self.is_new = true;
    }

    /// Writes it, if there is something new. Of two who write at a time the later one's is there in
    /// the end.
    pub(crate) fn write(&self, directory: &Path, of: &Path) {
        // It must still be what told them.
        if !self.is_new || head(of).as_ref() != Some(&self.head) {
            return;
        }
        let mut text = self.head.clone();
        for ((letter, number), names) in &self.names {
            // No line may look like another one.
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

/// What a file begins with that keeps what another one told as it is now.
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
        assert_eq!(again.get(('v', 8)), None, "it would be read otherwise");
        // Another file by that name tells other names.
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
        assert!(kept.names.is_empty(), "it is no text");
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
        fs::write(directory.path().join("of somebody else"), "").expect("written");
        forget_oldest(directory.path()).expect("they go");
        assert_eq!(
            fs::read_dir(directory.path()).expect("read").count(),
            MOST_FILES + 1
        );
        assert!(!file(0).exists() && file(MOST_FILES + 2).exists());
    }
}
