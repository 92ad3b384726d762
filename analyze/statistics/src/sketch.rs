//! A mergeable sketch of a distribution.

use serde::{Deserialize, Serialize};

/// Bits of a value below the highest bit that determine its bucket.
const BITS: u32 = 6;

/// Number of values of about each size.
///
/// Each value below 128 has its own bucket; greater values share a bucket if their highest seven
/// bits are equal (the log-linear histogram of HdrHistogram). Thus the relative error of a quantile
/// is at most 1/128, at most 3,776 buckets exist, and merged sketches equal the sketch of all
/// values.
///
/// Reports keep a sketch for each of many groups, most of which have few values. Few buckets are
/// kept in a list; many are kept for direct access in blocks of the size of a cache line.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sketch {
    /// Non-empty buckets in ascending order, with the number of values in each; empty if blocks are
    /// used.
    few: Vec<Bucket>,
    /// By the high bits of a bucket: 1 + index of its block, or 0 without a block.
    places: Vec<u16>,
    /// Number of values in each bucket of a block.
    blocks: Vec<[u64; BUCKETS]>,
}

/// The bucket in the highest 16 bits, and its number of values in the other bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Bucket(u64);

impl Bucket {
    const COUNT_BITS: u32 = 48;
    const MOST: u64 = (1 << Self::COUNT_BITS) - 1;

    fn new(number: u16, count: u64) -> Bucket {
        Bucket(u64::from(number) << Self::COUNT_BITS | count)
    }

    fn number(self) -> u16 {
        (self.0 >> Self::COUNT_BITS) as u16
    }

    fn count(self) -> u64 {
        self.0 & Self::MOST
    }

    /// Adds to the number of values, if the sum fits.
    fn add(&mut self, count: u64) -> bool {
        let fits = count <= Self::MOST - self.count();
        if fits {
            self.0 += count;
        }
        fits
    }
}

/// Maximum number of buckets in the list.
const FEW: usize = 24;
/// Number of buckets of a block.
const BUCKETS: usize = 8;

/// Number of the bucket's block, and index in the block.
#[inline]
fn split(bucket: u16) -> (usize, usize) {
    let bucket = usize::from(bucket);
    (bucket / BUCKETS, bucket % BUCKETS)
}

/// Bucket of a value.
#[inline]
fn bucket(value: u64) -> u16 {
    let shift = (u64::BITS - 1 - BITS).saturating_sub((value | 1).leading_zeros());
    ((shift << BITS) + (value >> shift) as u32) as u16
}

/// Middle of a bucket, rounded down.
fn middle(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket >> BITS).saturating_sub(1);
    let low = (bucket - (shift << BITS)) << shift;
    low + ((1 << shift) >> 1)
}

impl PartialEq for Sketch {
    fn eq(&self, other: &Sketch) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Sketch {}

impl Sketch {
    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        let (block, at) = split(bucket);
        let place = self
            .places
            .get(block)
            .map_or(0, |&place| usize::from(place));
        match self.blocks.get_mut(place.wrapping_sub(1)) {
            Some(counts) => counts[at] += 1,
            None => self.add_many(bucket, 1),
        }
    }

    /// Adds `count` values of one bucket.
    fn add_many(&mut self, bucket: u16, count: u64) {
        if self.blocks.is_empty() {
            match self.few.binary_search_by_key(&bucket, |few| few.number()) {
                Ok(at) if self.few[at].add(count) => return,
                Err(at) if self.few.len() < FEW && count <= Bucket::MOST => {
                    return self.few.insert(at, Bucket::new(bucket, count));
                }
                _ => {}
            }
        }
        // The list is full, cannot hold so large a number, or was replaced by blocks earlier.
        self.leave_list();
        let (block, at) = split(bucket);
        self.block(block)[at] += count;
    }

    /// The block with a number; creates it if it does not exist.
    fn block(&mut self, number: usize) -> &mut [u64; BUCKETS] {
        if number >= self.places.len() {
            self.places.resize(number + 1, 0);
        }
        let place = &mut self.places[number];
        if *place == 0 {
            self.blocks.push([0; BUCKETS]);
            // At most 472 blocks exist.
            *place = self.blocks.len() as u16;
        }
        &mut self.blocks[usize::from(*place) - 1]
    }

    /// Adds the values of another sketch.
    pub fn merge(&mut self, other: &Sketch) {
        for bucket in &other.few {
            self.add_many(bucket.number(), bucket.count());
        }
        if other.blocks.is_empty() {
            return;
        }
        self.leave_list();
        for (number, theirs) in other.numbered_blocks() {
            let own = self.block(number);
            own.iter_mut()
                .zip(theirs)
                .for_each(|(own, count)| *own += count);
        }
    }

    /// Blocks with their numbers.
    fn numbered_blocks(&self) -> impl Iterator<Item = (usize, &[u64; BUCKETS])> {
        let block = |(number, &place): (usize, &u16)| {
            let at = usize::from(place).checked_sub(1)?;
            Some((number, self.blocks.get(at)?))
        };
        self.places.iter().enumerate().filter_map(block)
    }

    /// Moves the list to blocks.
    fn leave_list(&mut self) {
        for bucket in std::mem::take(&mut self.few) {
            let (block, at) = split(bucket.number());
            self.block(block)[at] += bucket.count();
        }
    }

    /// Non-empty buckets in ascending order, with the number of values in each.
    fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let many = self.numbered_blocks().flat_map(|(number, block)| {
            let counts = block.iter().enumerate().filter(|(_, count)| **count > 0);
            counts.map(move |(at, &count)| ((number * BUCKETS + at) as u16, count))
        });
        let few = self
            .few
            .iter()
            .map(|bucket| (bucket.number(), bucket.count()));
        few.chain(many)
    }

    /// A value of each non-empty bucket in ascending order, with the number of values in it.
    pub fn middles(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.iter().map(|(bucket, count)| (middle(bucket), count))
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    /// The value that `thousandths` thousandths of the values do not exceed (nearest rank), with a
    /// relative error of at most 1/128; `None` without values.
    pub fn quantile(&self, thousandths: u64) -> Option<u64> {
        let [quantile] = self.quantiles([thousandths]);
        quantile
    }

    /// [`Sketch::quantile`] for several thousandths, in ascending order, in one pass.
    pub fn quantiles<const N: usize>(&self, thousandths: [u64; N]) -> [Option<u64>; N] {
        let count = u128::from(self.count());
        let rank = |thousandths: u64| {
            (count * u128::from(thousandths.min(1000)))
                .div_ceil(1000)
                .max(1)
        };
        let mut buckets = self.iter();
        let (mut passed, mut last) = (0u128, None);
        thousandths.map(|thousandths| {
            while passed < rank(thousandths) {
                let (bucket, count) = buckets.next()?;
                passed += u128::from(count);
                last = Some(bucket);
            }
            last.map(middle)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(127), 127);
        assert_eq!(bucket(128), 128);
        assert_eq!(bucket(u64::MAX), 3775);
        let mut last = 0;
        for exponent in 0..64 {
            for value in [
                1u64 << exponent,
                (1u64 << exponent) + ((1u64 << exponent) >> 1),
            ] {
                assert!(bucket(value) >= last);
                last = bucket(value);
                assert_eq!(bucket(middle(last)), last);
            }
        }
    }

    #[test]
    fn counts_that_no_list_holds_are_kept() {
        let mut sketch = Sketch::default();
        sketch.add_many(5, Bucket::MOST);
        sketch.add_many(6, 1);
        assert_eq!(sketch.few.len(), 2);
        sketch.add_many(5, 1);
        sketch.add_many(7, Bucket::MOST + 1);
        assert!(sketch.few.is_empty());
        let found: Vec<_> = sketch.iter().collect();
        assert_eq!(
            found,
            [(5, Bucket::MOST + 1), (6, 1), (7, Bucket::MOST + 1)]
        );
    }

    proptest! {
        #[test]
        fn quantiles_err_by_a_128th_at_most(
            mut values in prop::collection::vec((0u32..64).prop_flat_map(|bits| 0..=u64::MAX >> bits), 1..200),
            thousandths in 0u64..=1000,
        ) {
            let mut sketch = Sketch::default();
            values.iter().for_each(|&value| sketch.add(value));
            values.sort_unstable();
            let rank = (values.len() as u64 * thousandths).div_ceil(1000).max(1);
            let exact = values[rank as usize - 1];
            let found = sketch.quantile(thousandths).unwrap();
            prop_assert!(found.abs_diff(exact) <= exact / 128, "{found} for {exact}");
        }

        #[test]
        fn merging_is_adding_all(
            a in prop::collection::vec(any::<u64>(), 0..50),
            b in prop::collection::vec(0u64..1000, 0..50),
        ) {
            let of = |values: &[u64]| {
                let mut sketch = Sketch::default();
                values.iter().for_each(|&value| sketch.add(value));
                sketch
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged.count(), (a.len() + b.len()) as u64);
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }
}
