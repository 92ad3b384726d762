//! Texts of a group of slices, and their numbers among those of the file.

use std::sync::Arc;

/// The texts of a group of slices.
#[derive(Debug, Default)]
pub(crate) struct GroupTexts {
    /// In order, none twice.
    pub(crate) texts: Vec<String>,
    /// By slice: of each of its texts, the place among these.
    pub(crate) places: Vec<Vec<u32>>,
}

impl GroupTexts {
    /// Of the texts of each slice.
    pub(crate) fn unite(of_slices: &[Vec<String>]) -> GroupTexts {
        let mut texts: Vec<&String> = of_slices.iter().flatten().collect();
        texts.sort_unstable();
        texts.dedup();
        let place = |text: &String| texts.binary_search(&text).unwrap_or_default() as u32;
        let places = of_slices
            .iter()
            .map(|of_slice| of_slice.iter().map(place).collect())
            .collect();
        GroupTexts {
            texts: texts.into_iter().cloned().collect(),
            places,
        }
    }

    /// The texts of each slice, with the numbers of the group's.
    pub(crate) fn numbered(self, numbers: Vec<u64>) -> Vec<SliceTexts> {
        let numbers: Arc<[u64]> = numbers.into();
        let texts = |places| SliceTexts {
            places,
            numbers: numbers.clone(),
        };
        self.places.into_iter().map(texts).collect()
    }
}

/// The texts of a slice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SliceTexts {
    places: Vec<u32>,
    numbers: Arc<[u64]>,
}

impl SliceTexts {
    /// The number in the file of its text at that place.
    #[inline]
    pub(crate) fn number(&self, place: usize) -> Option<u64> {
        let place = *self.places.get(place)?;
        self.numbers.get(place as usize).copied()
    }

    /// All of them.
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
        assert_eq!(united.texts, ["a", "b", "c", "d"]);
        let slices = united.numbered(vec![10, 11, 12, 13]);
        let numbers: Vec<Vec<u64>> = slices.iter().map(SliceTexts::numbers).collect();
        assert_eq!(numbers, [vec![11, 13], vec![], vec![10, 11, 12]]);
        assert_eq!((slices[0].number(1), slices[0].number(2)), (Some(13), None));
    }
}
