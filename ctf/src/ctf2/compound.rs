//! Field classes that contain others: arrays, structures, optionals and variants.

use std::collections::HashSet;

use super::fault::{Fault, Result};
use super::field_class::{Aliases, COMMON, RawClass, RawKind, RawOption};
use super::json::Value;
use super::location::read_location;
use super::object::{Object, items_of, range_set, shown, string_of};
use crate::schema::IntRange;

pub(super) fn static_array(aliases: &Aliases, object: Object<'_>) -> Result<RawClass> {
    object.only(&[COMMON, &["element-field-class", "length", "minimum-alignment"]])?;
    let length = object.need_uint("length", 0, u64::MAX)?;
    let min_align = object.alignment("minimum-alignment")?;
    let element = aliases.read(object.need("element-field-class")?)?;
    RawClass::new(
        object.at,
        RawKind::Array {
            element,
            length,
            min_align,
        },
        None,
    )
}

pub(super) fn dynamic_array(aliases: &Aliases, object: Object<'_>) -> Result<RawClass> {
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
    let element = aliases.read(object.need("element-field-class")?)?;
    RawClass::new(
        object.at,
        RawKind::Sequence {
            element,
            length,
            min_align,
        },
        None,
    )
}

pub(super) fn structure(aliases: &Aliases, object: Object<'_>) -> Result<RawClass> {
    object.only(&[COMMON, &["member-classes", "minimum-alignment"]])?;
    let min_align = object.alignment("minimum-alignment")?;
    let items = match object.get("member-classes") {
        Some(value) => items_of(value, "member-classes")?,
        None => &[],
    };
    let mut names = HashSet::new();
    let mut members = Vec::new();
    for item in items {
        let member = Object::of(item, "structure member class")?;
        member.only(&[&["attributes", "extensions", "field-class", "name"]])?;
        let name_value = member.need("name")?;
        let name = string_of(name_value, "name")?;
        if !names.insert(name) {
            let message = format!("duplicate structure member name `{}`", shown(name));
            return Err(Fault::new(name_value.at, message));
        }
        members.push((name.into(), aliases.read(member.need("field-class")?)?));
    }
    RawClass::new(object.at, RawKind::Struct { min_align, members }, None)
}

pub(super) fn optional(aliases: &Aliases, object: Object<'_>) -> Result<RawClass> {
    object.only(&[
        COMMON,
        &["field-class", "selector-field-location", "selector-field-ranges"],
    ])?;
    let selector = read_location(object.need("selector-field-location")?)?;
    let ranges = object
        .get("selector-field-ranges")
        .map(selector_ranges)
        .transpose()?;
    let element = aliases.read(object.need("field-class")?)?;
    RawClass::new(
        object.at,
        RawKind::Optional {
            selector,
            ranges,
            element,
        },
        None,
    )
}

pub(super) fn variant(aliases: &Aliases, object: Object<'_>) -> Result<RawClass> {
    object.only(&[COMMON, &["options", "selector-field-location"]])?;
    let selector = read_location(object.need("selector-field-location")?)?;
    let value = object.need("options")?;
    let items = items_of(value, "options")?;
    if items.is_empty() {
        return Err(Fault::new(value.at, "`options`: expecting at least one option"));
    }
    let mut names = HashSet::new();
    let mut options = Vec::new();
    let mut places = Vec::new();
    for item in items {
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
            && !names.insert(name.clone())
        {
            let message = format!("duplicate variant option name `{}`", shown(name));
            return Err(Fault::new(value.at, message));
        }
        let ranges_value = option.need("selector-field-ranges")?;
        let ranges = selector_ranges(ranges_value)?;
        places.push(ranges_value.at);
        options.push(RawOption {
            name,
            ranges,
            class: aliases.read(option.need("field-class")?)?,
        });
    }
    check_disjoint(&options, &places)?;
    RawClass::new(object.at, RawKind::Variant { selector, options }, None)
}

fn selector_ranges(value: &Value) -> Result<Vec<IntRange>> {
    range_set(
        value,
        "selector-field-ranges",
        i128::from(i64::MIN),
        i128::from(u64::MAX),
    )
}

/// Checks that no value selects two options; `places` are those of the options' ranges.
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
    // The ranges of one option are disjoint by now: any two that overlap are of two options.
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
