//! A request of SQLite to a table: a range of keys, and the columns that the query uses.
//!
//! SQLite passes the conditions on the key when it plans a query and their values when it runs the
//! query; in between it keeps a text ([`Plan`]). SQLite checks each condition again, so the range
//! may be too wide but never too narrow.

use std::fmt;

use rusqlite::types::ValueRef;

/// Requested rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Least key.
    pub(crate) from: i64,
    /// Greatest key; less than `from` if no row is wanted.
    pub(crate) to: i64,
    /// Used columns by bit; the last bit stands for all columns from 63 on.
    columns: u64,
}

/// A condition on the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Bound {
    pub(crate) const ALL: [Bound; 5] = [
        Bound::Equal,
        Bound::Less,
        Bound::AtMost,
        Bound::Greater,
        Bound::AtLeast,
    ];

    fn letter(self) -> char {
        match self {
            Bound::Equal => '=',
            Bound::Less => '<',
            Bound::AtMost => 'm',
            Bound::Greater => '>',
            Bound::AtLeast => 'l',
        }
    }

    fn of(letter: char) -> Option<Bound> {
        Bound::ALL
            .into_iter()
            .find(|bound| bound.letter() == letter)
    }
}

/// The part of a request that is known when SQLite plans the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Used columns, by bit.
    pub(crate) columns: u64,
    /// Conditions on the key, in the order in which their values follow.
    pub(crate) bounds: Vec<Bound>,
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:x}:", self.columns)?;
        self.bounds
            .iter()
            .try_for_each(|bound| write!(out, "{}", bound.letter()))
    }
}

impl Plan {
    /// Reads the text that `Display` writes; any other text means all columns and no conditions.
    pub(crate) fn parse(text: &str) -> Plan {
        let parsed = text.split_once(':').and_then(|(columns, bounds)| {
            let bounds: Option<Vec<Bound>> = bounds.chars().map(Bound::of).collect();
            Some(Plan {
                columns: u64::from_str_radix(columns, 16).ok()?,
                bounds: bounds?,
            })
        });
        parsed.unwrap_or(Plan {
            columns: u64::MAX,
            bounds: Vec::new(),
        })
    }

    /// The request with the values of its conditions.
    pub(crate) fn asked<'v>(&self, values: impl IntoIterator<Item = ValueRef<'v>>) -> Asked {
        let mut asked = Asked {
            from: i64::MIN,
            to: i64::MAX,
            columns: self.columns,
        };
        for (bound, value) in self.bounds.iter().zip(values) {
            asked.narrow(*bound, value);
        }
        asked
    }
}

impl Asked {
    pub(crate) fn wants(&self, column: usize) -> bool {
        self.columns >> column.min(63) & 1 == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.from > self.to
    }

    fn nothing(&mut self) {
        (self.from, self.to) = (i64::MAX, i64::MIN);
    }

    fn narrow(&mut self, bound: Bound, value: ValueRef<'_>) {
        let whole = match value {
            // No comparison with NULL is true.
            ValueRef::Null => return self.nothing(),
            ValueRef::Integer(whole) => Some(whole),
            // The cast saturates, so numbers out of range become the least or the greatest integer.
            ValueRef::Real(number) if number.fract() == 0.0 => Some(number as i64),
            ValueRef::Real(number) => {
                match bound {
                    Bound::Equal => self.nothing(),
                    Bound::Less | Bound::AtMost => self.to = self.to.min(number.floor() as i64),
                    Bound::Greater | Bound::AtLeast => {
                        self.from = self.from.max(number.ceil() as i64)
                    }
                }
                return;
            }
            // SQLite decides how texts and blobs compare with numbers.
            ValueRef::Text(_) | ValueRef::Blob(_) => None,
        };
        let Some(whole) = whole else { return };
        let is_exact = matches!(value, ValueRef::Integer(_));
        match bound {
            Bound::Equal => {
                self.from = self.from.max(whole);
                self.to = self.to.min(whole);
            }
            Bound::AtMost => self.to = self.to.min(whole),
            Bound::AtLeast => self.from = self.from.max(whole),
            Bound::Less => match whole.checked_sub(i64::from(is_exact)) {
                Some(most) => self.to = self.to.min(most),
                None => self.nothing(),
            },
            Bound::Greater => match whole.checked_add(i64::from(is_exact)) {
                Some(least) => self.from = self.from.max(least),
                None => self.nothing(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holds(bound: Bound, key: i64, value: f64) -> bool {
        let key = key as f64;
        match bound {
            Bound::Equal => key == value,
            Bound::Less => key < value,
            Bound::AtMost => key <= value,
            Bound::Greater => key > value,
            Bound::AtLeast => key >= value,
        }
    }

    proptest! {
        /// The range contains all keys for which the conditions hold; with integers it contains no
        /// others.
        #[test]
        fn ranges_are_never_too_narrow(
            bounds in prop::collection::vec((prop::sample::select(&Bound::ALL), -6i64..6, 0u8..3), 0..4),
        ) {
            let value = |(_, whole, kind): &(Bound, i64, u8)| match kind {
                0 => (*whole as f64, ValueRef::Integer(*whole)),
                1 => (*whole as f64, ValueRef::Real(*whole as f64)),
                _ => (*whole as f64 + 0.5, ValueRef::Real(*whole as f64 + 0.5)),
            };
            let plan = Plan { columns: 5, bounds: bounds.iter().map(|of| of.0).collect() };
            let plan = Plan::parse(&plan.to_string());
            let asked = plan.asked(bounds.iter().map(|of| value(of).1));
            let all_whole = bounds.iter().all(|of| of.2 == 0);
            for key in -9..9 {
                let is_wanted = bounds.iter().all(|of| holds(of.0, key, value(of).0));
                let is_within = asked.from <= key && key <= asked.to;
                prop_assert!(is_within || !is_wanted, "{key} {asked:?}");
                prop_assert!(is_wanted || !is_within || !all_whole, "{key} {asked:?}");
            }
        }

        #[test]
        fn plans_are_read_as_they_are_written(columns: u64, bounds in prop::collection::vec(prop::sample::select(&Bound::ALL), 0..9)) {
            let plan = Plan { columns, bounds };
            prop_assert_eq!(Plan::parse(&plan.to_string()), plan);
        }
    }

    #[test]
    fn ends_of_all_numbers_do_not_overflow() {
        let asked = |bound, value| {
            Plan {
                columns: 0,
                bounds: vec![bound],
            }
            .asked([value])
        };
        assert!(asked(Bound::Greater, ValueRef::Integer(i64::MAX)).is_empty());
        assert!(asked(Bound::Less, ValueRef::Integer(i64::MIN)).is_empty());
        assert!(asked(Bound::Equal, ValueRef::Null).is_empty());
        assert!(asked(Bound::Equal, ValueRef::Real(0.5)).is_empty());
        assert_eq!(asked(Bound::AtMost, ValueRef::Real(1e300)).to, i64::MAX);
        assert_eq!(asked(Bound::AtLeast, ValueRef::Real(-1e300)).from, i64::MIN);
        assert_eq!(asked(Bound::AtLeast, ValueRef::Text(b"5")).from, i64::MIN);
    }
}
