//! Field classes that contain others: arrays, structures, optionals and variants.
//!
//! Their parts are field classes too, so each is read in steps: its own properties, then each part
//! in turn, then the result.

use std::collections::HashSet;
use std::slice::Iter;
use std::sync::Arc;

use super::fault::{Fault, Result};
use super::field_class::{COMMON, Read};
use super::json::Value;
use super::location::{Location, read_location};
use super::object::{Object, items_of, range_set, shown, string_of};
use super::raw::{RawClass, RawKind, RawOption};
use crate::schema::{IntRange, Name};

/// A field class, some of whose parts have been read.
pub(super) struct Partial<'v> {
    at: usize,
    parts: Parts<'v>,
}

enum Parts<'v> {
    /// A single part: not read yet, or read completely.
    One(One, Option<&'v Value>, Option<Arc<RawClass>>),
    Members(Members<'v>),
    Options(Options<'v>),
}

/// Kinds with a single part.
enum One {
    Array {
        length: u64,
        min_align: u32,
    },
    Sequence {
        length: Location,
        min_align: u32,
    },
    Optional {
        selector: Location,
        ranges: Option<Vec<IntRange>>,
    },
}

struct Members<'v> {
    min_align: u32,
    left: Iter<'v, Value>,
    names: HashSet<&'v str>,
    /// Name of the member that is being read.
    name: &'v str,
    read: Vec<(Name, Arc<RawClass>)>,
}

struct Options<'v> {
    selector: Location,
    left: Iter<'v, Value>,
    names: HashSet<Name>,
    /// Name and ranges of the option that is being read.
    next: (Option<Name>, Vec<IntRange>),
    read: Vec<RawOption>,
    /// Byte offsets of the ranges of the options.
    places: Vec<usize>,
}

impl<'v> Partial<'v> {
    /// The next part to read.
    pub(super) fn next(&mut self) -> Result<Option<&'v Value>> {
        match &mut self.parts {
            Parts::One(_, left, _) => Ok(left.take()),
            Parts::Members(members) => members.next(),
            Parts::Options(options) => options.next(),
        }
    }

    /// Adds the part that `next` returned.
    pub(super) fn add(&mut self, class: Arc<RawClass>) {
        match &mut self.parts {
            Parts::One(_, _, read) => *read = Some(class),
            Parts::Members(members) => members.read.push((members.name.into(), class)),
            Parts::Options(options) => {
                let (name, ranges) = std::mem::take(&mut options.next);
                options.read.push(RawOption {
                    name,
                    ranges,
                    class,
                });
            }
        }
    }

    /// The field class with all its parts.
    pub(super) fn finish(self) -> Result<RawClass> {
        let kind = match self.parts {
            Parts::One(one, _, element) => {
                let Some(element) = element else {
                    return Err(Fault::new(self.at, "a field class lacks its element"));
                };
                one.of(element)
            }
            Parts::Members(members) => RawKind::Struct {
                min_align: members.min_align,
                members: members.read,
            },
            Parts::Options(options) => {
                check_disjoint(&options.read, &options.places)?;
                RawKind::Variant {
                    selector: options.selector,
                    options: options.read,
                }
            }
        };
        RawClass::new(self.at, kind, None)
    }
}

impl One {
    fn of(self, element: Arc<RawClass>) -> RawKind {
        match self {
            One::Array { length, min_align } => RawKind::Array {
                element,
                length,
                min_align,
            },
            One::Sequence { length, min_align } => RawKind::Sequence {
                element,
                length,
                min_align,
            },
            One::Optional { selector, ranges } => RawKind::Optional {
                selector,
                ranges,
                element,
            },
        }
    }
}

impl<'v> Members<'v> {
    fn next(&mut self) -> Result<Option<&'v Value>> {
        let Some(item) = self.left.next() else {
            return Ok(None);
        };
        let member = Object::of(item, "structure member class")?;
        member.only(&[&["attributes", "extensions", "field-class", "name"]])?;
        let name_value = member.need("name")?;
        self.name = string_of(name_value, "name")?;
        if !self.names.insert(self.name) {
            let message = format!("duplicate structure member name `{}`", shown(self.name));
            return Err(Fault::new(name_value.at, message));
        }
        member.need("field-class").map(Some)
    }
}

impl<'v> Options<'v> {
    fn next(&mut self) -> Result<Option<&'v Value>> {
        let Some(item) = self.left.next() else {
            return Ok(None);
        };
        let option = Object::of(item, "variant option")?;
        option.only(&[&[
            "attributes",
            "extensions",
            "field-class",
            "name",
            "selector-field-ranges",
        ]])?;
        let name = option.name("name")?;
        if let (Some(name), Some(value)) = (&name, option.get("name"))
            && !self.names.insert(name.clone())
        {
            let message = format!("duplicate variant option name `{}`", shown(name));
            return Err(Fault::new(value.at, message));
        }
        let ranges = option.need("selector-field-ranges")?;
        self.next = (name, selector_ranges(ranges)?);
        self.places.push(ranges.at);
        option.need("field-class").map(Some)
    }
}

fn one<'v>(object: Object<'v>, one: One, part: &str) -> Result<Read<'v>> {
    let part = object.need(part)?;
    Ok(Read::Open(Partial {
        at: object.at,
        parts: Parts::One(one, Some(part), None),
    }))
}

pub(super) fn static_array(object: Object<'_>) -> Result<Read<'_>> {
    object.only(&[
        COMMON,
        &["element-field-class", "length", "minimum-alignment"],
    ])?;
    let length = object.need_uint("length", 0, u64::MAX)?;
    let min_align = object.alignment("minimum-alignment")?;
    one(
        object,
        One::Array { length, min_align },
        "element-field-class",
    )
}

pub(super) fn dynamic_array(object: Object<'_>) -> Result<Read<'_>> {
    object.only(&[
        COMMON,
        &[
            "element-field-class",
            "length-field-location",
            "minimum-alignment",
        ],
    ])?;
    let length = read_location(object.need("length-field-location")?)?;
    let min_align = object.alignment("minimum-alignment")?;
    one(
        object,
        One::Sequence { length, min_align },
        "element-field-class",
    )
}

pub(super) fn optional(object: Object<'_>) -> Result<Read<'_>> {
    object.only(&[
        COMMON,
        &[
            "field-class",
            "selector-field-location",
            "selector-field-ranges",
        ],
    ])?;
    let selector = read_location(object.need("selector-field-location")?)?;
    let ranges = object
        .get("selector-field-ranges")
        .map(selector_ranges)
        .transpose()?;
    one(object, One::Optional { selector, ranges }, "field-class")
}

pub(super) fn structure(object: Object<'_>) -> Result<Read<'_>> {
    object.only(&[COMMON, &["member-classes", "minimum-alignment"]])?;
    let min_align = object.alignment("minimum-alignment")?;
    let items = match object.get("member-classes") {
        Some(value) => items_of(value, "member-classes")?,
        None => &[],
    };
    Ok(Read::Open(Partial {
        at: object.at,
        parts: Parts::Members(Members {
            min_align,
            left: items.iter(),
            names: HashSet::new(),
            name: "",
            read: Vec::new(),
        }),
    }))
}

pub(super) fn variant(object: Object<'_>) -> Result<Read<'_>> {
    object.only(&[COMMON, &["options", "selector-field-location"]])?;
    let selector = read_location(object.need("selector-field-location")?)?;
    let value = object.need("options")?;
    let items = items_of(value, "options")?;
    if items.is_empty() {
        return Err(Fault::new(
            value.at,
            "`options`: expecting at least one option",
        ));
    }
    Ok(Read::Open(Partial {
        at: object.at,
        parts: Parts::Options(Options {
            selector,
            left: items.iter(),
            names: HashSet::new(),
            next: (None, Vec::new()),
            read: Vec::new(),
            places: Vec::new(),
        }),
    }))
}

fn selector_ranges(value: &Value) -> Result<Vec<IntRange>> {
    range_set(
        value,
        "selector-field-ranges",
        i128::from(i64::MIN),
        i128::from(u64::MAX),
    )
}

/// Checks that no value selects two options; `places` are the byte offsets of the options' ranges.
fn check_disjoint(options: &[RawOption], places: &[usize]) -> Result<()> {
    let mut ranges: Vec<(IntRange, usize)> = options
        .iter()
        .enumerate()
        .flat_map(|(index, option)| {
            merged(&option.ranges)
                .into_iter()
                .map(move |range| (range, index))
        })
        .collect();
    ranges.sort_by_key(|(range, index)| (range.lower, *index));
    // The ranges of each option are disjoint by now, so two ranges that overlap belong to two
    // options.
    for pair in ranges.windows(2) {
        if let [(first, one), (second, other)] = pair
            && second.lower <= first.upper
        {
            let message = format!(
                "the selector ranges of variant options #{} and #{} overlap at {}",
                one.min(other) + 1,
                one.max(other) + 1,
                second.lower
            );
            let at = places.get(*one.max(other)).copied().unwrap_or_default();
            return Err(Fault::new(at, message));
        }
    }
    Ok(())
}

/// The same set of integers as disjoint ranges in ascending order.
fn merged(ranges: &[IntRange]) -> Vec<IntRange> {
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|range| range.lower);
    let mut merged: Vec<IntRange> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.lower <= last.upper => last.upper = last.upper.max(range.upper),
            _ => merged.push(range),
        }
    }
    merged
}
