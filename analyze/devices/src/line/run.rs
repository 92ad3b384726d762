//! Complete commands of a device that wait for earlier ones, in memory or in a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::blocks::Blocks;
use super::placed::Placed;

/// Commands of which the first time and the last are known without reading them.
pub(crate) const BLOCK: usize = 64;

/// Number of points in [`Run::points`]: the more, the earlier the timeline grows.
const POINTS: usize = 64;

/// A file for runs that take too much memory.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    file: Mutex<Option<(Arc<File>, u64)>>,
}

impl Spill {
    /// Writes to the end of the file, which has no name and vanishes with its last user.
    fn write(&self, bytes: &[u8]) -> io::Result<(Arc<File>, u64)> {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, at) = match held.take() {
            Some(known) => known,
            None => (Arc::new(tempfile::tempfile()?), 0),
        };
        let outcome = file.write_all_at(bytes, at);
        *held = Some((Arc::clone(&file), at + bytes.len() as u64));
        outcome.map(|()| (file, at))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<Placed>", into = "Vec<Placed>")]
enum Storage {
    Memory(Arc<Blocks>),
    /// Offset of the first command, and the number of commands.
    File(Arc<File>, u64, usize),
}

impl From<Vec<Placed>> for Storage {
    fn from(commands: Vec<Placed>) -> Storage {
        Storage::Memory(Arc::new(commands.into()))
    }
}

impl From<Storage> for Vec<Placed> {
    fn from(storage: Storage) -> Vec<Placed> {
        let mut commands = Vec::new();
        storage.read(0..storage.len(), &mut commands);
        commands
    }
}

impl Storage {
    fn len(&self) -> usize {
        match self {
            Storage::Memory(commands) => commands.len(),
            Storage::File(_, _, count) => *count,
        }
    }

    /// Appends the commands of a range to a list.
    fn read(&self, range: Range<usize>, to: &mut Vec<Placed>) {
        match self {
            Storage::Memory(commands) => commands.read(range, to),
            Storage::File(file, at, _) => {
                let mut bytes = vec![0; range.len() * Placed::SIZE];
                let at = at + (range.start * Placed::SIZE) as u64;
                // The file has no name, and no other process can shorten it: reading fails only if
                // the disk does.
                #[expect(
                    clippy::expect_used,
                    reason = "there is no result without these commands"
                )]
                file.read_exact_at(&mut bytes, at)
                    .expect("the temporary file of commands can be read");
                let commands = bytes.as_chunks::<{ Placed::SIZE }>().0.iter();
                to.extend(commands.map(Placed::decode));
            }
        }
    }
}

/// Commands of a device, sorted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    storage: Storage,
    /// Number of commands that have been taken.
    from: usize,
    /// By block: when its first command was queued, and when the last of its commands ends.
    blocks: Vec<(u64, u64)>,
    /// Some ends of calls, ascending, and until when commands of calls until then were queued.
    points: Vec<(i64, u64)>,
    /// Numbers of names, by those that the commands have; `None` if those are the same.
    names: Option<Vec<u32>>,
}

impl Run {
    pub(crate) fn new(commands: &Blocks) -> Run {
        let commands = commands.sorted();
        let blocks = commands.parts().map(|block| {
            let first = block.first().map_or(0, |command| command.queued);
            (first, block.iter().map(|of| of.end).max().unwrap_or(0))
        });
        Run {
            blocks: blocks.collect(),
            points: points(&commands),
            storage: Storage::Memory(Arc::new(commands)),
            from: 0,
            names: None,
        }
    }

    /// Moves the commands to the file; they stay in memory if that fails.
    pub(crate) fn spill(&mut self, spill: &Spill) {
        let Storage::Memory(commands) = &self.storage else {
            return;
        };
        let mut bytes = Vec::with_capacity(commands.len() * Placed::SIZE);
        commands
            .iter()
            .for_each(|command| command.encode(&mut bytes));
        if let Ok((file, at)) = spill.write(&bytes) {
            self.storage = Storage::File(file, at, commands.len());
        }
    }

    /// Sets the numbers of names, by those that the commands have.
    pub(crate) fn named(mut self, names: Vec<u32>) -> Run {
        self.names = Some(names);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.from >= self.storage.len()
    }

    pub(crate) fn in_memory(&self) -> usize {
        match &self.storage {
            Storage::Memory(commands) => commands.len() - self.from,
            Storage::File(..) => 0,
        }
    }

    /// When the first command was queued.
    pub(crate) fn first(&self) -> u64 {
        self.blocks.first().map_or(u64::MAX, |block| block.0)
    }

    pub(crate) fn points(&self) -> &[(i64, u64)] {
        &self.points
    }

    /// When the first commands of blocks were queued that are left, before a time.
    pub(crate) fn blocks_before(&self, until: u64) -> impl Iterator<Item = u64> + '_ {
        let left = self.blocks.iter().skip(self.from.div_ceil(BLOCK));
        left.map(|block| block.0)
            .take_while(move |first| *first < until)
    }

    /// Takes the commands that were queued before a time.
    pub(crate) fn take(&mut self, until: u64) -> Option<Stretch> {
        let full = self.blocks.partition_point(|block| block.0 < until);
        // The cut is in the block before.
        let begin = full.saturating_sub(1) * BLOCK;
        let end = (full * BLOCK).min(self.storage.len());
        let mut block = Vec::with_capacity(BLOCK);
        self.storage.read(begin..end, &mut block);
        let to = begin + block.partition_point(|command| command.queued < until);
        if to <= self.from {
            return None;
        }
        let range = std::mem::replace(&mut self.from, to)..to;
        let late = (range.start / BLOCK..full).filter(|at| self.blocks[*at].1 > until);
        let mut beyond = Vec::new();
        for at in late {
            let part = (at * BLOCK).max(range.start)..((at + 1) * BLOCK).min(range.end);
            self.storage.read(part, &mut beyond);
        }
        beyond.retain(|command| command.end > until);
        let mut stretch = Stretch {
            storage: self.storage.clone(),
            range,
            names: self.names.clone(),
            beyond: Vec::new(),
        };
        beyond.iter_mut().for_each(|command| stretch.name(command));
        stretch.beyond = beyond;
        Some(stretch)
    }
}

/// Some ends of calls, and until when commands of calls until then were queued.
fn points(commands: &Blocks) -> Vec<(i64, u64)> {
    let limits = limits(commands);
    let mut parts: Vec<Option<(i64, u64)>> = vec![None; limits.len() + 1];
    for Placed { exit, queued, .. } in commands.iter() {
        let part = limits.partition_point(|limit| limit < exit);
        let (last, latest) = parts[part].unwrap_or((*exit, *queued));
        parts[part] = Some((last.max(*exit), latest.max(*queued)));
    }
    let mut until = 0;
    let parts = parts.into_iter().flatten();
    let point = parts.map(|(exit, latest)| {
        until = until.max(latest);
        (exit, until)
    });
    point.collect()
}

/// Times that divide the ends of calls into about [`POINTS`] parts of equal size: some ends, sorted.
fn limits(commands: &Blocks) -> Vec<i64> {
    let step = commands.len().div_ceil(8 * POINTS).max(1);
    let mut some: Vec<i64> = commands.iter().step_by(step).map(|of| of.exit).collect();
    some.sort_unstable();
    let step = some.len().div_ceil(POINTS).max(1);
    let limits = some.into_iter().skip(step).step_by(step);
    limits.collect()
}

/// Commands that were taken from a run.
#[derive(Debug)]
pub(crate) struct Stretch {
    storage: Storage,
    range: Range<usize>,
    names: Option<Vec<u32>>,
    /// Those that end after the time of the cut.
    pub(crate) beyond: Vec<Placed>,
}

impl Stretch {
    fn name(&self, command: &mut Placed) {
        if let Some(names) = &self.names {
            let name = names.get(command.name as usize);
            command.name = name.copied().unwrap_or(0);
        }
    }

    /// Number of commands.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Appends the commands to a list.
    pub(crate) fn read(&self, to: &mut Vec<Placed>) {
        let before = to.len();
        self.storage.read(self.range.clone(), to);
        let own = to.iter_mut().skip(before);
        own.for_each(|command| self.name(command));
    }
}
