//! Random values that fit their classes, each other, and the properties of the packet or event.

use super::Options;
use super::needs::{FieldPath, Need, Needs};
use crate::bits;
use crate::rng::Rng;
use crate::value::Value;
use tracebraid_ctf::schema::{
    Encoding, FieldClass, FieldLocation, IntClass, IntRange, Roles, Scope,
};

/// A field that was given a value.
struct Given {
    scope: Scope,
    path: Vec<u32>,
    value: i128,
}

/// Generates the values of one stream's packets and events.
pub(super) struct ValueMaker<'a> {
    pub(super) rng: &'a mut Rng,
    options: &'a Options,
    needs: &'a Needs,
    stream: usize,
    event: Option<usize>,
    scope: Scope,
    path: Vec<u32>,
    given: Vec<Given>,
}

impl<'a> ValueMaker<'a> {
    pub(super) fn new(
        rng: &'a mut Rng,
        options: &'a Options,
        needs: &'a Needs,
        stream: usize,
    ) -> Self {
        let (scope, path, given) = (Scope::PacketHeader, Vec::new(), Vec::new());
        ValueMaker {
            rng,
            options,
            needs,
            stream,
            event: None,
            scope,
            path,
            given,
        }
    }

    /// Starts a packet, which does not depend on earlier packets.
    pub(super) fn start_packet(&mut self) {
        self.given.clear();
        self.event = None;
    }

    /// Starts an event record of the class at index `class`.
    pub(super) fn start_event(&mut self, class: usize) {
        self.given
            .retain(|given| given.scope <= Scope::PacketContext);
        self.event = Some(class);
    }

    /// Values of a scope.
    pub(super) fn scope(&mut self, scope: Scope, class: Option<&FieldClass>) -> Option<Value> {
        self.scope = scope;
        self.path.clear();
        class.map(|class| self.field(class))
    }

    fn place(&self) -> FieldPath {
        FieldPath {
            stream: (self.scope != Scope::PacketHeader).then_some(self.stream),
            event: self.event.filter(|_| self.scope >= Scope::SpecificContext),
            scope: self.scope,
            path: self.path.clone(),
        }
    }

    fn inner(&mut self, index: usize, class: &FieldClass) -> Value {
        self.path.push(index as u32);
        let value = self.field(class);
        self.path.pop();
        value
    }

    fn lookup(&self, location: &FieldLocation) -> i128 {
        let is_it =
            |given: &&Given| given.scope == location.scope && location.paths.contains(&given.path);
        self.given
            .iter()
            .rev()
            .find(is_it)
            .map_or(0, |given| given.value)
    }

    fn field(&mut self, class: &FieldClass) -> Value {
        match class {
            FieldClass::Int(int) if int.length > 64 => self.wide(int.length),
            FieldClass::Int(int) => self.int(int, int.length),
            FieldClass::VarInt(int) => {
                let bits = self.rng.between(1, 64) as u32;
                self.int(int, bits)
            }
            FieldClass::Bool(_) => {
                let value = self.rng.chance(50);
                self.remember(i128::from(value));
                Value::Bool(value)
            }
            FieldClass::BitArray(int) | FieldClass::BitMap(int) => {
                Value::Bits(self.rng.next_u64() & bits::mask(int.length) as u64)
            }
            FieldClass::Float { length, .. } => self.float(*length),
            FieldClass::Str { encoding } => {
                let least = usize::from(self.options.babeltrace);
                let length = self.rng.below(9) as usize;
                Value::Str(self.text(length.max(least), *encoding))
            }
            FieldClass::StaticStr { length, encoding } => {
                let units = *length as usize / encoding.unit_bytes();
                let units = if self.rng.chance(50) {
                    units
                } else {
                    self.rng.below(units as u64 + 1) as usize
                };
                Value::Str(self.text_of_units(units, *encoding))
            }
            FieldClass::DynStr { length, encoding } => {
                let units = self.lookup(length) as usize / encoding.unit_bytes();
                Value::Str(self.text_of_units(units, *encoding))
            }
            FieldClass::StaticBlob { length, .. } => Value::Blob(self.bytes(*length)),
            FieldClass::DynBlob { length, .. } => {
                let length = self.lookup(length);
                Value::Blob(self.bytes(length as u64))
            }
            FieldClass::Array {
                element, length, ..
            } => self.elements(element, *length),
            FieldClass::Sequence {
                element, length, ..
            } => {
                let length = self.lookup(length);
                self.elements(element, length as u64)
            }
            FieldClass::Struct(class) => {
                let members = class.members.iter().enumerate();
                Value::Struct(
                    members
                        .map(|(index, member)| self.inner(index, &member.class))
                        .collect(),
                )
            }
            FieldClass::Variant(class) => {
                let selector = self.lookup(&class.selector);
                let is_selected =
                    |ranges: &[IntRange]| ranges.iter().any(|range| range.contains(selector));
                let option = class
                    .options
                    .iter()
                    .position(|option| is_selected(&option.ranges))
                    .unwrap_or(0);
                let value = self.inner(option, &class.options[option].class);
                Value::Variant {
                    option,
                    value: Box::new(value),
                }
            }
            FieldClass::Optional(class) => {
                let selector = self.lookup(&class.selector);
                let is_present = match &class.ranges {
                    None => selector != 0,
                    Some(ranges) => ranges.iter().any(|range| range.contains(selector)),
                };
                Value::Optional(is_present.then(|| Box::new(self.inner(0, &class.element))))
            }
        }
    }

    fn remember(&mut self, value: i128) {
        self.given.push(Given {
            scope: self.scope,
            path: self.path.clone(),
            value,
        });
    }

    fn int(&mut self, class: &IntClass, length: u32) -> Value {
        let half = 1i128 << (length - 1);
        let (low, high) = if class.signed {
            (-half, half - 1)
        } else {
            (0, 2 * half - 1)
        };
        let value = match self.needs.get(&self.place()) {
            Some(Need::Length { limit, unit }) => i128::from(self.rng.between(0, *limit) * unit),
            Some(Need::Select(ranges)) => self.in_ranges(ranges),
            None if class.is_enum && self.rng.chance(75) => {
                let ranges: Vec<IntRange> = class
                    .mappings
                    .iter()
                    .flat_map(|mapping| mapping.ranges.clone())
                    .collect();
                self.in_ranges(&ranges).clamp(low, high)
            }
            None => match self.rng.below(10) {
                0 => low,
                1 => high,
                2 | 3 => (i128::from(self.rng.below(5)) - 2).clamp(low, high),
                4 | 5 => i128::from(self.rng.sized(length)).clamp(low, high),
                _ => {
                    let raw = u128::from(self.rng.next_u64()) & bits::mask(length);
                    if class.signed {
                        bits::sign_extend(raw, length)
                    } else {
                        raw as i128
                    }
                }
            },
        };
        self.remember(value);
        if class.signed {
            Value::Int(value as i64)
        } else {
            Value::UInt(value as u64)
        }
    }

    /// An integer of more than 64 bits.
    fn wide(&mut self, length: u32) -> Value {
        let mut bytes = self.bytes(u64::from(length.div_ceil(8)));
        if let (Some(last), unused @ 1..) = (bytes.last_mut(), length.div_ceil(8) * 8 - length) {
            *last &= 0xff >> unused;
        }
        Value::Wide(bytes)
    }

    fn in_ranges(&mut self, ranges: &[IntRange]) -> i128 {
        let range = self.rng.pick(ranges);
        match self.rng.below(3) {
            0 => range.lower,
            1 => range.upper,
            _ => (range.lower + i128::from(self.rng.below(1000))).min(range.upper),
        }
    }

    fn float(&mut self, length: u32) -> Value {
        let bits = match (length, self.rng.below(4)) {
            (32, 0) => u128::from((self.rng.below(2_000_001) as f32 / 8.0 - 125_000.0).to_bits()),
            (64, 0 | 1) => {
                u128::from((self.rng.below(2_000_001) as f64 / 8.0 - 125_000.0).to_bits())
            }
            (32, 1) => u128::from(
                self.rng
                    .pick(&[0.0f32, -0.0, 1.0, f32::INFINITY, f32::MIN_POSITIVE])
                    .to_bits(),
            ),
            (64, 2) => u128::from(
                self.rng
                    .pick(&[0.0f64, -0.0, 1e300, f64::NEG_INFINITY, 0.1])
                    .to_bits(),
            ),
            _ => {
                ((u128::from(self.rng.next_u64()) << 64) | u128::from(self.rng.next_u64()))
                    & bits::mask(length)
            }
        };
        Value::Float { length, bits }
    }

    /// Text of `length` characters.
    fn text(&mut self, length: usize, encoding: Encoding) -> String {
        let is_ascii = encoding == Encoding::Utf8 && self.rng.chance(80);
        let printable = |rng: &mut Rng| char::from(rng.between(0x20, 0x7e) as u8);
        (0..length)
            .map(|_| match self.rng.below(5) {
                0 if !is_ascii => {
                    self.rng
                        .pick(&['é', 'ß', '→', '漢', '🦀', '\u{10ffff}', '\u{fffd}'])
                }
                1 if !self.options.babeltrace => {
                    self.rng.pick(&['\n', '\t', '\\', '"', '\u{1b}', '\u{7f}'])
                }
                _ => printable(self.rng),
            })
            .collect()
    }

    /// Text of exactly `units` code units.
    fn text_of_units(&mut self, units: usize, encoding: Encoding) -> String {
        let units_of = |c: char| match encoding {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16Be | Encoding::Utf16Le => c.len_utf16(),
            Encoding::Utf32Be | Encoding::Utf32Le => 1,
        };
        let mut text = String::new();
        let mut left = units;
        while left > 0 {
            let c = self
                .text(1, encoding)
                .chars()
                .next()
                .filter(|&c| units_of(c) <= left)
                .unwrap_or('x');
            left -= units_of(c);
            text.push(c);
        }
        text
    }

    fn bytes(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.rng.next_u64() as u8).collect()
    }

    fn elements(&mut self, element: &FieldClass, length: u64) -> Value {
        match element {
            FieldClass::Int(int) if int.encoding.is_some() => self.text_array(length, int.signed),
            element => Value::Array((0..length).map(|_| self.inner(0, element)).collect()),
        }
    }

    /// An array of characters: text, possibly followed by null characters.
    fn text_array(&mut self, length: u64, signed: bool) -> Value {
        let least = u64::from(self.options.babeltrace);
        let used = if self.rng.chance(50) {
            length
        } else {
            self.rng.between(least.min(length), length)
        };
        let mut element = |index: u64| {
            let byte = if index < used {
                self.rng.between(0x20, 0x7e)
            } else {
                0
            };
            if signed {
                Value::Int(byte as i64)
            } else {
                Value::UInt(byte)
            }
        };
        Value::Array((0..length).map(&mut element).collect())
    }
}

/// Sets all fields with roles, in any structure and selected option, to the value that `fact` gives
/// for the role. Returns false if a value does not fit its field.
pub(super) fn set_facts(
    class: &FieldClass,
    value: &mut Value,
    fact: &impl Fn(Roles) -> Option<u64>,
) -> bool {
    match (class, value) {
        (FieldClass::Int(int), value) => set_fact(int, int.length, value, fact),
        (FieldClass::VarInt(int), value) => set_fact(int, 64, value, fact),
        (FieldClass::Struct(class), Value::Struct(values)) => {
            let mut members = class.members.iter().zip(values);
            members.all(|(member, value)| set_facts(&member.class, value, fact))
        }
        (FieldClass::Variant(class), Value::Variant { option, value }) => class
            .options
            .get(*option)
            .is_some_and(|option| set_facts(&option.class, value, fact)),
        _ => true,
    }
}

fn set_fact(
    class: &IntClass,
    length: u32,
    value: &mut Value,
    fact: &impl Fn(Roles) -> Option<u64>,
) -> bool {
    let all = (0..16)
        .map(|bit| Roles(1 << bit))
        .filter(|role| class.roles.contains(*role));
    let Some((role, number)) = all.filter_map(|role| Some((role, fact(role)?))).next() else {
        return true;
    };
    let mask = bits::mask(length) as u64;
    // Only the clock's value may be truncated.
    let fits = number & mask == number || role == Roles::CLOCK_TIMESTAMP;
    *value = Value::UInt(number & mask);
    fits
}

/// Sets the UUID in a packet header.
pub(super) fn set_uuid(class: &FieldClass, value: &mut Value, uuid: &[u8; 16]) {
    match (class, value) {
        (FieldClass::StaticBlob { roles, .. }, Value::Blob(bytes))
            if roles.contains(Roles::METADATA_UUID) =>
        {
            *bytes = uuid.to_vec();
        }
        (FieldClass::Array { roles, .. }, Value::Array(bytes))
            if roles.contains(Roles::METADATA_UUID) =>
        {
            *bytes = uuid
                .iter()
                .map(|&byte| Value::UInt(u64::from(byte)))
                .collect();
        }
        (FieldClass::Struct(class), Value::Struct(values)) => {
            for (member, value) in class.members.iter().zip(values) {
                set_uuid(&member.class, value, uuid);
            }
        }
        _ => {}
    }
}
