//! A history for queries, which reads blocks on demand.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::attribute::{Attribute, AttributeKind, Form};
use crate::block::Block;
use crate::file::{BlockRef, HistoryError, Meta, Source};
use crate::value::{ThreadState, Value};
use crate::varint::{self, NULL};

/// A history. Blocks are read and verified when a query needs them; the last used ones are cached.
#[derive(Debug)]
pub struct History {
    source: Source,
    meta: Meta,
    texts: Vec<Arc<str>>,
    /// Numbers of attributes of user analyses, by path.
    custom: HashMap<String, u32>,
    /// By level: blocks in the order of time.
    levels: Vec<Level>,
    kept: Mutex<Kept>,
}

/// A level: all changes, or values at the multiples of a grid.
#[derive(Debug, Default)]
pub(crate) struct Level {
    pub(crate) number: u8,
    pub(crate) grid: i64,
    pub(crate) blocks: Vec<BlockRef>,
}

/// Cached blocks by offset, each with the time of its last use.
#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<u64, (u64, Arc<Block>)>,
    clock: u64,
}

/// Maximum number of cached blocks, which take some megabytes.
const MOST_KEPT: usize = 96;

impl History {
    /// Opens a history.
    ///
    /// # Errors
    /// If the file cannot be read, is not a history or of another version, or its head or index is
    /// damaged.
    pub fn open(path: &Path) -> Result<History, HistoryError> {
        let (source, index) = Source::open(path)?;
        let mut levels: Vec<Level> = Vec::new();
        for block in index.blocks {
            let number = usize::from(block.level);
            if levels.len() <= number {
                levels.resize_with(number + 1, Level::default);
            }
            let level = &mut levels[number];
            if level
                .blocks
                .last()
                .is_some_and(|last| last.begin > block.begin || last.grid != block.grid)
            {
                return Err(source.damaged(block.offset, "the blocks are not in the order of time"));
            }
            (level.number, level.grid) = (block.level, block.grid);
            level.blocks.push(block);
        }
        let custom = index.meta.custom.iter().zip(0..);
        Ok(History {
            source,
            custom: custom
                .map(|(path, number)| (path.clone(), number))
                .collect(),
            meta: index.meta,
            texts: index.texts.into_iter().map(Arc::from).collect(),
            levels,
            kept: Mutex::default(),
        })
    }

    /// Traces, range and contents of the history.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The path of an attribute, without the machine.
    pub fn path(&self, attribute: Attribute) -> String {
        let own = || self.meta.custom.get(attribute.id() as usize).cloned();
        match attribute.kind() {
            AttributeKind::Custom => own().unwrap_or_default(),
            _ => attribute.path().to_string(),
        }
    }

    /// The attribute with a path on a machine; attributes of user analyses belong to no machine.
    pub fn find(&self, path: &str, host: u32) -> Option<Attribute> {
        let own = self.custom.get(path).copied();
        own.map(|number| Attribute::new(AttributeKind::Custom, 0, number))
            .or_else(|| {
                Attribute::parse(path, host).filter(|found| found.kind() != AttributeKind::Custom)
            })
    }

    /// Whether any stored attribute has, or before an append had, that text as a value.
    pub fn has_text(&self, text: &str) -> bool {
        self.texts.iter().any(|known| **known == *text)
    }

    /// Number of blocks of all changes, and of coarse blocks.
    pub fn blocks(&self) -> (usize, usize) {
        let fine = self.level(0).map_or(0, |level| level.blocks.len());
        let all: usize = self.levels.iter().map(|level| level.blocks.len()).sum();
        (fine, all - fine)
    }

    pub(crate) fn level(&self, number: usize) -> Option<&Level> {
        self.levels.get(number)
    }

    /// The coarsest level whose grid is at most `step` nanoseconds; all changes if every grid is
    /// wider.
    pub(crate) fn level_for(&self, step: i64) -> Option<&Level> {
        let fits = |level: &&Level| level.number == 0 || level.grid <= step;
        self.levels
            .iter()
            .rev()
            .find(|level| !level.blocks.is_empty() && fits(level))
    }

    /// Reads a block, or returns a cached one.
    pub(crate) fn block(&self, place: &BlockRef) -> Result<Arc<Block>, HistoryError> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = lock().get(place.offset) {
            return Ok(block);
        }
        let block = Arc::new(self.source.block(place)?);
        lock().keep(place.offset, block.clone());
        Ok(block)
    }

    /// The value that a code stands for.
    pub(crate) fn value_of(&self, attribute: Attribute, code: u64) -> Value {
        if code == NULL {
            return Value::Null;
        }
        let form = attribute.kind().form();
        if let Some(text) = form.text_of(code) {
            let text = usize::try_from(text)
                .ok()
                .and_then(|text| text.checked_sub(1));
            let text = text.and_then(|at| self.texts.get(at));
            return text.map_or(Value::Null, |text| Value::Text(text.clone()));
        }
        match form {
            Form::Text => Value::Null,
            Form::Any => varint::number(code >> 1).map_or(Value::Null, Value::Number),
            Form::State => {
                let state = varint::number(code).and_then(ThreadState::of_number);
                state.map_or(Value::Null, Value::State)
            }
            Form::Number | Form::Counter => varint::number(code).map_or(Value::Null, Value::Number),
        }
    }

    /// Reads the whole file and verifies it.
    ///
    /// # Errors
    /// The first damage found.
    pub fn verify(&self) -> Result<(), HistoryError> {
        self.source.check_origin()?;
        let blocks = self.levels.iter().flat_map(|level| &level.blocks);
        blocks
            .into_iter()
            .try_for_each(|place| self.source.block(place).map(drop))
    }
}

impl Level {
    /// Index of the block that contains a time, or of the last one before it.
    pub(crate) fn find(&self, time: i64) -> Option<usize> {
        self.blocks
            .partition_point(|block| block.begin <= time)
            .checked_sub(1)
    }
}

impl Kept {
    fn get(&mut self, offset: u64) -> Option<Arc<Block>> {
        self.clock += 1;
        let clock = self.clock;
        let (used, block) = self.blocks.get_mut(&offset)?;
        *used = clock;
        Some(block.clone())
    }

    fn keep(&mut self, offset: u64, block: Arc<Block>) {
        if self.blocks.len() >= MOST_KEPT {
            let oldest = self.blocks.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(&offset, _)| offset) {
                self.blocks.remove(&oldest);
            }
        }
        self.blocks.insert(offset, (self.clock, block));
    }
}
