//! Texts of a group of slices, and their numbers in the file.

use std::collections::HashMap;
use std::sync::Arc;

/// The texts of a group of slices.
#[derive(Debug, Default)]
pub(crate) struct GroupTexts {
    /// Distinct texts, by slice in which they first occur, and within a slice in its order.
    pub(crate) texts: Vec<String>,
    /// By slice: for each of its texts, the index in `texts`.
    pub(crate) places: Vec<Vec<u32>>,
}

impl GroupTexts {
    /// Merges the texts of slices.
    pub(crate) fn unite(of_slices: &[Vec<String>]) -> GroupTexts {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut texts: Vec<String> = Vec::new();
        let mut place = |text| {
            *known.entry(text).or_insert_with(|| {
                texts.push(text.to_owned());
                texts.len() as u32 - 1
            })
        };
        let places = of_slices
            .iter()
            .map(|of_slice| of_slice.iter().map(|text| place(text)).collect())
            .collect();
        GroupTexts { texts, places }
    }

    /// The texts of each slice, given the numbers of the group's texts in the file; the file
    /// contains `in_file` texts before.
    pub(crate) fn numbered(self, numbers: Vec<u64>, mut in_file: usize) -> Vec<SliceTexts> {
        let numbers: Arc<[u64]> = numbers.into();
        let texts = |places: Vec<u32>| {
            let of_slice = places
                .iter()
                .filter_map(|&place| numbers.get(place as usize));
            in_file = of_slice.fold(in_file, |most, &number| most.max(number as usize + 1));
            SliceTexts {
                places,
                numbers: numbers.clone(),
                in_file,
            }
        };
        self.places.into_iter().map(texts).collect()
    }
}

/// The texts of a slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SliceTexts {
    places: Vec<u32>,
    numbers: Arc<[u64]>,
    in_file: usize,
}

impl SliceTexts {
    /// Number of texts in the file up to and including those of the slice.
    pub(crate) fn in_file(&self) -> usize {
        self.in_file
    }

    /// The number in the file of the slice's text at an index.
    #[inline]
    pub(crate) fn number(&self, place: usize) -> Option<u64> {
        let place = *self.places.get(place)?;
        self.numbers.get(place as usize).copied()
    }

    /// The numbers in the file of all texts of the slice.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let number = |&place: &u32| self.numbers.get(place as usize).copied();
        self.places.iter().filter_map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_of_a_group_has_one_number() {
        let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let united = GroupTexts::unite(&[texts(&["b", "d"]), texts(&[]), texts(&["a", "b", "c"])]);
        assert_eq!(united.texts, ["b", "d", "a", "c"]);
        let slices = united.numbered(vec![5, 11, 2, 12], 11);
        let numbers: Vec<Vec<u64>> = slices.iter().map(SliceTexts::numbers).collect();
        assert_eq!(numbers, [vec![5, 11], vec![], vec![2, 5, 12]]);
        assert_eq!((slices[0].number(1), slices[0].number(2)), (Some(11), None));
        let in_file: Vec<usize> = slices.iter().map(SliceTexts::in_file).collect();
        assert_eq!(in_file, [12, 12, 13]);
    }
}
