//! Pages of a table of SQLite, written without SQLite.
//!
//! In: the file of a database that nobody has open, with an empty table, and rows as records in the order of their ids. Out: the
//! same file with the rows in the table. Rows that come in order fill one leaf of the tree after the other, so no page is looked
//! for or written twice; inserting with SQLite takes about five times the CPU time, on the one thread that can.
//!
//! After <https://www.sqlite.org/fileformat.html>, sections 1.3, 1.5 and 1.6.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of the head of a database.
const HEAD: usize = 100;
/// The byte at which SQLite locks files: its page holds nothing.
const LOCKED: u64 = 1 << 30;
/// Bytes that are written at once.
const WRITTEN: usize = 1 << 18;
/// Bytes of the heads of pages, and their kinds.
const LEAF_HEAD: usize = 8;
const INNER_HEAD: usize = 12;
const LEAF: u8 = 0x0d;
const INNER: u8 = 0x05;

/// A table that is filled.
#[derive(Debug)]
pub(super) struct PageWriter {
    pages: Pages,
    /// The page at which the table begins.
    root: u32,
    leaf: Leaf,
    /// Inner pages that are not complete, by height above the leaves.
    inner: Vec<Vec<Child>>,
}

/// A page below an inner one, and the last id in it.
#[derive(Clone, Copy, Debug)]
struct Child {
    page: u32,
    last: i64,
}

/// The leaf that is filled.
#[derive(Debug, Default)]
struct Leaf {
    /// One behind the other.
    cells: Vec<u8>,
    begins: Vec<usize>,
    last: i64,
}

/// The end of the file.
#[derive(Debug)]
struct Pages {
    file: File,
    size: usize,
    /// The number of the next page, from 1.
    next: u32,
    /// Pages before that one that are not written yet.
    waiting: Vec<u8>,
}

impl PageWriter {
    /// Of the table that begins at page `root`; none if the file is not laid out as a new database is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn new(path: &Path, root: u32) -> io::Result<Option<PageWriter>> {
        let file = File::options().read(true).write(true).open(path)?;
        let mut head = [0; HEAD];
        file.read_exact_at(&mut head, 0)?;
        let word = |at: usize| {
            head.get(at..at + 4)
                .and_then(|word| word.try_into().ok())
                .map_or(0, u32::from_be_bytes)
        };
        let size = match u16::from_be_bytes([head[16], head[17]]) {
            1 => 1 << 16,
            size => usize::from(size),
        };
        let pages = word(28);
        let is_whole = file.metadata()?.len() == u64::from(pages) * size as u64;
        // No bytes of pages are reserved, no page is free, and none tells where others are.
        let is_plain = head[20] == 0 && word(36) == 0 && word(52) == 0 && word(24) == word(92);
        if !is_whole || !is_plain || size < 512 || root < 2 || root > pages {
            return Ok(None);
        }
        Ok(Some(PageWriter {
            pages: Pages {
                file,
                size,
                next: pages + 1,
                waiting: Vec::with_capacity(WRITTEN + size),
            },
            root,
            leaf: Leaf::default(),
            inner: Vec::new(),
        }))
    }

    /// Adds a row, whose id is greater than all before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn push(&mut self, id: i64, record: &[u8]) -> io::Result<()> {
        let begin = self.leaf.cells.len();
        self.put_cell(id, record)?;
        let places = 2 * (self.leaf.begins.len() + 1);
        if LEAF_HEAD + places + self.leaf.cells.len() > self.pages.size {
            let cell = self.leaf.cells.split_off(begin);
            self.end_leaf()?;
            self.leaf.cells = cell;
        }
        self.leaf.begins.push(match self.leaf.begins.is_empty() {
            true => 0,
            false => begin,
        });
        self.leaf.last = id;
        Ok(())
    }

    /// A cell: what has no room in it goes to pages of its own.
    fn put_cell(&mut self, id: i64, record: &[u8]) -> io::Result<()> {
        let cells = &mut self.leaf.cells;
        put_varint(cells, record.len() as u64);
        put_varint(cells, id as u64);
        let local = local_bytes(record.len(), self.pages.size);
        let (here, mut rest) = record.split_at_checked(local).unwrap_or((record, &[]));
        cells.extend_from_slice(here);
        if rest.is_empty() {
            return Ok(());
        }
        let room = self.pages.size - 4;
        let mut page = self.pages.take()?;
        cells.extend_from_slice(&page.to_be_bytes());
        loop {
            let (part, more) = rest.split_at_checked(room).unwrap_or((rest, &[]));
            // The next page is the one behind this.
            let next = match more.is_empty() {
                true => 0,
                false => self.pages.following(page),
            };
            self.pages.put(&[&next.to_be_bytes(), part])?;
            if more.is_empty() {
                return Ok(());
            }
            page = self.pages.take()?;
            rest = more;
        }
    }

    fn end_leaf(&mut self) -> io::Result<()> {
        let leaf = std::mem::take(&mut self.leaf);
        let page = self.pages.take()?;
        let bytes = page_of(self.pages.size, LEAF, None, &leaf.cells, &leaf.begins);
        self.pages.put(&[&bytes])?;
        let last = leaf.last;
        self.add(0, Child { page, last })
    }

    /// Adds a page below those of that height. A complete page leaves its last child to the next one, so that none has less than
    /// two in the end.
    fn add(&mut self, height: usize, child: Child) -> io::Result<()> {
        if self.inner.len() <= height {
            self.inner.push(Vec::new());
        }
        let (most, size) = (self.most_children(), self.pages.size);
        let children = &mut self.inner[height];
        children.push(child);
        if children.len() <= most {
            return Ok(());
        }
        let rest = children.split_off(most - 1);
        let complete = std::mem::replace(children, rest);
        let last = complete.last().map_or(0, |child| child.last);
        let page = self.pages.take()?;
        self.pages.put(&[&inner_page(size, &complete)])?;
        self.add(height + 1, Child { page, last })
    }

    /// Children for which an inner page has room whatever their ids are: with the place of a cell, a page and an id, each takes 15 bytes
    /// at most.
    fn most_children(&self) -> usize {
        (self.pages.size - INNER_HEAD) / 15
    }

    /// Completes the table and the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let size = self.pages.size;
        let root = match (self.inner.is_empty(), self.leaf.begins.is_empty()) {
            (true, _) => page_of(size, LEAF, None, &self.leaf.cells, &self.leaf.begins),
            (false, is_empty) => {
                if !is_empty {
                    self.end_leaf()?;
                }
                inner_page(size, &self.end_inner()?)
            }
        };
        self.pages.finish(self.root, &root)
    }

    /// Gives the children of the root.
    fn end_inner(&mut self) -> io::Result<Vec<Child>> {
        let mut height = 0;
        loop {
            let children = self.inner.get_mut(height).map(std::mem::take).unwrap_or_default();
            if height + 1 >= self.inner.len() {
                return Ok(children);
            }
            let last = children.last().map_or(0, |child| child.last);
            let page = self.pages.take()?;
            self.pages.put(&[&inner_page(self.pages.size, &children)])?;
            height += 1;
            self.add(height, Child { page, last })?;
        }
    }
}

impl Pages {
    /// The number of the page behind one.
    fn following(&self, page: u32) -> u32 {
        let is_locked = u64::from(page) * self.size as u64 == LOCKED;
        page + 1 + u32::from(is_locked)
    }

    /// The number of the next page.
    fn take(&mut self) -> io::Result<u32> {
        if u64::from(self.next - 1) * self.size as u64 == LOCKED {
            self.put(&[])?;
            self.next += 1;
        }
        self.next = self.next.checked_add(1).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(self.next - 1)
    }

    /// Writes the page that was taken last, with zeros behind the bytes that are given.
    fn put(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let end = self.waiting.len() + self.size;
        parts.iter().for_each(|part| self.waiting.extend_from_slice(part));
        self.waiting.resize(end, 0);
        match self.waiting.len() < WRITTEN {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        use std::io::{Seek, SeekFrom};
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes the root of the table, and to the head that there are more pages.
    fn finish(mut self, root: u32, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.file
            .write_all_at(bytes, u64::from(root - 1) * self.size as u64)?;
        let mut changes = [0; 4];
        self.file.read_exact_at(&mut changes, 24)?;
        let changes = u32::from_be_bytes(changes).wrapping_add(1).to_be_bytes();
        self.file.write_all_at(&(self.next - 1).to_be_bytes(), 28)?;
        self.file.write_all_at(&changes, 24)?;
        self.file.write_all_at(&changes, 92)
    }
}

/// Bytes of a record that stand in its cell.
fn local_bytes(length: usize, size: usize) -> usize {
    let most = size - 35;
    if length <= most {
        return length;
    }
    let least = (size - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (size - 4);
    if fitting <= most { fitting } else { least }
}

/// A page of cells.
fn page_of(size: usize, kind: u8, right: Option<u32>, cells: &[u8], begins: &[usize]) -> Vec<u8> {
    let content = size - cells.len();
    let mut page = Vec::with_capacity(size);
    page.extend_from_slice(&[kind, 0, 0]);
    page.extend_from_slice(&(begins.len() as u16).to_be_bytes());
    // 65,536 is told as 0.
    page.extend_from_slice(&(content as u16).to_be_bytes());
    page.push(0);
    if let Some(right) = right {
        page.extend_from_slice(&right.to_be_bytes());
    }
    for begin in begins {
        page.extend_from_slice(&((content + begin) as u16).to_be_bytes());
    }
    page.resize(content, 0);
    page.extend_from_slice(cells);
    page
}

/// A page of other pages.
fn inner_page(size: usize, children: &[Child]) -> Vec<u8> {
    let Some((right, others)) = children.split_last() else {
        return page_of(size, LEAF, None, &[], &[]);
    };
    let (mut cells, mut begins) = (Vec::new(), Vec::new());
    for child in others {
        begins.push(cells.len());
        cells.extend_from_slice(&child.page.to_be_bytes());
        put_varint(&mut cells, child.last as u64);
    }
    page_of(size, INNER, Some(right.page), &cells, &begins)
}

/// A number of variable length as SQLite has them: the most significant bits first, 9 bytes at most.
pub(super) fn put_varint(bytes: &mut Vec<u8>, number: u64) {
    if number < 1 << 7 {
        return bytes.push(number as u8);
    }
    let mut reversed = [0; 9];
    // Of 9 bytes the last has 8 bits.
    let is_longest = number >> 56 != 0;
    let (mut rest, mut count) = (number, 0);
    if is_longest {
        reversed[0] = number as u8;
        (rest, count) = (number >> 8, 1);
    }
    while count < 9 && (is_longest || rest != 0) {
        reversed[count] = rest as u8 & 0x7f | if count > 0 { 0x80 } else { 0 };
        rest >>= 7;
        count += 1;
    }
    bytes.extend(reversed[..count].iter().rev());
}

/// A row as SQLite keeps it: what the values are, and then the values.
#[derive(Debug, Default)]
pub(super) struct Record {
    kinds: Vec<u8>,
    values: Vec<u8>,
    bytes: Vec<u8>,
}

impl Record {
    pub(super) fn clear(&mut self) {
        self.kinds.clear();
        self.values.clear();
    }

    pub(super) fn null(&mut self) {
        self.kinds.push(0);
    }

    pub(super) fn integer(&mut self, number: i64) {
        let bytes = number.to_be_bytes();
        let (kind, length) = match number {
            0 => (8, 0),
            1 => (9, 0),
            -0x80..=0x7f => (1, 1),
            -0x8000..=0x7fff => (2, 2),
            -0x80_0000..=0x7f_ffff => (3, 3),
            -0x8000_0000..=0x7fff_ffff => (4, 4),
            -0x8000_0000_0000..=0x7fff_ffff_ffff => (5, 6),
            _ => (6, 8),
        };
        self.kinds.push(kind);
        self.values
            .extend_from_slice(bytes.get(8 - length..).unwrap_or_default());
    }

    /// What is no number is nothing, as SQLite has it.
    pub(super) fn float(&mut self, number: f64) {
        if number.is_nan() {
            return self.null();
        }
        self.kinds.push(7);
        self.values.extend_from_slice(&number.to_be_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        put_varint(&mut self.kinds, 13 + 2 * text.len() as u64);
        self.values.extend_from_slice(text.as_bytes());
    }

    pub(super) fn blob(&mut self, blob: &[u8]) {
        put_varint(&mut self.kinds, 12 + 2 * blob.len() as u64);
        self.values.extend_from_slice(blob);
    }

    /// Its bytes.
    pub(super) fn bytes(&mut self) -> &[u8] {
        self.bytes.clear();
        // The length counts itself.
        let mut length = self.kinds.len() as u64 + 1;
        if length >= 1 << 7 {
            length += 1;
        }
        put_varint(&mut self.bytes, length);
        self.bytes.extend_from_slice(&self.kinds);
        self.bytes.extend_from_slice(&self.values);
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;
    use rusqlite::types::Value;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Integer),
            (-70_000..70_000i64).prop_map(Value::Integer),
            any::<f64>().prop_map(Value::Real),
            "[a-zä]{0,90}".prop_map(Value::Text),
            (0..9000usize, any::<u8>()).prop_map(|(length, byte)| Value::Blob(vec![byte; length])),
        ]
    }

    fn put(record: &mut Record, value: &Value) {
        match value {
            Value::Null => record.null(),
            Value::Integer(number) => record.integer(*number),
            Value::Real(number) => record.float(*number),
            Value::Text(text) => record.text(text),
            Value::Blob(blob) => record.blob(blob),
        }
    }

    /// Writes rows `(id, value, value)`, and lets SQLite look at them and add one.
    fn written(size: u32, rows: &[(i64, Value, Value)]) -> Vec<(i64, Value, Value)> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("database");
        let connection = Connection::open(&path).unwrap();
        let tables = format!(
            "PRAGMA page_size = {size}; CREATE TABLE other (text TEXT); CREATE TABLE t (id INTEGER PRIMARY KEY, one, two);"
        );
        connection.execute_batch(&tables).unwrap();
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 't'";
        let root: u32 = connection.query_row(root, [], |row| row.get(0)).unwrap();
        connection.close().unwrap();
        let mut pages = PageWriter::new(&path, root).unwrap().expect("it is new");
        let mut record = Record::default();
        for (id, one, two) in rows {
            record.clear();
            record.null();
            put(&mut record, one);
            put(&mut record, two);
            pages.push(*id, record.bytes()).unwrap();
        }
        pages.finish().unwrap();
        let connection = Connection::open(&path).unwrap();
        let check = |connection: &Connection| {
            let sound: String = connection
                .query_row("PRAGMA integrity_check", [], |row| row.get(0))
                .unwrap();
            assert_eq!(sound, "ok");
        };
        check(&connection);
        connection.execute_batch("INSERT INTO t (one) VALUES (5); INSERT INTO other VALUES ('more'); DELETE FROM t WHERE one = 5 AND two IS NULL AND id = (SELECT max(id) FROM t)").unwrap();
        check(&connection);
        let mut select = connection
            .prepare("SELECT id, one, two FROM t ORDER BY id")
            .unwrap();
        let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        found.unwrap().map(Result::unwrap).collect()
    }

    fn is_nan(value: &Value) -> bool {
        matches!(value, Value::Real(number) if number.is_nan())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn sqlite_reads_what_was_written(
            size in prop::sample::select(vec![512u32, 1024, 4096, 65536]),
            rows in prop::collection::vec((1..1000i64, value(), value()), 0..120),
        ) {
            let mut last = 0;
            let rows: Vec<_> = rows
                .into_iter()
                .map(|(step, one, two)| {
                    last += step;
                    let or_null = |value: Value| if is_nan(&value) { Value::Null } else { value };
                    (last, or_null(one), or_null(two))
                })
                .collect();
            prop_assert_eq!(written(size, &rows), rows);
        }
    }

    #[test]
    fn tables_are_as_high_as_they_must_be() {
        for count in [0, 1, 2, 40, 3_000, 60_000] {
            let row = |id| {
                (
                    id,
                    Value::Integer(id * id),
                    Value::Text("x".repeat((id % 50) as usize)),
                )
            };
            let rows: Vec<_> = (1..=count).map(row).collect();
            assert!(written(512, &rows) == rows, "{count}");
        }
    }

    #[test]
    fn the_page_of_the_lock_is_left_out() {
        let pages = Pages {
            file: tempfile::tempfile().unwrap(),
            size: 1 << 16,
            next: (1 << 14) - 1,
            waiting: Vec::new(),
        };
        let mut pages = pages;
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(pages.take().unwrap());
            pages.put(&[]).unwrap();
        }
        assert_eq!(taken, [16_383, 16_384, 16_386, 16_387]);
        assert_eq!(pages.following(16_384), 16_386);
        pages.flush().unwrap();
        assert_eq!(pages.file.metadata().unwrap().len(), 5 << 16);
    }
}
