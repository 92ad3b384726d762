//! A history that is read: its blocks, as they are asked for.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::attribute::{Attribute, AttributeKind, Form};
use crate::block::Block;
use crate::file::{BlockRef, HistoryError, Meta, Source};
use crate::value::{ThreadState, Value};
use crate::varint::{self, NULL};

/// A history. Blocks are read, and their check sums looked at, when a query needs them; those that
/// were used last are kept.
#[derive(Debug)]
pub struct History {
    source: Source,
    meta: Meta,
    texts: Vec<Arc<str>>,
    /// Numbers of what users define, by path.
    custom: HashMap<String, u32>,
    /// By level: its blocks in the order of time.
    levels: Vec<Level>,
    kept: Mutex<Kept>,
}

/// A level: all changes, or what values are at the multiples of a grid.
#[derive(Debug, Default)]
pub(crate) struct Level {
    pub(crate) number: u8,
    pub(crate) grid: i64,
    pub(crate) blocks: Vec<BlockRef>,
}

/// Blocks that were used last, by offset, and when.
#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<u64, (u64, Arc<Block>)>,
    clock: u64,
}

/// So many blocks are kept: some megabytes.
const MOST_KEPT: usize = 96;

impl History {
    /// Opens a history.
    ///
    /// # Errors
    /// When the file cannot be read, is none, is of another version, or its head or index is damaged.
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
                return Err(source.damaged(block.offset, "its blocks are not in the order of time"));
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

    /// What it is of.
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

    /// The attribute with that path, of a machine; what users define belongs to none.
    pub fn find(&self, path: &str, host: u32) -> Option<Attribute> {
        let own = self.custom.get(path).copied();
        own.map(|number| Attribute::new(AttributeKind::Custom, 0, number))
            .or_else(|| {
                Attribute::parse(path, host).filter(|found| found.kind() != AttributeKind::Custom)
            })
    }

    /// Whether some value of an attribute that is kept is that text, or was of one that an append
    /// has cut off.
    pub fn has_text(&self, text: &str) -> bool {
        self.texts.iter().any(|known| **known == *text)
    }

    /// How many blocks of all changes there are, and how many coarse ones.
    pub fn blocks(&self) -> (usize, usize) {
        let fine = self.level(0).map_or(0, |level| level.blocks.len());
        let all: usize = self.levels.iter().map(|level| level.blocks.len()).sum();
        (fine, all - fine)
    }

    pub(crate) fn level(&self, number: usize) -> Option<&Level> {
        self.levels.get(number)
    }

    /// The coarse level that shows steps of so many nanoseconds best; all changes, if none is fine
    /// enough.
    pub(crate) fn level_for(&self, step: i64) -> Option<&Level> {
        let fits = |level: &&Level| level.number == 0 || level.grid <= step;
        self.levels
            .iter()
            .rev()
            .find(|level| !level.blocks.is_empty() && fits(level))
    }

    /// Reads a block, or takes one that was kept.
    pub(crate) fn block(&self, place: &BlockRef) -> Result<Arc<Block>, HistoryError> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = lock().get(place.offset) {
            return Ok(block);
        }
        let block = Arc::new(self.source.block(place)?);
        lock().keep(place.offset, block.clone());
        Ok(block)
    }

    /// The value with that code.
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

    /// Reads everything, to see whether it is whole.
    ///
    /// # Errors
    /// At the first place that is damaged.
    pub fn verify(&self) -> Result<(), HistoryError> {
        self.source.check_origin()?;
        let blocks = self.levels.iter().flat_map(|level| &level.blocks);
        blocks
            .into_iter()
            .try_for_each(|place| self.source.block(place).map(drop))
    }
}

impl Level {
    /// The block that a time is in, or the last one before it.
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
