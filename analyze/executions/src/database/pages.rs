//! Pages of an SQLite table, written without SQLite.
//!
//! In: a database file that no connection has open, with an empty table, and rows as records in the
//! order of their ids. Out: the same file with the rows in the table. Rows in ascending order fill
//! the leaves of the tree one after another, so no page is searched for or written twice; inserting
//! with SQLite takes about five times the CPU time, on the only thread that may write.
//!
//! Rows become [`Cells`] on any thread. Their assignment to pages depends on all earlier rows, but
//! only on their lengths: [`PageWriter::lay_out`] computes it, batch by batch. The [`Pages`] are
//! filled and written on any thread again.
//!
//! File format: <https://www.sqlite.org/fileformat.html>, sections 1.3, 1.5 and 1.6; for records,
//! `sqlite_record`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use tracebraid_engine::Stopwatch;

use crate::database::sqlite_record::put_varint;

/// Bytes of the database header.
const HEAD: usize = 100;
/// Offset of the byte that SQLite locks: the page that contains it stays empty.
const LOCKED: u64 = 1 << 30;
/// Bytes of page headers, and page types.
const LEAF_HEAD: usize = 8;
const INNER_HEAD: usize = 12;
const LEAF: u8 = 0x0d;
const INNER: u8 = 0x05;

/// Table that is being filled: assigns rows to pages.
#[derive(Debug)]
pub(super) struct PageWriter {
    file: Arc<File>,
    size: usize,
    /// Number of the next page, from 1.
    next: u32,
    /// Root page of the table.
    root: u32,
    leaf: Leaf,
    /// Incomplete inner pages, by height above the leaves.
    inner: Vec<Vec<Child>>,
}

/// Page below an inner page, and the last id in it.
#[derive(Clone, Copy, Debug)]
struct Child {
    page: u32,
    last: i64,
}

/// Concatenated cells of a leaf, and the offset of each.
#[derive(Debug, Default)]
struct Leaf {
    cells: Vec<u8>,
    begins: Vec<usize>,
}

/// Rows as table cells, with consecutive ascending ids.
#[derive(Debug)]
pub(super) struct Cells {
    size: usize,
    first: i64,
    /// Concatenated cells; `ends` holds the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Overflow of large cells: cell index and bytes. Such a cell ends with 4 bytes for the number
    /// of its first overflow page.
    spilled: Vec<(usize, Vec<u8>)>,
    /// Earlier cells at the beginning of the first leaf.
    head: Leaf,
    /// Complete leaves: page number, and the index of the cell after the last one.
    leaves: Vec<(u32, usize)>,
    /// Buffer for pages.
    pages: Vec<u8>,
}

/// Consecutive pages of the file.
#[derive(Debug)]
pub(super) struct Pages {
    file: Arc<File>,
    size: usize,
    /// First page, and in `next` the page after the last one.
    first: u32,
    next: u32,
    cells: Cells,
    /// By index into the overflow of `cells`: its pages.
    spilled: Vec<Vec<u32>>,
    /// Inner pages: number and content.
    inner: Vec<(u32, Vec<u8>)>,
}

impl Cells {
    /// `size`: bytes of a page; `first`: id of the first row.
    pub(super) fn new(size: usize, first: i64) -> Cells {
        Cells {
            size,
            first,
            bytes: Vec::new(),
            ends: Vec::new(),
            spilled: Vec::new(),
            head: Leaf::default(),
            leaves: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// Removes all rows but keeps the allocations; ids begin with `first`.
    pub(super) fn clear(&mut self, first: i64) {
        self.first = first;
        self.bytes.clear();
        self.ends.clear();
        self.spilled.clear();
        self.leaves.clear();
        self.head.cells.clear();
        self.head.begins.clear();
    }

    pub(super) fn push(&mut self, record: &[u8]) {
        let id = self.first + self.ends.len() as i64;
        put_varint(&mut self.bytes, record.len() as u64);
        put_varint(&mut self.bytes, id as u64);
        let local = local_bytes(record.len(), self.size);
        let (here, rest) = record.split_at_checked(local).unwrap_or((record, &[]));
        self.bytes.extend_from_slice(here);
        if !rest.is_empty() {
            self.bytes.extend_from_slice(&[0; 4]);
            self.spilled.push((self.ends.len(), rest.to_vec()));
        }
        self.ends.push(self.bytes.len());
    }

    /// Id of the first row, and the number of rows.
    pub(super) fn ids(&self) -> (i64, usize) {
        (self.first, self.ends.len())
    }

    /// Offset of a cell.
    fn begin(&self, cell: usize) -> usize {
        let before = cell.checked_sub(1);
        before.map_or(0, |before| {
            self.ends.get(before).copied().unwrap_or(self.bytes.len())
        })
    }
}

impl PageWriter {
    /// Writer for the table with root page `root`; `None` if the file does not have the layout of a
    /// new database.
    ///
    /// # Errors
    /// If the file cannot be read.
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
        // No reserved bytes in pages, no free pages, no pointer map (auto-vacuum), and a valid page
        // count.
        let is_plain = head[20] == 0 && word(36) == 0 && word(52) == 0 && word(24) == word(92);
        if !is_whole || !is_plain || size < 512 || root < 2 || root > pages {
            return Ok(None);
        }
        Ok(Some(PageWriter {
            file: Arc::new(file),
            size,
            next: pages + 1,
            root,
            leaf: Leaf::default(),
            inner: Vec::new(),
        }))
    }

    /// Bytes of a page.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Assigns pages to rows, whose ids follow all earlier ones. Depends on the lengths of the
    /// rows, not on their content.
    ///
    /// # Errors
    /// If the file gets too large.
    pub(super) fn lay_out(&mut self, mut cells: Cells) -> io::Result<Pages> {
        let first = self.next;
        let (mut spilled, mut inner) = (Vec::new(), Vec::new());
        // Swap to reuse the allocations of written rows.
        std::mem::swap(&mut self.leaf, &mut cells.head);
        // Bytes and number of cells in the leaf that is being filled.
        let (mut bytes, mut count) = (cells.head.cells.len(), cells.head.begins.len());
        let (mut begin, mut next_spilled) = (0, 0);
        for cell in 0..cells.ends.len() {
            let end = cells.ends[cell];
            if let Some((_, rest)) = cells.spilled.get(next_spilled).filter(|of| of.0 == cell) {
                let chain = self.take_all(rest.len().div_ceil(self.size - 4))?;
                if let (Some(first), Some(place)) =
                    (chain.first(), cells.bytes.get_mut(end - 4..end))
                {
                    place.copy_from_slice(&first.to_be_bytes());
                }
                spilled.push(chain);
                next_spilled += 1;
            }
            bytes += end - begin;
            count += 1;
            if LEAF_HEAD + 2 * count + bytes > self.size {
                let page = self.take()?;
                cells.leaves.push((page, cell));
                let last = cells.first + cell as i64 - 1;
                self.add(0, Child { page, last }, &mut inner)?;
                (bytes, count) = (end - begin, 1);
            }
            begin = end;
        }
        self.keep(&mut cells);
        Ok(Pages {
            file: self.file.clone(),
            size: self.size,
            first,
            next: self.next,
            cells,
            spilled,
            inner,
        })
    }

    /// Keeps the cells of the last, incomplete leaf.
    fn keep(&mut self, cells: &mut Cells) {
        let from = match cells.leaves.last() {
            Some((_, cell)) => *cell,
            None => {
                std::mem::swap(&mut self.leaf, &mut cells.head);
                0
            }
        };
        let first = cells.begin(from);
        let begin = self.leaf.cells.len();
        self.leaf
            .cells
            .extend_from_slice(cells.bytes.get(first..).unwrap_or_default());
        let places = from..cells.ends.len();
        self.leaf
            .begins
            .extend(places.map(|cell| begin + cells.begin(cell) - first));
    }

    /// Number of the next page; skips the lock page.
    fn take(&mut self) -> io::Result<u32> {
        let is_locked = u64::from(self.next - 1) * self.size as u64 == LOCKED;
        let page = self.next.checked_add(u32::from(is_locked));
        let next = page.and_then(|page| page.checked_add(1));
        self.next = next.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(self.next - 1)
    }

    fn take_all(&mut self, count: usize) -> io::Result<Vec<u32>> {
        (0..count).map(|_| self.take()).collect()
    }

    /// Adds a page below the inner pages of this height. A full page leaves its last children to
    /// the next one, so that no page ends up with fewer than two.
    fn add(
        &mut self,
        height: usize,
        child: Child,
        pages: &mut Vec<(u32, Vec<u8>)>,
    ) -> io::Result<()> {
        if self.inner.len() <= height {
            self.inner.push(Vec::new());
        }
        let (most, size) = (self.most_children(), self.size);
        let children = &mut self.inner[height];
        children.push(child);
        if children.len() <= most {
            return Ok(());
        }
        let rest = children.split_off(most - 1);
        let complete = std::mem::replace(children, rest);
        let last = complete.last().map_or(0, |child| child.last);
        let page = self.take()?;
        pages.push((page, inner_page(size, &complete)));
        self.add(height + 1, Child { page, last }, pages)
    }

    /// Maximum number of children that fit into an inner page regardless of their ids: cell
    /// pointer, page number and id take at most 15 bytes.
    fn most_children(&self) -> usize {
        (self.size - INNER_HEAD) / 15
    }

    /// Completes the table and the file; `last` is the id of the last row.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn finish(mut self, last: i64) -> io::Result<()> {
        let size = self.size;
        let mut pages = Vec::new();
        let leaf = std::mem::take(&mut self.leaf);
        let leaf_page = || page_of(size, LEAF, None, &leaf.cells, &leaf.begins);
        let root = match (self.inner.is_empty(), leaf.begins.is_empty()) {
            (true, _) => leaf_page(),
            (false, is_empty) => {
                if !is_empty {
                    let page = self.take()?;
                    pages.push((page, leaf_page()));
                    self.add(0, Child { page, last }, &mut pages)?;
                }
                inner_page(size, &self.end_inner(&mut pages)?)
            }
        };
        pages.push((self.root, root));
        for (page, bytes) in pages {
            self.file.write_all_at(&bytes, place(page, size))?;
        }
        self.end_file()
    }

    /// Completes the inner pages below the root and returns the children of the root.
    fn end_inner(&mut self, pages: &mut Vec<(u32, Vec<u8>)>) -> io::Result<Vec<Child>> {
        let mut height = 0;
        loop {
            let children = self
                .inner
                .get_mut(height)
                .map(std::mem::take)
                .unwrap_or_default();
            if height + 1 >= self.inner.len() {
                return Ok(children);
            }
            let last = children.last().map_or(0, |child| child.last);
            let page = self.take()?;
            pages.push((page, inner_page(self.size, &children)));
            height += 1;
            self.add(height, Child { page, last }, pages)?;
        }
    }

    /// Updates the file size, and the page count and change counter in the file header.
    fn end_file(&self) -> io::Result<()> {
        // The lock page may be the last one; the file includes it.
        self.file.set_len(place(self.next, self.size))?;
        let mut changes = [0; 4];
        self.file.read_exact_at(&mut changes, 24)?;
        let changes = u32::from_be_bytes(changes).wrapping_add(1).to_be_bytes();
        self.file.write_all_at(&(self.next - 1).to_be_bytes(), 28)?;
        self.file.write_all_at(&changes, 24)?;
        self.file.write_all_at(&changes, 92)
    }
}

impl Pages {
    /// Fills the pages and writes them to the file. Returns the rows for reuse, and the CPU time of
    /// the write in nanoseconds: the operating system lets one thread at a time write to a file.
    ///
    /// # Errors
    /// If the pages cannot be written.
    pub(super) fn write(mut self) -> io::Result<(Cells, u64)> {
        let mut bytes = std::mem::take(&mut self.cells.pages);
        bytes.clear();
        bytes.resize((self.next - self.first) as usize * self.size, 0);
        self.fill(&mut bytes);
        let watch = Stopwatch::start();
        if !bytes.is_empty() {
            self.file
                .write_all_at(&bytes, place(self.first, self.size))?;
        }
        let cpu_ns = watch.elapsed();
        self.cells.pages = bytes;
        Ok((self.cells, cpu_ns))
    }

    fn fill(&self, bytes: &mut [u8]) {
        let mut from = 0;
        for (number, (page, to)) in self.cells.leaves.iter().enumerate() {
            let head = if number == 0 {
                &self.cells.head
            } else {
                &Leaf::default()
            };
            if let Some(page) = self.page(bytes, *page) {
                self.fill_leaf(page, head, from..*to);
            }
            from = *to;
        }
        for ((_, rest), chain) in self.cells.spilled.iter().zip(&self.spilled) {
            for (place, (page, part)) in chain.iter().zip(rest.chunks(self.size - 4)).enumerate() {
                let next = chain.get(place + 1).copied().unwrap_or(0);
                if let Some(page) = self.page(bytes, *page) {
                    put(page, 0, &next.to_be_bytes());
                    put(page, 4, part);
                }
            }
        }
        for (page, content) in &self.inner {
            if let Some(page) = self.page(bytes, *page) {
                put(page, 0, content);
            }
        }
    }

    fn page<'b>(&self, bytes: &'b mut [u8], page: u32) -> Option<&'b mut [u8]> {
        let at = page.checked_sub(self.first)? as usize * self.size;
        bytes.get_mut(at..at + self.size)
    }

    fn fill_leaf(&self, page: &mut [u8], head: &Leaf, cells: Range<usize>) {
        let (first, end) = (self.cells.begin(cells.start), self.cells.begin(cells.end));
        let content = self.size - head.cells.len() - (end - first);
        let count = head.begins.len() + cells.len();
        put_head(page, LEAF, count, content);
        let begins = head.begins.iter().copied();
        let behind = cells.map(|cell| head.cells.len() + self.cells.begin(cell) - first);
        for (place, begin) in begins.chain(behind).enumerate() {
            put(
                page,
                LEAF_HEAD + 2 * place,
                &((content + begin) as u16).to_be_bytes(),
            );
        }
        put(page, content, &head.cells);
        let own = self.cells.bytes.get(first..end).unwrap_or_default();
        put(page, content + head.cells.len(), own);
    }
}

/// Offset of a page in the file.
fn place(page: u32, size: usize) -> u64 {
    u64::from(page - 1) * size as u64
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = page.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Writes a page header for `cells` cells that begin at `content`, without the right-most pointer
/// of inner pages.
fn put_head(page: &mut [u8], kind: u8, cells: usize, content: usize) {
    put(page, 0, &[kind, 0, 0]);
    put(page, 3, &(cells as u16).to_be_bytes());
    // 65,536 is stored as 0.
    put(page, 5, &(content as u16).to_be_bytes());
    put(page, 7, &[0]);
}

/// Number of record bytes that are stored in the cell itself.
fn local_bytes(length: usize, size: usize) -> usize {
    let most = size - 35;
    if length <= most {
        return length;
    }
    let least = (size - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (size - 4);
    if fitting <= most { fitting } else { least }
}

/// Page with the given cells; `right`: right-most child of an inner page.
fn page_of(size: usize, kind: u8, right: Option<u32>, cells: &[u8], begins: &[usize]) -> Vec<u8> {
    let mut page = vec![0; size];
    let content = size - cells.len();
    put_head(&mut page, kind, begins.len(), content);
    let mut at = LEAF_HEAD;
    if let Some(right) = right {
        put(&mut page, at, &right.to_be_bytes());
        at = INNER_HEAD;
    }
    for (place, begin) in begins.iter().enumerate() {
        put(
            &mut page,
            at + 2 * place,
            &((content + begin) as u16).to_be_bytes(),
        );
    }
    put(&mut page, content, cells);
    page
}

/// Inner page; the last child becomes its right-most pointer.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;
    use rusqlite::types::Value;

    use super::*;
    use crate::database::sqlite_record::Record;

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

    fn put_value(record: &mut Record, value: &Value) {
        match value {
            Value::Null => record.null(),
            Value::Integer(number) => record.integer(*number),
            Value::Real(number) => record.float(*number),
            Value::Text(text) => record.text(text),
            Value::Blob(blob) => record.blob(blob),
        }
    }

    /// Writes rows `(id, value, value)` in batches of `batch` rows, checks the file with SQLite,
    /// inserts a row and deletes it again.
    fn written(size: u32, batch: usize, rows: &[(i64, Value, Value)]) -> Vec<(i64, Value, Value)> {
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
        let mut writer = PageWriter::new(&path, root).unwrap().expect("it is new");
        let mut record = Record::default();
        let mut batches = Vec::new();
        for rows in rows.chunks(batch) {
            let mut cells = Cells::new(size as usize, rows[0].0);
            for (_, one, two) in rows {
                record.clear();
                record.null();
                put_value(&mut record, one);
                put_value(&mut record, two);
                cells.push(record.bytes());
            }
            assert_eq!(cells.ids(), (rows[0].0, rows.len()));
            batches.push(writer.lay_out(cells).unwrap());
        }
        // Pages may be written in any order.
        for pages in batches.into_iter().rev() {
            pages.write().unwrap();
        }
        writer.finish(rows.last().map_or(0, |last| last.0)).unwrap();
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
            first in prop::sample::select(vec![1i64, 100, 16_300, 1 << 40]),
            batch in 1..130usize,
            rows in prop::collection::vec((value(), value()), 0..120),
        ) {
            let rows: Vec<_> = (first..)
                .zip(rows)
                .map(|(id, (one, two))| {
                    let or_null = |value: Value| if is_nan(&value) { Value::Null } else { value };
                    (id, or_null(one), or_null(two))
                })
                .collect();
            prop_assert_eq!(written(size, batch, &rows), rows);
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
            assert!(written(512, 1000, &rows) == rows, "{count}");
        }
    }

    #[test]
    fn the_page_of_the_lock_is_left_out() {
        let size = 1 << 16;
        let mut writer = PageWriter {
            file: Arc::new(tempfile::tempfile().unwrap()),
            size,
            next: (1 << 14) - 1,
            root: 1,
            leaf: Leaf::default(),
            inner: Vec::new(),
        };
        let mut cells = Cells::new(size, 1);
        // Each leaf has room for one row.
        (1..=5).for_each(|byte| cells.push(&vec![byte; size / 2]));
        let pages = writer.lay_out(cells).unwrap();
        let taken: Vec<u32> = pages.cells.leaves.iter().map(|leaf| leaf.0).collect();
        assert_eq!(taken, [16_383, 16_384, 16_386, 16_387]);
        pages.write().unwrap();
        let mut found = vec![7; 5 * size];
        let file = writer.file.clone();
        file.read_exact_at(&mut found, place(16_383, size)).unwrap();
        let kinds: Vec<u8> = found.chunks(size).map(|page| page[0]).collect();
        assert_eq!(kinds, [LEAF, LEAF, 0, LEAF, LEAF]);
        let mut cells = Cells::new(size, 6);
        cells.push(&vec![9; 3 * size]);
        writer.next = 16_384;
        let pages = writer.lay_out(cells).unwrap();
        assert_eq!(pages.spilled, [[16_384, 16_386, 16_387]]);
    }
}
