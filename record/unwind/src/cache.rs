//! Rules by address.

use crate::rule::Rule;

/// Call sites that are remembered: the hot code of a machine has fewer.
const SLOTS: usize = 1 << 15;

/// An address in the file of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) module: u32,
    pub(crate) address: u64,
}

/// A table in which a new rule replaces the one at its slot.
#[derive(Debug)]
pub(crate) struct Cache {
    slots: Vec<(Site, Rule)>,
}

impl Cache {
    pub(crate) fn new() -> Cache {
        Cache {
            slots: vec![(Site::default(), Rule::NONE); SLOTS],
        }
    }

    fn slot(site: Site) -> usize {
        let mixed =
            (site.address ^ u64::from(site.module) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - SLOTS.trailing_zeros())) as usize
    }

    #[inline]
    pub(crate) fn get(&self, site: Site) -> Option<Rule> {
        let &(found, rule) = self.slots.get(Self::slot(site))?;
        (found == site && rule != Rule::NONE).then_some(rule)
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill((Site::default(), Rule::NONE));
    }

    pub(crate) fn put(&mut self, site: Site, rule: Rule) {
        if let Some(slot) = self.slots.get_mut(Self::slot(site)) {
            *slot = (site, rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_found_by_its_site_only() {
        let mut cache = Cache::new();
        let site = |address| Site { module: 1, address };
        assert_eq!(cache.get(Site::default()), None);
        cache.put(site(7), Rule::FRAME_POINTER);
        assert_eq!(cache.get(site(7)), Some(Rule::FRAME_POINTER));
        assert_eq!(cache.get(site(8)), None);
        assert_eq!(
            cache.get(Site {
                module: 2,
                address: 7
            }),
            None
        );
        let other = (8..)
            .map(site)
            .find(|&other| Cache::slot(other) == Cache::slot(site(7)));
        let other = other.unwrap();
        cache.put(other, Rule::SIGNAL);
        assert_eq!(
            (cache.get(site(7)), cache.get(other)),
            (None, Some(Rule::SIGNAL))
        );
    }
}
