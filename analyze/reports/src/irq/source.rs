//! Sources of handlers: interrupts, softirqs, and the functions that softirqs call.

use crate::irq::IrqOptions;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::softirq_name;

use tracebraid_follow::KeyHasher;

/// Kinds of handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum HandlerKind {
    /// A device interrupt.
    Irq,
    /// An x86 interrupt vector with a handler of its own.
    Vector,
    /// An interrupt from another CPU.
    Ipi,
    Softirq,
    Tasklet,
    /// The function of a high-resolution timer.
    Hrtimer,
    /// The function of a timer of the timer wheel.
    Timer,
}

impl HandlerKind {
    /// The name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            HandlerKind::Irq => "irq",
            HandlerKind::Vector => "vector",
            HandlerKind::Ipi => "ipi",
            HandlerKind::Softirq => "softirq",
            HandlerKind::Tasklet => "tasklet",
            HandlerKind::Hrtimer => "hrtimer",
            HandlerKind::Timer => "timer",
        }
    }

    /// True for hardware interrupts.
    pub(super) fn is_hard(self) -> bool {
        matches!(
            self,
            HandlerKind::Irq | HandlerKind::Vector | HandlerKind::Ipi
        )
    }
}

/// Kind and number of a source. The number is that of the interrupt or of the softirq vector, or
/// the address of the function; for a source with a name only, a hash of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) trace: u32,
    pub(super) kind: HandlerKind,
    pub(super) number: i64,
}

impl Hash for Key {
    /// Numbers usually differ even where traces and kinds do not, so one write suffices.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let rest = u64::from(self.trace) << 8 | self.kind as u64;
        state.write_u64(self.number as u64 ^ rest.rotate_right(16));
    }
}

impl Key {
    /// The key of a source's bounds for the second pass, which learns names too late to use them.
    pub(super) fn group(self, what: &str) -> String {
        format!("{} {} {} {what}", self.trace, self.kind.name(), self.number)
    }
}

/// A number for a name (FNV-1a).
pub(super) fn number_of(name: &[u8]) -> i64 {
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    name.iter().fold(0xCBF2_9CE4_8422_2325, hash) as i64
}

/// A source of handlers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) key: Key,
    /// Names of the handlers, sorted: several may share an interrupt.
    names: Vec<Vec<u8>>,
}

/// Maximum number of names of one source; the alphabetically first are kept.
const NAMES: usize = 8;

impl Source {
    /// Records the name of a handler.
    fn learn(&mut self, name: &[u8]) {
        if let Err(at) = self
            .names
            .binary_search_by(|known| known.as_slice().cmp(name))
            && at < NAMES
        {
            self.names.insert(at, name.to_owned());
            self.names.truncate(NAMES);
        }
    }

    /// The number, for interrupts and softirqs.
    pub(super) fn number(&self) -> Option<i64> {
        let has_one = matches!(self.key.kind, HandlerKind::Irq | HandlerKind::Softirq);
        has_one.then_some(self.key.number)
    }

    /// The names of the handlers, or the number.
    pub(super) fn name(&self) -> String {
        let Key { kind, number, .. } = self.key;
        match kind {
            HandlerKind::Softirq => {
                softirq_name(number).map_or_else(|| number.to_string(), str::to_owned)
            }
            HandlerKind::Tasklet | HandlerKind::Hrtimer | HandlerKind::Timer => {
                format!("{number:#x}")
            }
            HandlerKind::Irq | HandlerKind::Vector | HandlerKind::Ipi => {
                let names = self.names.iter().map(|name| String::from_utf8_lossy(name));
                names.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// A unique name.
    pub(super) fn label(&self) -> String {
        let kind = self.key.kind.name();
        match self.number().filter(|_| self.key.kind == HandlerKind::Irq) {
            Some(number) => format!("{kind} {number} {}", self.name()),
            None => format!("{kind} {}", self.name()),
        }
    }

    /// True if the options select the source.
    pub(super) fn is_chosen(&self, options: &IrqOptions) -> bool {
        let (hard, soft) = (&options.interrupts, &options.softirqs);
        if hard.is_empty() && soft.is_empty() {
            return true;
        }
        let globs = if self.key.kind == HandlerKind::Softirq {
            soft
        } else {
            hard
        };
        let called = self.called();
        globs
            .iter()
            .any(|glob| called.iter().any(|name| glob.matches(name.as_bytes())))
    }

    /// All names that patterns may match: the name, the number, the name of each handler.
    pub(super) fn called(&self) -> Vec<String> {
        let number = self.number().map(|number| number.to_string());
        let handlers = self
            .names
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned());
        std::iter::once(self.name())
            .chain(number)
            .chain(handlers)
            .collect()
    }
}

/// All sources, in the order of their first events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sources {
    list: Vec<Source>,
    #[serde(skip)]
    index: HashMap<Key, usize, BuildHasherDefault<KeyHasher>>,
    /// By the lowest bits of a number: index of the last source used with these bits.
    #[serde(skip)]
    near: [usize; NEAR],
}

const NEAR: usize = 16;

impl Sources {
    /// The index of a source; records the handler's name if the event has one.
    #[inline]
    pub(super) fn place(&mut self, key: Key, name: Option<&[u8]>) -> usize {
        let near = key.number as usize % NEAR;
        let mut place = self.near[near];
        if self.list.get(place).is_none_or(|source| source.key != key) {
            place = self.find(key);
            self.near[near] = place;
        }
        if let (Some(name), Some(source)) = (name, self.list.get_mut(place)) {
            source.learn(name);
        }
        place
    }

    /// The index of a source; adds it if it is new.
    fn find(&mut self, key: Key) -> usize {
        if self.index.len() != self.list.len() {
            // Deserialized: the index is not stored.
            let places = self.list.iter().enumerate();
            self.index = places.map(|(at, source)| (source.key, at)).collect();
        }
        *self.index.entry(key).or_insert_with(|| {
            let names = Vec::new();
            self.list.push(Source { key, names });
            self.list.len() - 1
        })
    }

    pub(super) fn at(&self, place: usize) -> Option<&Source> {
        self.list.get(place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Source> {
        self.list.iter()
    }

    /// Adds later sources. Returns the new index of each.
    pub(super) fn merge(&mut self, later: Sources) -> Vec<usize> {
        let place = |source: Source| {
            let place = self.place(source.key, None);
            for name in &source.names {
                self.place(source.key, Some(name));
            }
            place
        };
        later.list.into_iter().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_language::glob::Glob;

    use super::*;

    const KEY: Key = Key {
        trace: 0,
        kind: HandlerKind::Irq,
        number: 26,
    };

    #[test]
    fn names_do_not_depend_on_the_order_in_which_they_came() {
        let name = |number: usize| format!("name{number:02}").into_bytes();
        let mut up = Sources::default();
        for number in 0..20 {
            up.place(KEY, Some(&name(number)));
        }
        let mut down = Sources::default();
        for number in (0..20).rev() {
            down.place(KEY, Some(&name(number)));
        }
        assert_eq!(up.list[0].name(), down.list[0].name());
        assert!(up.list[0].name().starts_with("name00, name01, "));
        assert_eq!(up.list[0].names.len(), NAMES);
        let mut other = Sources::default();
        other.place(Key { number: 1, ..KEY }, Some(b"one"));
        assert_eq!(other.merge(up), [1]);
    }

    #[test]
    fn numbers_and_names_choose() {
        let mut sources = Sources::default();
        sources.place(KEY, Some(b"virtio1-req.1"));
        let softirq = Key {
            kind: HandlerKind::Softirq,
            number: 3,
            ..KEY
        };
        sources.place(softirq, None);
        let chosen = |irqs: &[&str], softirqs: &[&str]| -> Vec<bool> {
            let globs = |names: &[&str]| names.iter().map(|name| Glob::new(name)).collect();
            let options = IrqOptions {
                interrupts: globs(irqs),
                softirqs: globs(softirqs),
                ..IrqOptions::default()
            };
            sources
                .iter()
                .map(|source| source.is_chosen(&options))
                .collect()
        };
        assert_eq!(chosen(&[], &[]), [true, true]);
        assert_eq!(chosen(&["26"], &[]), [true, false]);
        assert_eq!(chosen(&["virtio*"], &["NET_*"]), [true, true]);
        assert_eq!(chosen(&[], &["3"]), [false, true]);
        assert_eq!(chosen(&["3"], &["1"]), [false, false]);
    }
}
