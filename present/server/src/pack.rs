//! All executions of a kind as one binary document: what the page works on.
//!
//! Magic, length of a header, the header in JSON, and sections of numbers, little endian, each at a multiple of 8 bytes.
//! `docs/view-formats.md` has the format.

use serde_json::{Map, Value, json};
use tracebraid_executions::database::{Database, Kind, Table, Thread};
use tracebraid_executions::{ContextId, FrameKind};

/// What a pack begins with: format and version.
const MAGIC: &[u8; 8] = b"TBXPACK1";
/// The code of what is not known.
const NONE: u32 = u32::MAX;

/// Sections, and where each stands.
#[derive(Default)]
struct Sections {
    bytes: Vec<u8>,
    places: Map<String, Value>,
}

impl Sections {
    fn add<const N: usize>(&mut self, name: &str, kind: &str, numbers: impl Iterator<Item = [u8; N]>) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let begin = self.bytes.len();
        numbers.for_each(|number| self.bytes.extend_from_slice(&number));
        let count = (self.bytes.len() - begin) / N;
        self.places.insert(name.to_owned(), json!([kind, begin, count]));
    }

    fn bytes_of(&mut self, name: &str, numbers: impl Iterator<Item = u8>) {
        self.add(name, "u8", numbers.map(|number| [number]));
    }

    fn shorts(&mut self, name: &str, numbers: impl Iterator<Item = u16>) {
        self.add(name, "u16", numbers.map(u16::to_le_bytes));
    }

    fn words(&mut self, name: &str, numbers: impl Iterator<Item = u32>) {
        self.add(name, "u32", numbers.map(u32::to_le_bytes));
    }

    fn floats(&mut self, name: &str, numbers: impl Iterator<Item = f64>) {
        self.add(name, "f64", numbers.map(f64::to_le_bytes));
    }

    /// Numbers in the smallest type that holds all of them exactly.
    fn numbers(&mut self, name: &str, numbers: impl Iterator<Item = f64> + Clone) {
        let is_word = |number: f64| number.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&number);
        match numbers.clone().all(is_word) {
            true => self.words(name, numbers.map(|number| number as u32)),
            false => self.floats(name, numbers),
        }
    }
}

/// The pack of the executions of a kind.
pub(crate) fn pack(database: &Database, kind: &Kind, table: &Table) -> Vec<u8> {
    let mut sections = Sections::default();
    let origin = table.begins.iter().copied().min().unwrap_or(0);
    executions(&mut sections, table, origin);
    let threads = threads(&mut sections, database, table);
    contexts(&mut sections, database);
    times(&mut sections, database, table);
    let place = database.kinds.iter().position(|of| of.id == kind.id).unwrap_or(0);
    let kinds = database.kinds.iter();
    let kinds =
        kinds.map(|of| json!({"name": of.name, "definition": of.definition, "executions": of.executions}));
    let metrics = table.figures.iter().map(
        |of| json!({"name": of.column.name, "unit": of.column.unit, "description": of.column.description}),
    );
    let texts = table
        .texts
        .iter()
        .map(|of| json!({"name": of.column.name, "values": of.texts}));
    let sources = database.sources.iter();
    let sources = sources.map(|of| json!({"path": of.path, "host": of.host, "label": of.label}));
    let title = database
        .path()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let header = json!({
        "version": 1,
        "title": title,
        "kind": place,
        "kinds": kinds.collect::<Vec<_>>(),
        "executions": table.len(),
        "origin_ns": origin.to_string(),
        "metrics": metrics.collect::<Vec<_>>(),
        "texts": texts.collect::<Vec<_>>(),
        "sources": sources.collect::<Vec<_>>(),
        "threads": threads,
        "names": database.union.names.texts(),
        "paths": true,
        "sections": sections.places,
    });
    document(&header, &sections.bytes)
}

fn document(header: &Value, sections: &[u8]) -> Vec<u8> {
    let mut header = header.to_string().into_bytes();
    let lead = MAGIC.len() + size_of::<u32>();
    header.resize((lead + header.len()).next_multiple_of(8) - lead, b' ');
    let mut document = Vec::with_capacity(lead + header.len() + sections.len());
    document.extend_from_slice(MAGIC);
    document.extend_from_slice(&(header.len() as u32).to_le_bytes());
    document.extend_from_slice(&header);
    document.extend_from_slice(sections);
    document
}

fn executions(sections: &mut Sections, table: &Table, origin: i64) {
    sections.words("id", table.ids.iter().copied());
    sections.floats(
        "begin",
        table.begins.iter().map(|begin| begin.abs_diff(origin) as f64),
    );
    sections.shorts(
        "source",
        table
            .sources
            .iter()
            .map(|&source| u16::try_from(source).unwrap_or(u16::MAX)),
    );
    for (place, of) in table.figures.iter().enumerate() {
        sections.numbers(&format!("metric:{place}"), of.values.iter().copied());
    }
    for (place, of) in table.texts.iter().enumerate() {
        sections.words(
            &format!("text:{place}"),
            of.codes.iter().map(|code| code.unwrap_or(NONE)),
        );
    }
}

/// Names of threads, each once; and which each execution ends in.
fn threads(sections: &mut Sections, database: &Database, table: &Table) -> Vec<String> {
    let (names, codes) = named(&database.threads);
    let code = |thread: &Option<u32>| {
        thread
            .and_then(|id| codes.get(id as usize).copied().flatten())
            .unwrap_or(NONE)
    };
    sections.words("thread", table.threads.iter().map(code));
    names
}

/// Names of threads, each once, and the place of each thread's. A thread without a name is none, as it is in the terminal.
fn named(threads: &[Thread]) -> (Vec<String>, Vec<Option<u32>>) {
    let mut names = tracebraid_executions::Names::default();
    let codes = threads
        .iter()
        .map(|thread| thread.name.as_deref().map(|name| names.id(name).0))
        .collect();
    (names.texts().to_vec(), codes)
}

fn contexts(sections: &mut Sections, database: &Database) {
    let contexts = &database.union.contexts;
    let parts = || (0..contexts.count() as u32).map(|id| contexts.parts(ContextId(id)));
    sections.words(
        "parent",
        parts().map(|parts| parts.map_or(0, |(around, _)| around.0)),
    );
    let kind = |kind: FrameKind| {
        FrameKind::ALL
            .iter()
            .position(|known| *known == kind)
            .map_or(u8::MAX, |at| at as u8)
    };
    sections.bytes_of(
        "kind",
        parts().map(|parts| parts.map_or(u8::MAX, |(_, frame)| kind(frame.kind))),
    );
    sections.words(
        "name",
        parts().map(|parts| parts.map_or(0, |(_, frame)| frame.name.0)),
    );
}

fn times(sections: &mut Sections, database: &Database, table: &Table) {
    let rows = &table.rows;
    let ends = rows
        .ends
        .iter()
        .map(|&end| u32::try_from(end).unwrap_or(u32::MAX));
    sections.words("rows", [0].into_iter().chain(ends));
    match database.union.contexts.count() <= 1 << 16 {
        true => sections.shorts(
            "context",
            rows.entries.iter().map(|(context, _)| context.0 as u16),
        ),
        false => sections.words("context", rows.entries.iter().map(|(context, _)| context.0)),
    }
    sections.numbers("time", rows.entries.iter().map(|(_, time)| *time as f64));
}

#[cfg(test)]
mod tests {
    use super::*;

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
