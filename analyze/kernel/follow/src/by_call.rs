//! Values by system call.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;

/// Values by system call, in the order of their first use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ByCall<T> {
    calls: Vec<Syscall>,
    /// Parallel to `calls`.
    values: Vec<T>,
    /// Likely index of a call, by its number modulo the length.
    #[serde(skip)]
    places: [u8; PLACES],
}

const PLACES: usize = 32;

impl<T> Default for ByCall<T> {
    fn default() -> Self {
        ByCall {
            calls: Vec::new(),
            values: Vec::new(),
            places: [0; PLACES],
        }
    }
}

impl<T: Default> ByCall<T> {
    /// The value of a call, which is added if it is new.
    #[inline]
    pub fn get(&mut self, call: Syscall) -> &mut T {
        let place = usize::from(call.0) % PLACES;
        let mut at = usize::from(self.places[place]);
        if self.calls.get(at) != Some(&call) {
            at = self.find(call);
            // Calls with larger indices are searched for.
            self.places[place] = u8::try_from(at).unwrap_or(u8::MAX);
        }
        &mut self.values[at]
    }

    fn find(&mut self, call: Syscall) -> usize {
        let at = self.calls.iter().position(|&known| known == call);
        at.unwrap_or_else(|| {
            self.calls.push(call);
            self.values.push(T::default());
            self.calls.len() - 1
        })
    }

    /// Merges all values of another instance, using `add`.
    pub fn merge(&mut self, other: &ByCall<T>, add: impl Fn(&mut T, &T)) {
        other
            .iter()
            .for_each(|(call, value)| add(self.get(call), value));
    }

    /// All calls and their values.
    pub fn into_entries(self) -> impl Iterator<Item = (Syscall, T)> {
        self.calls.into_iter().zip(self.values)
    }

    /// All calls and their values.
    pub fn iter(&self) -> impl Iterator<Item = (Syscall, &T)> {
        self.calls.iter().copied().zip(&self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_one_place_are_told_apart() {
        let mut counts: ByCall<u64> = ByCall::default();
        let calls = [3, 3 + PLACES as u16, 4, 3, 3 + PLACES as u16, 3];
        calls
            .iter()
            .for_each(|&call| *counts.get(Syscall(call)) += 1);
        let mut both = counts.clone();
        both.merge(&counts, |own, other| *own += other);
        let found: Vec<_> = both.iter().map(|(call, &count)| (call.0, count)).collect();
        assert_eq!(found, [(3, 6), (3 + PLACES as u16, 4), (4, 2)]);
    }
}
