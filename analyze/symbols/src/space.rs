//! Mapped files of a process over time.

use std::collections::BTreeMap;

use crate::Module;

/// Modules of a process at one time.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// By first address; modules do not overlap.
    modules: BTreeMap<u64, Module>,
}

impl AddressSpace {
    /// Maps a module, which replaces the covered parts of earlier modules.
    pub fn load(&mut self, module: Module) {
        if module.begin >= module.end {
            return;
        }
        self.unload(module.begin, module.end);
        self.modules.insert(module.begin, module);
    }

    /// Unmaps the addresses from `begin` to `end` (exclusive).
    pub fn unload(&mut self, begin: u64, end: u64) {
        let touched: Vec<u64> = self
            .modules
            .range(..end)
            .rev()
            .take_while(|(_, module)| module.end > begin)
            .map(|(&at, _)| at)
            .collect();
        for at in touched {
            let Some(module) = self.modules.remove(&at) else {
                continue;
            };
            if module.end > end {
                self.modules.insert(end, module.from(end));
            }
            if module.begin < begin {
                self.modules.insert(
                    at,
                    Module {
                        end: begin,
                        ..module
                    },
                );
            }
        }
    }

    /// The module at an address.
    pub fn module(&self, address: u64) -> Option<&Module> {
        let (_, module) = self.modules.range(..=address).next_back()?;
        (address < module.end).then_some(module)
    }

    /// All modules in ascending order of addresses.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placed;

    fn module(begin: u64, end: u64, path: &str) -> Module {
        Module {
            begin,
            end,
            placed: Placed::Part(0x1000),
            path: path.into(),
            build_id: None,
        }
    }

    fn parts(space: &AddressSpace) -> Vec<(u64, u64, u64, &str)> {
        let mut parts = Vec::new();
        for module in space.modules() {
            let path = module.path.to_str().unwrap();
            let Placed::Part(offset) = module.placed else {
                panic!("{module:?}");
            };
            parts.push((module.begin, module.end, offset, path));
        }
        parts
    }

    #[test]
    fn what_is_mapped_over_another_takes_its_place() {
        let mut space = AddressSpace::default();
        space.load(module(100, 200, "a"));
        space.load(module(140, 160, "b"));
        assert_eq!(
            parts(&space),
            [
                (100, 140, 0x1000, "a"),
                (140, 160, 0x1000, "b"),
                (160, 200, 0x1000 + 60, "a")
            ]
        );
        assert_eq!(space.module(139).unwrap().path.to_str(), Some("a"));
        assert_eq!(space.module(140).unwrap().path.to_str(), Some("b"));
        assert!(space.module(200).is_none() && space.module(99).is_none());
        space.unload(0, 150);
        assert_eq!(
            parts(&space),
            [(150, 160, 0x1000 + 10, "b"), (160, 200, 0x1000 + 60, "a")]
        );
        space.unload(0, u64::MAX);
        assert_eq!(parts(&space), []);
    }

    #[test]
    fn a_module_without_room_is_none() {
        let mut space = AddressSpace::default();
        space.load(module(7, 7, "a"));
        space.load(module(9, 8, "a"));
        assert_eq!(space.modules().count(), 0);
    }
}
