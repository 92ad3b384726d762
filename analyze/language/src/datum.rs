//! Values of fields, detached from the event records that contained them.

use std::cmp::Ordering;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use serde::{Deserialize, Serialize};

use crate::ast::Operator;
use crate::glob::Glob;

/// Longest text in bytes that is stored inline; names of threads have at most 15.
const SHORT: usize = 22;

/// The value of a field. Integers of all 64-bit classes are exact. Equality is that of groups: the
/// same kind and the same bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Datum {
    /// The event record does not have the field.
    #[default]
    Missing,
    /// A whole number.
    Integer(i128),
    /// Bits of a floating-point number.
    Float(u64),
    /// Text of at most 22 bytes: its length, and the bytes.
    Short(u8, [u8; SHORT]),
    /// Longer text.
    Long(Box<[u8]>),
}

impl Datum {
    /// Stores short text inline.
    pub fn text(bytes: &[u8]) -> Datum {
        let mut short = [0; SHORT];
        match short.get_mut(..bytes.len()) {
            Some(start) => {
                start.copy_from_slice(bytes);
                Datum::Short(bytes.len() as u8, short)
            }
            None => Datum::Long(bytes.into()),
        }
    }

    /// Stores the bits of `number`.
    pub fn float(number: f64) -> Datum {
        Datum::Float(number.to_bits())
    }

    /// True if there is no value.
    pub fn is_missing(&self) -> bool {
        matches!(self, Datum::Missing)
    }

    /// The bytes of a text; `None` for other kinds.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Datum::Short(length, bytes) => bytes.get(..usize::from(*length)),
            Datum::Long(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether the comparison holds. A missing value, and text compared with a number, satisfy no
    /// operator, not even `!=`.
    pub fn compares(&self, operator: Operator, other: &Datum) -> bool {
        let ordering = match (self, other) {
            (Datum::Integer(a), Datum::Integer(b)) => Some(a.cmp(b)),
            (Datum::Integer(a), Datum::Float(b)) => exactly(*a, f64::from_bits(*b)),
            (Datum::Float(a), Datum::Integer(b)) => {
                exactly(*b, f64::from_bits(*a)).map(Ordering::reverse)
            }
            (Datum::Float(a), Datum::Float(b)) => {
                f64::from_bits(*a).partial_cmp(&f64::from_bits(*b))
            }
            (a, b) => match (a.bytes(), b.bytes()) {
                (Some(a), Some(b)) => Some(a.cmp(b)),
                _ => return false,
            },
        };
        // NaN compares with nothing.
        ordering.map_or(operator == Operator::NotEqual, |ordering| {
            operator.holds(ordering)
        })
    }

    /// Whether the value is text that matches.
    pub fn matches(&self, pattern: &Glob) -> bool {
        self.bytes().is_some_and(|bytes| pattern.matches(bytes))
    }

    /// A hash that is equal for values that compare as equal, and the same in each run. `None` for
    /// values that equal nothing: missing ones and NaN.
    pub fn key(&self) -> Option<u64> {
        match self {
            Datum::Missing => None,
            Datum::Integer(number) => {
                Some(mix(*number as u64) ^ mix((*number >> 64) as u64 ^ 0x5bd1))
            }
            Datum::Float(bits) => {
                let number = f64::from_bits(*bits);
                if number.is_nan() {
                    None
                } else if number.fract() == 0.0 {
                    // The value may equal an integer; beyond the greatest integer the conversion
                    // saturates.
                    Datum::Integer(number as i128).key()
                } else {
                    Some(mix(*bits))
                }
            }
            text => {
                let hasher = BuildHasherDefault::<DefaultHasher>::default();
                Some(hasher.hash_one(text.bytes()))
            }
        }
    }
}

/// The finalizer of MurmurHash3: each input bit affects all output bits.
fn mix(mut bits: u64) -> u64 {
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits ^= bits >> 33;
    bits = bits.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}

/// Compares without rounding; `None` for NaN.
fn exactly(whole: i128, number: f64) -> Option<Ordering> {
    if number.is_nan() {
        return None;
    }
    // Integers of fields have 64 bits, so a number that saturates is beyond them all the same.
    let floor = number.floor();
    Some(whole.cmp(&(floor as i128)).then(if number > floor {
        Ordering::Less
    } else {
        Ordering::Equal
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact() {
        let big = Datum::Integer(i128::from(u64::MAX));
        assert!(big.compares(Operator::Equal, &Datum::Integer(i128::from(u64::MAX))));
        assert!(!big.compares(Operator::Equal, &Datum::Integer(i128::from(u64::MAX) - 1)));
        // As floating-point numbers the two would be equal.
        assert!(big.compares(Operator::Less, &Datum::float(u64::MAX as f64)));
        assert!(Datum::Integer(2).compares(Operator::Less, &Datum::float(2.5)));
        assert!(Datum::Integer(-2).compares(Operator::Greater, &Datum::float(-2.5)));
        assert!(Datum::float(2.0).compares(Operator::Equal, &Datum::Integer(2)));
    }

    #[test]
    fn what_is_missing_compares_with_nothing() {
        for operator in [Operator::Equal, Operator::NotEqual, Operator::Less] {
            assert!(!Datum::Missing.compares(operator, &Datum::Integer(0)));
            assert!(!Datum::Missing.compares(operator, &Datum::Missing));
            assert!(!Datum::text(b"0").compares(operator, &Datum::Integer(0)));
        }
        assert_eq!(Datum::Missing.key(), None);
    }

    #[test]
    fn equal_values_have_equal_keys() {
        let long = [b'x'; 100];
        for (a, b) in [
            (Datum::Integer(7), Datum::float(7.0)),
            (Datum::Integer(0), Datum::float(-0.0)),
            (Datum::Integer(1 << 63), Datum::float((1u64 << 63) as f64)),
            (Datum::text(b"comm"), Datum::text(b"comm")),
            (Datum::text(&long), Datum::text(&long)),
        ] {
            assert!(a.compares(Operator::Equal, &b), "{a:?} {b:?}");
            assert_eq!(a.key(), b.key(), "{a:?} {b:?}");
        }
        assert_ne!(Datum::text(&long).key(), Datum::text(&long[1..]).key());
        assert_ne!(Datum::Integer(1).key(), Datum::Integer(-1).key());
    }
}
