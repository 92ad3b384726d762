//! Evaluates integers, floating-point numbers, strings and enumerations from their attributes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::ast::*;
use super::error::{Res, error};
use super::scopes::Space;
use super::sema::Sema;
use super::types::{Ty, TyKind, TyRef};
use super::values;
use crate::schema::{
    ClockIndex, DisplayBase, Encoding, FieldClass, IntClass, IntRange, Mapping, Roles,
};

impl<'a> Sema<'a> {
    pub(super) fn integer(
        &mut self,
        index: IntegerIndex,
        spec: &IntegerSpec<'a>,
    ) -> Res<TyRef<'a>> {
        if let Some(Some(ty)) = self.integers.get(index) {
            return Ok(ty.clone());
        }
        let ty = self.new_integer(spec)?;
        if self.integers.len() <= index {
            self.integers.resize(index + 1, None);
        }
        if let Some(slot) = self.integers.get_mut(index) {
            *slot = Some(ty.clone());
        }
        Ok(ty)
    }

    fn new_integer(&mut self, spec: &IntegerSpec<'a>) -> Res<TyRef<'a>> {
        values::check_duplicates(spec.attrs.iter())?;
        let mut length = None;
        let mut align = None;
        let mut unknown_clock = None;
        let mut class = IntClass {
            length: 0,
            align: 1,
            byte_order: self.byte_order,
            reversed_bits: false,
            signed: false,
            base: DisplayBase::Decimal,
            encoding: None,
            clock: None,
            roles: Roles::NONE,
            is_enum: false,
            mappings: Arc::from([]),
        };
        for attr in &spec.attrs {
            match attr.key.text().as_ref() {
                "size" => {
                    let size = values::unsigned(attr)?;
                    match u32::try_from(size) {
                        Ok(size) if size > 0 => length = Some(size),
                        _ => {
                            return error(
                                values::plain(attr)?.at,
                                format!(
                                    "the size of an integer is at least 1 bit and less than 2^32 bits, not {size}"
                                ),
                            );
                        }
                    }
                }
                "align" => {
                    values::unsigned(attr)?;
                    align = Some(values::align(values::plain(attr)?)?);
                }
                "signed" => class.signed = values::boolean(attr)?,
                "byte_order" => class.byte_order = values::byte_order(attr, Some(self.byte_order))?,
                "base" => class.base = values::base(attr)?,
                "encoding" => class.encoding = values::encoding(attr)?,
                "map" => match self.mapped_clock(attr)? {
                    Ok(index) => class.clock = Some(index),
                    Err(name) => unknown_clock = Some(name),
                },
                _ => {}
            }
        }
        let Some(length) = length else {
            return error(
                spec.at,
                "this integer has no `size`: `integer { size = ...; }`",
            );
        };
        class.length = length;
        class.align = align.unwrap_or(if length.is_multiple_of(8) { 8 } else { 1 });
        Ok(Ty::int(class, unknown_clock))
    }

    /// The clock of `map = clock.NAME.value`, or its name if the clock does not exist.
    fn mapped_clock(&mut self, attr: &Attr<'a>) -> Res<Result<ClockIndex, Ident<'a>>> {
        let value = values::plain(attr)?;
        if let ValueKind::Path(path) = &value.kind
            && path.first.text == "clock"
            && let [name, property] = path.rest.as_slice()
            && property.text == "value"
        {
            let known = self.clock_names.get(name.text).copied();
            if known.is_none() {
                self.missed_clocks.insert(name.text);
            }
            return Ok(known.ok_or(*name));
        }
        error(value.at, "attribute `map` needs `clock.NAME.value`")
    }

    pub(super) fn float(&self, at: u32, attrs: &[Attr<'a>]) -> Res<TyRef<'a>> {
        values::check_duplicates(attrs.iter())?;
        let mut exponent = None;
        let mut mantissa = None;
        let mut align = 1;
        let mut byte_order = self.byte_order;
        for attr in attrs {
            match attr.key.text().as_ref() {
                "exp_dig" => exponent = Some(values::unsigned(attr)?),
                "mant_dig" => mantissa = Some(values::unsigned(attr)?),
                "align" => {
                    values::unsigned(attr)?;
                    align = values::align(values::plain(attr)?)?;
                }
                "byte_order" => byte_order = values::byte_order(attr, Some(self.byte_order))?,
                _ => {}
            }
        }
        let length = match (exponent, mantissa) {
            (Some(5), Some(11)) => 16,
            (Some(8), Some(24)) => 32,
            (Some(11), Some(53)) => 64,
            (Some(15), Some(113)) => 128,
            (None, _) => return error(at, "this floating-point number has no `exp_dig`"),
            (_, None) => return error(at, "this floating-point number has no `mant_dig`"),
            (Some(exponent), Some(mantissa)) => {
                return error(
                    at,
                    format!(
                        "`exp_dig` {exponent} with `mant_dig` {mantissa} is not an IEEE 754 format: expected 5 with 11, 8 with \
                         24, 11 with 53 or 15 with 113"
                    ),
                );
            }
        };
        Ok(Ty::leaf(FieldClass::Float {
            length,
            align,
            byte_order,
            reversed_bits: false,
        }))
    }

    pub(super) fn enumeration(&mut self, at: u32, spec: EnumSpec<'a>) -> Res<TyRef<'a>> {
        let Some(labels) = &spec.labels else {
            let name = spec.name.unwrap_or(Ident { text: "", at });
            return self.known(Space::Enum, at, name);
        };
        let (base_at, base) = match spec.base {
            Some(base) => (base.at, self.type_of(base)?),
            None => match self.scopes.find(Space::Alias, "int") {
                Some(int) => (at, int),
                None => {
                    return error(
                        at,
                        "an enumeration without an integer type is an `int`, and no type `int` is declared",
                    );
                }
            },
        };
        let TyKind::Int(base_class) = &base.kind else {
            return error(base_at, "the type of an enumeration must be an integer");
        };
        if base_class.is_enum {
            return error(
                base_at,
                "the type of an enumeration must be an integer, not another enumeration",
            );
        }
        let class = IntClass {
            is_enum: true,
            mappings: mappings(base_class, labels)?,
            ..IntClass::clone(base_class)
        };
        let ty = Ty::int(class, base.facts.unknown_clock);
        if let Some(name) = spec.name {
            self.declare(Space::Enum, Cow::Borrowed(name.text), name.at, ty.clone())?;
        }
        Ok(ty)
    }
}

pub(super) fn string<'a>(attrs: &[Attr<'a>]) -> Res<TyRef<'a>> {
    values::check_duplicates(attrs.iter())?;
    let mut encoding = Encoding::Utf8;
    for attr in attrs {
        if attr.key.is(&["encoding"]) {
            encoding = values::encoding(attr)?.unwrap_or_default();
        }
    }
    Ok(Ty::leaf(FieldClass::Str { encoding }))
}

/// Labels of an enumeration; labels of equal text are merged.
fn mappings(base: &IntClass, labels: &[Enumerator<'_>]) -> Res<Arc<[Mapping]>> {
    let (least, most) = match (base.length.min(100), base.signed) {
        (length, true) => (-(1i128 << (length - 1)), (1i128 << (length - 1)) - 1),
        (length, false) => (0, (1i128 << length) - 1),
    };
    let mut mappings: Vec<Mapping> = Vec::with_capacity(labels.len());
    let mut by_label: HashMap<&str, usize> = HashMap::new();
    let mut next = 0i128;
    for enumerator in labels {
        let (at, lower, upper) = match &enumerator.range {
            None => (enumerator.at, next, next),
            Some((lower, None)) => {
                let value = enumerator_value(lower)?;
                (lower.at, value, value)
            }
            Some((lower, Some(upper))) => {
                (lower.at, enumerator_value(lower)?, enumerator_value(upper)?)
            }
        };
        if lower > upper {
            return error(
                at,
                format!("this range is empty: {lower} is more than {upper}"),
            );
        }
        if lower < least || upper > most {
            let value = if lower < least { lower } else { upper };
            return error(
                at,
                format!(
                    "{value} does not fit the enumeration's integer ({} bits, {}): from {least} to {most}",
                    base.length,
                    if base.signed { "signed" } else { "unsigned" }
                ),
            );
        }
        next = upper + 1;
        let range = IntRange { lower, upper };
        let index = *by_label.entry(&enumerator.label).or_insert(mappings.len());
        match mappings.get_mut(index) {
            Some(mapping) => mapping.ranges.push(range),
            None => mappings.push(Mapping {
                label: enumerator.label.to_string(),
                ranges: vec![range],
            }),
        }
    }
    Ok(mappings.into())
}

fn enumerator_value(value: &Value<'_>) -> Res<i128> {
    match &value.kind {
        ValueKind::Int(int) => Ok(*int),
        _ => error(value.at, "the value of a label is an integer"),
    }
}
