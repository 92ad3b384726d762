//! Futexes by number, in the order of first waits.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};
use tracebraid_follow::KeyHasher;

/// Addresses of futexes by number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<i64>", into = "Vec<i64>")]
pub(crate) struct Futexes {
    addresses: Vec<i64>,
    places: HashMap<i64, u32, BuildHasherDefault<KeyHasher>>,
}

impl Futexes {
    /// Number of an address; assigns one if it is new.
    pub(crate) fn place(&mut self, address: i64) -> u32 {
        let new = self.addresses.len() as u32;
        let place = *self.places.entry(address).or_insert(new);
        if place == new {
            self.addresses.push(address);
        }
        place
    }

    /// All addresses by number.
    pub(crate) fn addresses(&self) -> &[i64] {
        &self.addresses
    }
}

impl From<Vec<i64>> for Futexes {
    fn from(addresses: Vec<i64>) -> Self {
        let places = addresses.iter().copied().zip(0..).collect();
        Futexes { addresses, places }
    }
}

impl From<Futexes> for Vec<i64> {
    fn from(futexes: Futexes) -> Self {
        futexes.addresses
    }
}
