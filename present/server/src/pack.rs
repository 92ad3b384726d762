//! All executions of a kind as one binary document, the data of the page.
//!
//! The document consists of a magic number, the length of the header, the header in JSON, and
//! sections of little-endian numbers, each at a multiple of 8 bytes. `docs/reference/view-formats.md`
//! documents the format. The document is written piece by piece from a spool.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use tracebraid_executions::database::{Database, ExecutionKind, Thread};
use tracebraid_executions::{ContextId, FrameKind};

use crate::Refusal;
use crate::export::Watch;
use crate::sources::Shown;
use crate::spool::{NONE, PART, Pieces, Spool, has_short_contexts};

/// Magic number: format and version.
const MAGIC: &[u8; 8] = b"TBXPACK1";
/// Bytes that precede the header.
const LEAD: usize = MAGIC.len() + size_of::<u32>();

/// The executions of a kind, which can be written as a pack any number of times.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) spool: Spool,
    /// The header without its texts and sections: with full paths of sources, and with the paths
    /// for exported pages.
    about: [Value; 2],
    sections: Vec<Section>,
}

/// Source of a section's numbers.
#[derive(Debug)]
enum From {
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, followed by pieces of the spool as they are.
    Pieces(Vec<u8>, Column),
    /// Begins from the origin: 8-byte integers, converted to doubles relative to the first begin.
    Begins,
    /// Doubles that are integers of 4 bytes.
    Words(Column),
}

/// A column of the spool.
#[derive(Clone, Copy, Debug)]
enum Column {
    Ids,
    Sources,
    Threads,
    Ends,
    Contexts,
    Times,
    Figure(usize),
    Text(usize),
}

/// A section of the document: numbers of one type.
#[derive(Debug)]
struct Section {
    name: String,
    kind: &'static str,
    count: u64,
    from: From,
}

/// Size of a number in bytes.
fn width(kind: &str) -> u64 {
    match kind {
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        _ => 8,
    }
}

impl Section {
    fn bytes(&self) -> u64 {
        self.count * width(self.kind)
    }
}

impl Pack {
    /// Reads the executions of a kind. Data that exceeds memory goes to an unnamed file in
    /// `directory`. `watch` receives the progress.
    pub(crate) fn new(
        database: &Database,
        kind: &ExecutionKind,
        directory: &Path,
        watch: &Watch,
    ) -> Result<Pack, Refusal> {
        Pack::of_parts(database, kind, directory, (PART, watch))
    }

    fn of_parts(
        database: &Database,
        kind: &ExecutionKind,
        directory: &Path,
        parts: (usize, &Watch),
    ) -> Result<Pack, Refusal> {
        let (names, codes) = named(&database.threads);
        let spool = Spool::new(database, kind, &codes, directory, parts)?;
        let sections = sections(&spool, database);
        let about =
            [Shown::Whole, Shown::Away].map(|shown| about(database, kind, &spool, &names, shown));
        Ok(Pack {
            spool,
            about,
            sections,
        })
    }

    /// Length of the document in bytes.
    ///
    /// # Errors
    /// If the header exceeds the limit of the format.
    pub(crate) fn length(&self, shown: Shown) -> Result<u64, Refusal> {
        let header = self.header(shown);
        let length = header.length();
        u32::try_from(length).map_err(|_| {
            "the texts of the executions exceed 4 GiB, the limit of a page".to_owned()
        })?;
        let sections = self
            .sections
            .iter()
            .fold(0u64, |at, section| at.next_multiple_of(8) + section.bytes());
        Ok(LEAD as u64 + length + sections)
    }

    /// Writes the document.
    pub(crate) fn write(&self, shown: Shown, out: &mut impl Write) -> io::Result<()> {
        let header = self.header(shown);
        out.write_all(MAGIC)?;
        out.write_all(&(header.length() as u32).to_le_bytes())?;
        header.write(out)?;
        let mut at = 0u64;
        for section in &self.sections {
            let begin = at.next_multiple_of(8);
            out.write_all([0; 8].get(..(begin - at) as usize).unwrap_or_default())?;
            self.section(section, out)?;
            at = begin + section.bytes();
        }
        Ok(())
    }

    fn header(&self, shown: Shown) -> Header<'_> {
        let [whole, away] = &self.about;
        let about = match shown {
            Shown::Whole => whole,
            Shown::Away => away,
        };
        let mut places = serde_json::Map::new();
        let mut at = 0u64;
        for section in &self.sections {
            at = at.next_multiple_of(8);
            places.insert(
                section.name.clone(),
                json!([section.kind, at, section.count]),
            );
            at += section.bytes();
        }
        // The rest of the object follows its texts.
        let rest = about.to_string();
        let rest = format!(
            "],\"sections\":{},{}",
            Value::Object(places),
            rest.strip_prefix('{').unwrap_or_default()
        );
        Header { pack: self, rest }
    }

    fn pieces(&self, column: Column) -> &Pieces {
        static NOTHING: Pieces = Pieces::new();
        let of = &self.spool.of;
        match column {
            Column::Ids => &of.ids,
            Column::Sources => &of.sources,
            Column::Threads => &of.threads,
            Column::Ends => &of.ends,
            Column::Contexts => &of.contexts,
            Column::Times => &of.times,
            Column::Figure(place) => of
                .figures
                .get(place)
                .map_or(&NOTHING, |(_, numbers)| &numbers.pieces),
            Column::Text(place) => of
                .texts
                .get(place)
                .map_or(&NOTHING, |(_, codes)| &codes.pieces),
        }
    }

    fn section(&self, section: &Section, out: &mut impl Write) -> io::Result<()> {
        let spool = &self.spool;
        match &section.from {
            From::Bytes(bytes) => out.write_all(bytes),
            From::Pieces(first, column) => {
                out.write_all(first)?;
                let unknown = match column {
                    Column::Text(_) => NONE.to_le_bytes().to_vec(),
                    _ => f64::NAN.to_le_bytes().to_vec(),
                };
                for (piece, rows) in self.pieces(*column).iter().zip(&spool.of.parts) {
                    match piece {
                        Some(piece) => spool.copy(*piece, out)?,
                        None => (0..*rows).try_for_each(|_| out.write_all(&unknown))?,
                    }
                }
                Ok(())
            }
            From::Begins => {
                for piece in spool.of.begins.iter().flatten() {
                    for word in spool.words(*piece)? {
                        let since = i64::from_le_bytes(word).abs_diff(spool.of.origin);
                        out.write_all(&(since as f64).to_le_bytes())?;
                    }
                }
                Ok(())
            }
            From::Words(column) => {
                for piece in self.pieces(*column).iter().flatten() {
                    for word in spool.words(*piece)? {
                        out.write_all(&(f64::from_le_bytes(word) as u32).to_le_bytes())?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// The header: `{"texts":[`, the texts, and the rest of the object.
struct Header<'p> {
    pack: &'p Pack,
    rest: String,
}

impl Header<'_> {
    const BEGIN: &'static str = "{\"texts\":[";

    /// JSON before the values of a text column.
    fn before(place: usize, name: &str) -> String {
        let comma = if place == 0 { "" } else { "," };
        format!("{comma}{{\"name\":{},\"values\":[", Value::from(name))
    }

    const AFTER: &'static str = "]}";

    /// Length in bytes, including the padding with spaces.
    fn length(&self) -> u64 {
        let texts = self.pack.spool.of.texts.iter().enumerate();
        let texts = texts.map(|(place, (column, codes))| {
            let values: u64 = codes.texts.iter().map(|piece| piece.bytes()).sum();
            (Header::before(place, &column.name).len() + Header::AFTER.len()) as u64 + values
        });
        let bare = (Header::BEGIN.len() + self.rest.len()) as u64 + texts.sum::<u64>();
        (LEAD as u64 + bare).next_multiple_of(8) - LEAD as u64
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut written = Header::BEGIN.len() + self.rest.len();
        out.write_all(Header::BEGIN.as_bytes())?;
        for (place, (column, codes)) in self.pack.spool.of.texts.iter().enumerate() {
            let before = Header::before(place, &column.name);
            out.write_all(before.as_bytes())?;
            for piece in &codes.texts {
                self.pack.spool.copy(*piece, out)?;
                written += piece.bytes() as usize;
            }
            out.write_all(Header::AFTER.as_bytes())?;
            written += before.len() + Header::AFTER.len();
        }
        out.write_all(self.rest.as_bytes())?;
        let spaces = self.length() as usize - written;
        out.write_all([b' '; 8].get(..spaces).unwrap_or_default())
    }
}

/// The header, except texts and sections.
fn about(
    database: &Database,
    kind: &ExecutionKind,
    spool: &Spool,
    threads: &[String],
    shown: Shown,
) -> Value {
    let place = database
        .kinds
        .iter()
        .position(|of| of.id == kind.id)
        .unwrap_or(0);
    let kinds = database.kinds.iter();
    let kinds = kinds.map(
        |of| json!({"name": of.name, "definition": of.definition, "executions": of.executions}),
    );
    let metrics = spool.of.figures.iter().map(
        |(column, _)| json!({"name": column.name, "unit": column.unit, "description": column.description}),
    );
    let paths = shown.paths(database);
    let sources = database.sources.iter().zip(paths);
    let sources =
        sources.map(|(of, path)| json!({"path": path, "host": of.host, "label": of.label}));
    let title = database
        .path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    json!({
        "version": 1,
        "title": title,
        "kind": place,
        "kinds": kinds.collect::<Vec<_>>(),
        "executions": spool.of.executions,
        "origin_ns": spool.of.origin.to_string(),
        "metrics": metrics.collect::<Vec<_>>(),
        "sources": sources.collect::<Vec<_>>(),
        "threads": threads,
        "names": database.union.names.texts(),
        "paths": true,
    })
}

fn sections(spool: &Spool, database: &Database) -> Vec<Section> {
    let (of, executions) = (&spool.of, spool.of.executions as u64);
    let section = |name: &str, kind, count, from| Section {
        name: name.to_owned(),
        kind,
        count,
        from,
    };
    let as_it_is = |column| From::Pieces(Vec::new(), column);
    let mut sections = vec![
        section("id", "u32", executions, as_it_is(Column::Ids)),
        section("begin", "f64", executions, From::Begins),
        section("source", "u16", executions, as_it_is(Column::Sources)),
    ];
    for (place, (_, numbers)) in of.figures.iter().enumerate() {
        let column = Column::Figure(place);
        let (kind, from) = match numbers.are_words {
            true => ("u32", From::Words(column)),
            false => ("f64", as_it_is(column)),
        };
        sections.push(section(&format!("metric:{place}"), kind, executions, from));
    }
    for place in 0..of.texts.len() {
        let from = as_it_is(Column::Text(place));
        sections.push(section(&format!("text:{place}"), "u32", executions, from));
    }
    sections.push(section(
        "thread",
        "u32",
        executions,
        as_it_is(Column::Threads),
    ));
    sections.extend(contexts(database));
    let begin = From::Pieces(0u32.to_le_bytes().to_vec(), Column::Ends);
    sections.push(section("rows", "u32", executions + 1, begin));
    let kind = if has_short_contexts(database) {
        "u16"
    } else {
        "u32"
    };
    sections.push(section(
        "context",
        kind,
        of.entries,
        as_it_is(Column::Contexts),
    ));
    let (kind, from) = match of.times_are_words {
        true => ("u32", From::Words(Column::Times)),
        false => ("f64", as_it_is(Column::Times)),
    };
    sections.push(section("time", kind, of.entries, from));
    sections
}

/// Distinct names of threads, and the index of each thread's name; `None` without a name, as in the
/// terminal.
fn named(threads: &[Thread]) -> (Vec<String>, Vec<Option<u32>>) {
    let mut names = tracebraid_executions::Names::default();
    let codes = threads
        .iter()
        .map(|thread| thread.name.as_deref().map(|name| names.id(name).0))
        .collect();
    (names.texts().to_vec(), codes)
}

fn contexts(database: &Database) -> [Section; 3] {
    let contexts = &database.union.contexts;
    let count = contexts.count() as u64;
    let parts = || (0..contexts.count() as u32).map(|id| contexts.parts(ContextId(id)));
    let section = |name: &str, kind, bytes| Section {
        name: name.to_owned(),
        kind,
        count,
        from: From::Bytes(bytes),
    };
    let place = |kind: FrameKind| {
        FrameKind::ALL
            .iter()
            .position(|known| *known == kind)
            .map_or(u8::MAX, |at| at as u8)
    };
    let parents = parts().flat_map(|parts| parts.map_or(0, |(around, _)| around.0).to_le_bytes());
    let kinds = parts().map(|parts| parts.map_or(u8::MAX, |(_, frame)| place(frame.kind)));
    let names = parts().flat_map(|parts| parts.map_or(0, |(_, frame)| frame.name.0).to_le_bytes());
    [
        section("parent", "u32", parents.collect()),
        section("kind", "u8", kinds.collect()),
        section("name", "u32", names.collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Databases of the case studies: they contain metrics, texts, sources and threads of all
    /// sorts.
    fn databases() -> impl Iterator<Item = Database> {
        [
            "cpu-contention",
            "disk-contention",
            "lock-contention",
            "server-sleep",
            "device-contention",
        ]
        .into_iter()
        .map(|study| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/case-studies");
            Database::open(&path.join(study).join("requests.db")).expect("the repository has it")
        })
    }

    fn written(pack: &Pack, shown: Shown) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack.write(shown, &mut bytes).expect("memory takes it");
        assert_eq!(bytes.len() as u64, pack.length(shown).expect("its length"));
        bytes
    }

    fn pack_of(database: &Database, part: usize) -> Pack {
        let kind = database.kinds.first().expect("a kind");
        Pack::of_parts(database, kind, &std::env::temp_dir(), (part, &|_, _| {}))
            .expect("it can be made")
    }

    #[test]
    fn a_pack_is_the_same_in_whatever_parts_it_is_made() {
        for database in databases() {
            let whole = written(&pack_of(&database, usize::MAX), Shown::Whole);
            for part in [1, 3, 64, PART] {
                assert!(
                    written(&pack_of(&database, part), Shown::Whole) == whole,
                    "{part}"
                );
            }
        }
    }

    /// Header and numbers of a section, decoded as the page does.
    fn section(bytes: &[u8], name: &str) -> (Value, Vec<f64>) {
        let length = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")) as usize;
        let header: Value = serde_json::from_slice(&bytes[12..12 + length]).expect("JSON");
        let place = header["sections"][name]
            .as_array()
            .expect("a section")
            .clone();
        let (kind, at) = (
            place[0].as_str().expect("a type"),
            place[1].as_u64().expect("an offset") as usize,
        );
        let count = place[2].as_u64().expect("a number") as usize;
        assert_eq!((at % 8, (12 + length) % 8), (0, 0), "{name}");
        let all = &bytes[12 + length + at..];
        let number = |place: usize| match kind {
            "u8" => f64::from(all[place]),
            "u16" => f64::from(u16::from_le_bytes(
                all[2 * place..][..2].try_into().expect("two bytes"),
            )),
            "u32" => f64::from(u32::from_le_bytes(
                all[4 * place..][..4].try_into().expect("four bytes"),
            )),
            _ => f64::from_le_bytes(all[8 * place..][..8].try_into().expect("eight bytes")),
        };
        (header.clone(), (0..count).map(number).collect())
    }

    #[test]
    fn a_pack_has_what_the_table_has() {
        for database in databases() {
            let bytes = written(&pack_of(&database, 50), Shown::Whole);
            let table = database.table(&database.kinds[0]).expect("it can be read");
            assert!(bytes.starts_with(MAGIC));
            let numbers = |name: &str| section(&bytes, name).1;
            let of = |numbers: &mut dyn Iterator<Item = f64>| numbers.collect::<Vec<f64>>();
            let same = |one: &[f64], other: &[f64]| {
                let bits = |all: &[f64]| all.iter().map(|of| of.to_bits()).collect::<Vec<_>>();
                bits(one) == bits(other)
            };
            assert_eq!(
                numbers("id"),
                of(&mut table.ids.iter().map(|&id| id.into()))
            );
            let first = table.begins.iter().min().expect("one");
            assert_eq!(
                numbers("begin"),
                of(&mut table
                    .begins
                    .iter()
                    .map(|begin| begin.abs_diff(*first) as f64))
            );
            let (header, _) = section(&bytes, "id");
            assert_eq!(header["origin_ns"], first.to_string());
            assert_eq!(header["executions"], table.len());
            for (place, figures) in table.figures.iter().enumerate() {
                assert_eq!(header["metrics"][place]["name"], figures.column.name);
                assert!(
                    same(&numbers(&format!("metric:{place}")), &figures.values),
                    "{}",
                    figures.column.name
                );
            }
            assert_eq!(
                header["metrics"].as_array().map(Vec::len),
                Some(table.figures.len())
            );
            for (place, texts) in table.texts.iter().enumerate() {
                assert_eq!(header["texts"][place]["name"], texts.column.name);
                let values = &header["texts"][place]["values"];
                let found = numbers(&format!("text:{place}"));
                for (row, code) in found.into_iter().enumerate() {
                    let text = values.get(code as usize).and_then(Value::as_str);
                    assert_eq!(text, texts.at(row));
                }
            }
            let rows = numbers("rows");
            let (contexts, times) = (numbers("context"), numbers("time"));
            for row in 0..table.len() {
                let range = rows[row] as usize..rows[row + 1] as usize;
                let entries = table.rows.of(row).iter();
                assert_eq!(
                    contexts[range.clone()],
                    of(&mut entries.clone().map(|(context, _)| context.0.into()))
                );
                assert_eq!(times[range], of(&mut entries.map(|(_, time)| *time as f64)));
            }
        }
    }

    #[test]
    fn what_leaves_this_machine_has_no_directories_of_it() {
        for database in databases() {
            let pack = pack_of(&database, 50);
            let path = &database.sources[0].path;
            let shown = Shown::Away.paths(&database).remove(0);
            assert!(
                path.contains('/') && !shown.starts_with('/') && path.contains(&shown),
                "{path} {shown}"
            );
            let sources = |shown| section(&written(&pack, shown), "id").0["sources"].clone();
            assert_eq!(sources(Shown::Whole)[0]["path"], **path);
            assert_eq!(sources(Shown::Away)[0]["path"], shown);
            let command = |shown| {
                crate::path::path(&database, 1, shown).expect("a path")["command"].to_string()
            };
            assert!(
                command(Shown::Whole).contains(path),
                "{}",
                command(Shown::Whole)
            );
            assert!(
                !command(Shown::Away).contains(" /"),
                "{}",
                command(Shown::Away)
            );
        }
    }

    #[test]
    fn threads_without_a_name_are_none_and_other_names_are_there_once() {
        let threads = [Some("worker"), None, Some("?"), Some("worker"), Some("")];
        let threads = threads.map(|name| Thread {
            source: 1,
            tid: 7,
            name: name.map(str::to_owned),
        });
        let (names, codes) = named(&threads);
        assert_eq!(names, ["worker", "?", ""]);
        assert_eq!(codes, [Some(0), None, Some(1), Some(0), Some(2)]);
    }
}
