//! Random field classes.

use super::Options;
use super::names::Names;
use super::needs::{Candidate, CandidateKind, Need, Needs};
use crate::rng::Rng;
use std::sync::Arc;
use tracebraid_ctf::schema::{
    ByteOrder, CtfVersion, DisplayBase, Encoding, FieldClass, FieldLocation, IntClass, IntRange,
    Mapping, Member, Name, OptionalClass, Roles, Scope, StructClass, VariantClass, VariantOption,
};

/// Deepest nesting of random classes.
const MAX_DEPTH: usize = 4;

/// A slot for a structure member: a given member, or a random one.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Given(Member),
    Random,
}

/// Generates field classes, one scope after another, and tracks dependencies between fields.
pub(super) struct FieldMaker<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) options: &'a Options,
    /// Byte order of fields that are not whole bytes at byte boundaries.
    pub(super) native: ByteOrder,
    /// Only whole bytes, since the stream's packets do not record the end of their content.
    pub(super) only_bytes: bool,
    pub(super) needs: Needs,
    pub(super) candidates: Vec<Candidate>,
    pub(super) stream: Option<usize>,
    pub(super) event: Option<usize>,
    scope: Scope,
    path: Vec<u32>,
    names: Names,
}

impl<'a> FieldMaker<'a> {
    pub(super) fn new(rng: &'a mut Rng, options: &'a Options, native: ByteOrder) -> Self {
        FieldMaker {
            rng,
            options,
            native,
            only_bytes: false,
            needs: Needs::default(),
            candidates: Vec::new(),
            stream: None,
            event: None,
            scope: Scope::PacketHeader,
            path: Vec::new(),
            names: Names::default(),
        }
    }

    fn is_ctf2(&self) -> bool {
        self.options.version == CtfVersion::V2_0
    }

    /// A scope's root structure.
    pub(super) fn root(&mut self, scope: Scope, slots: Vec<Slot>) -> FieldClass {
        self.scope = scope;
        self.path.clear();
        self.names = Names::new(!self.is_ctf2());
        for slot in &slots {
            if let Slot::Given(member) = slot {
                self.names.reserve(&member.name);
            }
        }
        self.structure(slots)
    }

    fn structure(&mut self, slots: Vec<Slot>) -> FieldClass {
        let mut members = Vec::new();
        for (index, slot) in slots.into_iter().enumerate() {
            self.path.push(index as u32);
            members.push(match slot {
                Slot::Given(member) => member,
                Slot::Random => self.member(),
            });
            self.path.pop();
        }
        let min_align = if self.rng.chance(25) {
            self.rng.pick(&[8, 16, 32, 64])
        } else {
            1
        };
        FieldClass::Struct(Arc::new(StructClass { min_align, members }))
    }

    fn member(&mut self) -> Member {
        let name = self.names.fresh(self.rng);
        let class = match self.rng.below(100) {
            0..15 => self.length(),
            15..27 => self.selector(),
            27..55 if !self.candidates.is_empty() => self.dependent(),
            _ => self.field(true),
        };
        let name = name.into();
        Member { name, class }
    }

    /// Any class; `may_be_array` is false for elements of CTF 1.8 arrays.
    fn field(&mut self, may_be_array: bool) -> FieldClass {
        let is_deep = self.path.len() >= MAX_DEPTH;
        match self.rng.below(if self.is_ctf2() { 130 } else { 100 }) {
            0..2 if !self.is_ctf2() && !self.options.babeltrace => {
                FieldClass::Int(Arc::new(self.wide_int()))
            }
            0..35 => FieldClass::Int(Arc::new(self.random_int())),
            35..45 => self.enumeration(),
            45..57 => self.float(),
            57..70 => FieldClass::Str {
                encoding: self.encoding(),
            },
            70..82 if !is_deep => {
                let count = self.rng.below(4);
                self.structure(vec![Slot::Random; count as usize])
            }
            82..100 if !is_deep && (may_be_array || self.is_ctf2()) => self.array(),
            100..105 => FieldClass::Bool(Arc::new(self.int_class(false))),
            105..110 => FieldClass::BitArray(Arc::new(self.int_class(false))),
            110..114 => self.bit_map(),
            114..120 => {
                let signed = self.rng.chance(50);
                FieldClass::VarInt(Arc::new(self.variable_int(signed)))
            }
            120..125 => {
                let encoding = self.encoding();
                let length = self.rng.below(6) * encoding.unit_bytes() as u64;
                FieldClass::StaticStr { length, encoding }
            }
            125..130 => FieldClass::StaticBlob {
                length: self.rng.below(9),
                media_type: self.rng.chance(30).then(|| "image/png".into()),
                roles: Roles::NONE,
            },
            _ => FieldClass::Int(Arc::new(self.random_int())),
        }
    }

    fn encoding(&mut self) -> Encoding {
        if !self.is_ctf2() || self.rng.chance(60) {
            return Encoding::Utf8;
        }
        self.rng.pick(&[
            Encoding::Utf16Be,
            Encoding::Utf16Le,
            Encoding::Utf32Be,
            Encoding::Utf32Le,
        ])
    }

    /// Length, alignment and byte order: whole bytes in any order, or any bits in the native order.
    fn layout(&mut self, lengths: &[u32]) -> (u32, u32, ByteOrder) {
        let length = self.rng.pick(lengths);
        if self.only_bytes || self.rng.chance(40) {
            let length = length.next_multiple_of(8).min(64);
            let align = self.rng.pick(&[8, 8, 8, 16, 32, 64]);
            return (
                length,
                align,
                self.rng.pick(&[ByteOrder::Little, ByteOrder::Big]),
            );
        }
        (
            length,
            self.rng.pick(&[1, 1, 1, 1, 2, 4, 8, 16, 32, 64]),
            self.native,
        )
    }

    fn int_class(&mut self, signed: bool) -> IntClass {
        let lengths: Vec<u32> = (1..=64)
            .chain([8, 16, 32, 64, 8, 16, 32, 64, 64, 32])
            .collect();
        let (length, align, byte_order) = self.layout(&lengths);
        IntClass {
            length,
            align,
            byte_order,
            reversed_bits: self.is_ctf2() && self.rng.chance(15),
            signed,
            base: DisplayBase::Decimal,
            encoding: None,
            clock: None,
            roles: Roles::NONE,
            is_enum: false,
            mappings: Arc::from([]),
        }
    }

    /// More than 64 bits: CTF 1.8 only.
    fn wide_int(&mut self) -> IntClass {
        let class = self.random_int();
        let length = self.rng.between(65, 200) as u32;
        let length = if class.length.is_multiple_of(8) && class.align >= 8 {
            length.next_multiple_of(8)
        } else {
            length
        };
        IntClass { length, ..class }
    }

    fn random_int(&mut self) -> IntClass {
        let signed = self.rng.chance(50);
        let base = self.rng.pick(&[
            DisplayBase::Decimal,
            DisplayBase::Decimal,
            DisplayBase::Binary,
            DisplayBase::Octal,
            DisplayBase::Hexadecimal,
        ]);
        IntClass {
            base,
            ..self.int_class(signed)
        }
    }

    fn variable_int(&mut self, signed: bool) -> IntClass {
        IntClass {
            length: 64,
            align: 8,
            byte_order: ByteOrder::Little,
            reversed_bits: false,
            ..self.int_class(signed)
        }
    }

    fn float(&mut self) -> FieldClass {
        let lengths: &[u32] = if self.is_ctf2() {
            &[16, 32, 64, 128]
        } else {
            &[32, 64]
        };
        let length = self.rng.pick(lengths);
        let (_, align, byte_order) = self.layout(&[8]);
        FieldClass::Float {
            length,
            align,
            byte_order,
            reversed_bits: self.is_ctf2() && self.rng.chance(10),
        }
    }

    fn bit_map(&mut self) -> FieldClass {
        let class = self.int_class(false);
        let mut mappings = Vec::new();
        for flag in 0..self.rng.between(1, 4) {
            let lower = i128::from(self.rng.below(u64::from(class.length)));
            let ranges = vec![IntRange {
                lower,
                upper: lower,
            }];
            mappings.push(Mapping {
                label: format!("flag {flag}"),
                ranges,
            });
        }
        FieldClass::BitMap(Arc::new(IntClass {
            mappings: mappings.into(),
            ..class
        }))
    }

    fn enumeration(&mut self) -> FieldClass {
        let (class, _) = self.mapped_int(false);
        FieldClass::Int(Arc::new(class))
    }

    /// An enumeration, and its labels with non-overlapping ranges.
    ///
    /// `plain_labels`: only identifiers, as required for options of variants.
    fn mapped_int(&mut self, plain_labels: bool) -> (IntClass, Vec<Mapping>) {
        let signed = self.rng.chance(40);
        let class = self.int_class(signed);
        let half = 1i128 << (class.length - 1);
        let (low, high) = if signed {
            (-half, half - 1)
        } else {
            (0, 2 * half - 1)
        };
        let mut mappings: Vec<Mapping> = Vec::new();
        // Starts low, near zero, or close to the end.
        let mut next = low.max(self.rng.pick(&[low, -2, 0, high - 7]));
        for number in 0..self.rng.between(1, 5) {
            if next > high {
                break;
            }
            let upper = (next + i128::from(self.rng.pick(&[0u64, 0, 1, 5, 1 << 20]))).min(high);
            let range = IntRange { lower: next, upper };
            next = upper + 1 + i128::from(self.rng.below(3));
            let again = self.rng.below(5) as usize;
            match mappings.get_mut(again) {
                Some(mapping) if self.rng.chance(50) => mapping.ranges.push(range),
                _ => {
                    let label = match self.rng.below(8) {
                        0 if !plain_labels => format!("with space {number}"),
                        1 if !plain_labels => format!("\"quoted\\{number}\""),
                        _ => format!("LABEL_{number}"),
                    };
                    mappings.push(Mapping {
                        label,
                        ranges: vec![range],
                    });
                }
            }
        }
        // The order of the labels must not matter.
        if self.rng.chance(20) {
            mappings.reverse();
        }
        let class = IntClass {
            is_enum: true,
            mappings: mappings.clone().into(),
            ..class
        };
        (class, mappings)
    }

    fn array(&mut self) -> FieldClass {
        let length = self.rng.below(5).max(u64::from(self.options.babeltrace));
        let min_align = self.array_align();
        let element = Arc::new(self.element());
        FieldClass::Array {
            element,
            length,
            min_align,
            roles: Roles::NONE,
        }
    }

    fn array_align(&mut self) -> u32 {
        if self.is_ctf2() && self.rng.chance(20) {
            self.rng.pick(&[8, 16, 32])
        } else {
            1
        }
    }

    fn element(&mut self) -> FieldClass {
        let known = self.candidates.len();
        self.path.push(0);
        let element = if !self.is_ctf2() && self.rng.chance(25) {
            // Text: 8-bit integers with an encoding.
            let signed = self.rng.chance(50);
            let class = IntClass {
                length: 8,
                align: 8,
                encoding: Some(Encoding::Utf8),
                ..self.int_class(signed)
            };
            FieldClass::Int(Arc::new(class))
        } else {
            self.field(false)
        };
        self.path.pop();
        // Fields inside an element are not visible outside.
        self.candidates.truncate(known);
        element
    }

    fn offer(&mut self, kind: CandidateKind, need: Option<Need>) {
        let location = FieldLocation {
            scope: self.scope,
            paths: vec![self.path.clone()],
        };
        let candidate = Candidate {
            location,
            stream: self.stream,
            event: self.event,
            kind,
        };
        if let Some(need) = need {
            self.needs.set(&candidate, &need);
        }
        self.candidates.push(candidate);
    }

    /// A field for lengths.
    fn length(&mut self) -> FieldClass {
        let class = if self.is_ctf2() && self.rng.chance(30) {
            FieldClass::VarInt(Arc::new(self.variable_int(false)))
        } else {
            let class = self.int_class(false);
            FieldClass::Int(Arc::new(IntClass {
                length: class.length.max(8),
                ..class
            }))
        };
        let limit = self.rng.below(7);
        self.offer(CandidateKind::Length, Some(Need::Length { limit, unit: 1 }));
        class
    }

    /// A field that selects.
    fn selector(&mut self) -> FieldClass {
        if self.is_ctf2() && self.rng.chance(25) {
            self.offer(CandidateKind::Boolean, None);
            return FieldClass::Bool(Arc::new(self.int_class(false)));
        }
        let (class, mappings) = self.mapped_int(true);
        let class = match self.is_ctf2() && self.rng.chance(20) {
            true => FieldClass::VarInt(Arc::new(IntClass {
                length: 64,
                align: 8,
                byte_order: ByteOrder::Little,
                reversed_bits: false,
                ..class
            })),
            false => FieldClass::Int(Arc::new(class)),
        };
        let ranges: Vec<IntRange> = mappings
            .iter()
            .flat_map(|mapping| mapping.ranges.clone())
            .collect();
        let choices = mappings
            .into_iter()
            .map(|mapping| (Some(mapping.label), mapping.ranges))
            .collect();
        self.offer(CandidateKind::Selector(choices), Some(Need::Select(ranges)));
        class
    }

    /// A field that depends on an earlier one.
    fn dependent(&mut self) -> FieldClass {
        let candidate = self.rng.pick(&self.candidates);
        if self.path.len() > MAX_DEPTH
            || (self.options.babeltrace && !self.babeltrace_finds(&candidate))
        {
            return FieldClass::Int(Arc::new(self.random_int()));
        }
        match &candidate.kind {
            CandidateKind::Length => self.with_length(&candidate),
            CandidateKind::Selector(choices) if self.is_ctf2() && self.rng.chance(40) => {
                let ranges = self.rng.pick(choices).1;
                self.optional(&candidate, Some(ranges))
            }
            CandidateKind::Selector(choices) => self.variant(&candidate, choices),
            CandidateKind::Boolean => self.optional(&candidate, None),
        }
    }

    /// True if babeltrace2 2.0.4 can use the candidate here: it does not parse dots in the tag of a
    /// variant, and crashes on fields that depend on other fields in headers and in events'
    /// specific contexts.
    fn babeltrace_finds(&self, candidate: &Candidate) -> bool {
        let crashes = |scope| {
            matches!(
                scope,
                Scope::SpecificContext | Scope::PacketHeader | Scope::EventHeader
            )
        };
        if crashes(self.scope) || candidate.location.scope == Scope::SpecificContext {
            return false;
        }
        let is_lexical = |path: &Vec<u32>| {
            let parent = &path[..path.len() - 1];
            candidate.location.scope == self.scope && self.path.starts_with(parent)
        };
        candidate.kind == CandidateKind::Length || candidate.location.paths.iter().all(is_lexical)
    }

    fn with_length(&mut self, candidate: &Candidate) -> FieldClass {
        let length = Arc::new(candidate.location.clone());
        match self.rng.below(if self.is_ctf2() { 4 } else { 1 }) {
            0 | 1 => {
                let min_align = self.array_align();
                let element = Arc::new(self.element());
                FieldClass::Sequence {
                    element,
                    length,
                    min_align,
                }
            }
            2 => {
                let encoding = self.encoding();
                self.needs
                    .raise_unit(candidate, encoding.unit_bytes() as u64);
                FieldClass::DynStr { length, encoding }
            }
            _ => FieldClass::DynBlob {
                length,
                media_type: None,
            },
        }
    }

    fn optional(&mut self, candidate: &Candidate, ranges: Option<Vec<IntRange>>) -> FieldClass {
        let known = self.candidates.len();
        self.path.push(0);
        let element = self.field(true);
        self.path.pop();
        self.candidates.truncate(known);
        FieldClass::Optional(Arc::new(OptionalClass {
            selector: Arc::new(candidate.location.clone()),
            ranges,
            element,
        }))
    }

    fn variant(
        &mut self,
        candidate: &Candidate,
        choices: &[(Option<String>, Vec<IntRange>)],
    ) -> FieldClass {
        let mut options = Vec::new();
        let has_common_length = self.is_ctf2() && self.rng.chance(30);
        let common_name = self.names.fresh(self.rng);
        let mut common_paths = Vec::new();
        for (index, (name, ranges)) in choices.iter().enumerate() {
            let known = self.candidates.len();
            self.path.push(index as u32);
            let class = if has_common_length {
                let (class, path) = self.option_with_length(&common_name);
                common_paths.push(path);
                class
            } else {
                self.field(!self.options.babeltrace)
            };
            self.path.pop();
            self.candidates.truncate(known);
            let name = if self.is_ctf2() && self.rng.chance(20) {
                None
            } else {
                name.as_deref().map(Name::from)
            };
            options.push(VariantOption {
                name,
                ranges: ranges.clone(),
                class,
            });
        }
        if !self.is_ctf2() && !self.options.babeltrace && self.rng.chance(10) {
            // An option that can never be selected.
            let class = FieldClass::Str {
                encoding: Encoding::Utf8,
            };
            options.push(VariantOption {
                name: Some("NEVER".into()),
                ranges: Vec::new(),
                class,
            });
        }
        if has_common_length {
            let location = FieldLocation {
                scope: self.scope,
                paths: common_paths,
            };
            let (stream, event) = (self.stream, self.event);
            let common = Candidate {
                location,
                stream,
                event,
                kind: CandidateKind::Length,
            };
            self.needs.set(&common, &Need::Length { limit: 5, unit: 1 });
            self.candidates.push(common);
        }
        FieldClass::Variant(Arc::new(VariantClass {
            selector: Arc::new(candidate.location.clone()),
            options,
        }))
    }

    /// An option that is a structure with a length of the given name in it; also the length's path.
    fn option_with_length(&mut self, name: &str) -> (FieldClass, Vec<u32>) {
        let class = self.int_class(false);
        let class = FieldClass::Int(Arc::new(IntClass {
            length: class.length.max(8),
            ..class
        }));
        let member = Member {
            name: name.into(),
            class,
        };
        let at = self.rng.below(2);
        let mut slots = vec![Slot::Random; at as usize];
        slots.push(Slot::Given(member));
        let class = self.structure(slots);
        let mut path = self.path.clone();
        path.push(at as u32);
        (class, path)
    }
}
