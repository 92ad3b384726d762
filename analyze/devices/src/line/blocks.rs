//! Commands in blocks.

use std::ops::Range;

use super::placed::Placed;
use super::run::BLOCK;

/// Commands in a block. A larger one would be a mapping of its own, whose pages the kernel zeroes
/// each time (`tracebraid-allocator`).
const LENGTH: usize = 128 * BLOCK;

/// A list of commands that grows without moving them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    /// All but the last have [`LENGTH`] commands.
    blocks: Vec<Vec<Placed>>,
}

impl Blocks {
    pub(crate) fn push(&mut self, command: Placed) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < LENGTH => last.push(command),
            // The first block may be the only one, with few commands.
            last => {
                let capacity = if last.is_some() { LENGTH } else { 0 };
                let mut block = Vec::with_capacity(capacity);
                block.push(command);
                self.blocks.push(block);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        let before = self.blocks.len().saturating_sub(1) * LENGTH;
        before + self.blocks.last().map_or(0, Vec::len)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Placed> {
        self.blocks.iter().flatten()
    }

    /// Parts of [`BLOCK`] commands, and a shorter last one.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[Placed]> {
        self.blocks.iter().flat_map(|block| block.chunks(BLOCK))
    }

    /// Appends the commands of a range to a list.
    pub(crate) fn read(&self, range: Range<usize>, to: &mut Vec<Placed>) {
        let mut begin = range.start;
        while begin < range.end {
            let first = begin / LENGTH * LENGTH;
            let end = range.end.min(first + LENGTH);
            let block = self.blocks.get(begin / LENGTH);
            let part = block.and_then(|block| block.get(begin - first..end - first));
            to.extend_from_slice(part.unwrap_or_default());
            begin = end;
        }
    }

    /// The same commands in order.
    pub(crate) fn sorted(&self) -> Blocks {
        // Numbers are faster to sort than commands; indexes make them differ.
        let keys = (0_u32..).zip(self.iter());
        let mut keys: Vec<u128> = keys
            .map(|(index, command)| u128::from(command.queued) << 32 | u128::from(index))
            .collect();
        keys.sort_unstable();
        let of = |key: &u128| {
            let index = *key as u32 as usize;
            self.blocks
                .get(index / LENGTH)
                .and_then(|block| block.get(index % LENGTH))
        };
        let mut sorted = Blocks::default();
        for equal in keys.chunk_by_mut(|one, next| one >> 32 == next >> 32) {
            equal.sort_unstable_by_key(|key| of(key));
            let commands = equal.iter().filter_map(of);
            commands.for_each(|command| sorted.push(*command));
        }
        sorted
    }
}

impl From<Vec<Placed>> for Blocks {
    fn from(commands: Vec<Placed>) -> Blocks {
        let mut blocks = Blocks::default();
        commands
            .into_iter()
            .for_each(|command| blocks.push(command));
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn commands_are_sorted_and_read_across_blocks() {
        let command = |number: u64| Placed {
            queued: number * 7919 % 5000,
            submit: number * 31 % 17,
            start: 0,
            end: 0,
            ready: 0,
            entry: 0,
            exit: number as i64,
            queue: 0,
            process: 0,
            tid: 0,
            name: 0,
            kind: Kind::Kernel,
        };
        let mut plain: Vec<Placed> = (0..3 * LENGTH as u64 - 5).map(command).collect();
        let sorted = Blocks::from(plain.clone()).sorted();
        plain.sort();
        assert_eq!(sorted.len(), plain.len());
        for range in [0..1, 0..plain.len(), LENGTH - 1..2 * LENGTH + 1, 7..7] {
            let mut read = Vec::new();
            sorted.read(range.clone(), &mut read);
            assert_eq!(read, plain[range]);
        }
        let parts: Vec<Placed> = sorted.parts().flatten().copied().collect();
        assert_eq!(parts, plain);
    }
}
