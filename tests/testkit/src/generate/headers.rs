//! Random headers and packet contexts: the structures whose fields have roles.

use super::classes::{HeaderStyle, Maker};
use super::fields::{FieldMaker, Slot};
use std::sync::Arc;
use tracebraid_ctf::schema::{
    ByteOrder, DisplayBase, FieldClass, FieldLocation, IntClass, IntRange, Mapping, Member, Roles,
    Scope, StructClass, VariantClass, VariantOption,
};

impl Maker<'_> {
    /// An unsigned integer with a role, in whole bytes if the maker requires them.
    pub(super) fn int(
        &self,
        fields: &mut FieldMaker<'_>,
        lengths: &[u32],
        roles: Roles,
    ) -> IntClass {
        let length = fields.rng.pick(lengths);
        let whole = fields.only_bytes || (length.is_multiple_of(8) && fields.rng.chance(60));
        let length = if whole {
            length.next_multiple_of(8)
        } else {
            length
        };
        let align = if whole {
            fields.rng.pick(&[8, 8, 16, 32])
        } else {
            fields.rng.pick(&[1, 1, 4, 8, 64])
        };
        let any_order = if whole {
            fields.rng.pick(&[ByteOrder::Little, ByteOrder::Big])
        } else {
            self.byte_order
        };
        IntClass {
            length,
            align,
            byte_order: any_order,
            reversed_bits: self.is_ctf2() && fields.rng.chance(5),
            signed: false,
            base: DisplayBase::Decimal,
            encoding: None,
            clock: None,
            roles,
            is_enum: false,
            mappings: Arc::from([]),
        }
    }

    /// A member with a role; in CTF 2 its name has no meaning, and it may have variable length.
    pub(super) fn role(
        &self,
        fields: &mut FieldMaker<'_>,
        name: &str,
        lengths: &[u32],
        roles: Roles,
    ) -> Member {
        let class = self.int(fields, lengths, roles);
        if self.is_ctf2() && fields.rng.chance(10) && roles != Roles::PACKET_MAGIC {
            let class = IntClass {
                length: 64,
                align: 8,
                byte_order: ByteOrder::Little,
                reversed_bits: false,
                ..class
            };
            return Member {
                name: name.into(),
                class: FieldClass::VarInt(Arc::new(class)),
            };
        }
        Member {
            name: name.into(),
            class: FieldClass::Int(Arc::new(class)),
        }
    }

    /// The packet header, and whether it distinguishes the streams of a class.
    pub(super) fn packet_header(
        &self,
        fields: &mut FieldMaker<'_>,
        has_uuid: bool,
        many_stream_classes: bool,
    ) -> (Option<FieldClass>, bool) {
        if !many_stream_classes && fields.rng.chance(15) {
            return (None, false);
        }
        fields.only_bytes = !self.loose_header;
        let mut slots = Vec::new();
        if fields.rng.chance(70) {
            let class = IntClass {
                align: 32,
                byte_order: self.byte_order,
                reversed_bits: false,
                ..self.int(fields, &[32], Roles::PACKET_MAGIC)
            };
            slots.push(Slot::Given(Member {
                name: "magic".into(),
                class: FieldClass::Int(Arc::new(class)),
            }));
        }
        if has_uuid && fields.rng.chance(60) {
            slots.push(Slot::Given(Member {
                name: "uuid".into(),
                class: self.uuid_class(),
            }));
        }
        let mut rest = Vec::new();
        if many_stream_classes || fields.rng.chance(50) {
            rest.push(Slot::Given(self.role(
                fields,
                "stream_id",
                &[8, 16, 32, 64, 7, 13],
                Roles::STREAM_CLASS_ID,
            )));
        }
        let has_stream_ids = fields.rng.chance(50);
        if has_stream_ids {
            rest.push(Slot::Given(self.role(
                fields,
                "stream_instance_id",
                &[8, 16, 64],
                Roles::STREAM_ID,
            )));
        }
        self.scatter(fields, &mut rest, 20);
        slots.extend(rest);
        let header = fields.root(Scope::PacketHeader, slots);
        fields.only_bytes = false;
        (Some(header), has_stream_ids)
    }

    fn uuid_class(&self) -> FieldClass {
        if self.is_ctf2() {
            return FieldClass::StaticBlob {
                length: 16,
                media_type: None,
                roles: Roles::METADATA_UUID,
            };
        }
        let byte = IntClass {
            length: 8,
            align: 8,
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
        let element = Arc::new(FieldClass::Int(Arc::new(byte)));
        FieldClass::Array {
            element,
            length: 16,
            min_align: 1,
            roles: Roles::METADATA_UUID,
        }
    }

    /// Adds random members in `percent` of cases, and shuffles.
    pub(super) fn scatter(&self, fields: &mut FieldMaker<'_>, slots: &mut Vec<Slot>, percent: u64) {
        if fields.rng.chance(percent) {
            slots.extend(vec![Slot::Random; fields.rng.between(1, 2) as usize]);
        }
        for index in (1..slots.len()).rev() {
            let other = fields.rng.below(index as u64 + 1) as usize;
            slots.swap(index, other);
        }
    }

    pub(super) fn packet_context(
        &self,
        fields: &mut FieldMaker<'_>,
        clock: Option<usize>,
        has_total: bool,
        has_content: bool,
        has_begin: bool,
    ) -> Option<FieldClass> {
        let mut slots = Vec::new();
        let lengths = [32, 64, 32, 64, 24, 27, 40];
        if has_total {
            slots.push(Slot::Given(self.role(
                fields,
                "packet_size",
                &lengths,
                Roles::PACKET_TOTAL_LENGTH,
            )));
        }
        if has_content {
            slots.push(Slot::Given(self.role(
                fields,
                "content_size",
                &lengths,
                Roles::PACKET_CONTENT_LENGTH,
            )));
        }
        if fields.rng.chance(40) {
            let role = Roles::PACKET_SEQUENCE_NUMBER;
            slots.push(Slot::Given(self.role(
                fields,
                "packet_seq_num",
                &[16, 32, 64, 23],
                role,
            )));
        }
        if fields.rng.chance(40) {
            let role = Roles::DISCARDED_EVENTS;
            slots.push(Slot::Given(self.role(
                fields,
                "events_discarded",
                &[32, 64, 33],
                role,
            )));
        }
        if has_begin {
            slots.push(Slot::Given(self.timestamp(
                fields,
                "timestamp_begin",
                64,
                Roles::CLOCK_TIMESTAMP,
                clock,
            )));
            if fields.rng.chance(80) {
                let role = Roles::PACKET_END_TIMESTAMP;
                slots.push(Slot::Given(self.timestamp(
                    fields,
                    "timestamp_end",
                    64,
                    role,
                    clock,
                )));
            }
        }
        if slots.is_empty() {
            return None;
        }
        self.scatter(fields, &mut slots, 40);
        Some(fields.root(Scope::PacketContext, slots))
    }

    fn timestamp(
        &self,
        fields: &mut FieldMaker<'_>,
        name: &str,
        length: u32,
        roles: Roles,
        clock: Option<usize>,
    ) -> Member {
        let clock = clock.filter(|_| !self.is_ctf2());
        let class = IntClass {
            clock,
            ..self.int(fields, &[length], roles)
        };
        Member {
            name: name.into(),
            class: FieldClass::Int(Arc::new(class)),
        }
    }

    pub(super) fn event_header(
        &self,
        fields: &mut FieldMaker<'_>,
        clock: Option<usize>,
    ) -> (Option<FieldClass>, HeaderStyle) {
        match fields.rng.below(10) {
            0 => (
                None,
                HeaderStyle::Plain {
                    timestamp_bits: None,
                },
            ),
            1..5 if clock.is_some() => self.escaped_header(fields, clock),
            _ => self.plain_header(fields, clock),
        }
    }

    fn plain_header(
        &self,
        fields: &mut FieldMaker<'_>,
        clock: Option<usize>,
    ) -> (Option<FieldClass>, HeaderStyle) {
        let mut slots = Vec::new();
        let mut timestamp_bits = None;
        if fields.rng.chance(85) {
            slots.push(Slot::Given(self.role(
                fields,
                "id",
                &[8, 16, 32, 64, 9, 12],
                Roles::EVENT_CLASS_ID,
            )));
        }
        if clock.is_some() && fields.rng.chance(85) {
            let length = fields.rng.pick(&[64, 64, 32, 27, 16, 48, 8, 3, 1, 63]);
            let mut member =
                self.timestamp(fields, "timestamp", length, Roles::CLOCK_TIMESTAMP, clock);
            timestamp_bits = Some(match &member.class {
                FieldClass::Int(int) => int.length,
                _ => 64,
            });
            if self.is_ctf2() && fields.rng.chance(15) {
                let mut class = self.int(fields, &[64], Roles::CLOCK_TIMESTAMP);
                (class.length, class.align, class.byte_order) = (64, 8, ByteOrder::Little);
                class.reversed_bits = false;
                member.class = FieldClass::VarInt(Arc::new(class));
                timestamp_bits = Some(64);
            }
            slots.push(Slot::Given(member));
        }
        if slots.is_empty() {
            return (
                None,
                HeaderStyle::Plain {
                    timestamp_bits: None,
                },
            );
        }
        self.scatter(fields, &mut slots, 25);
        (
            Some(fields.root(Scope::EventHeader, slots)),
            HeaderStyle::Plain { timestamp_bits },
        )
    }

    /// LTTng's compact (5 and 27 bits) and large (16 and 32 bits) headers.
    fn escaped_header(
        &self,
        fields: &mut FieldMaker<'_>,
        clock: Option<usize>,
    ) -> (Option<FieldClass>, HeaderStyle) {
        let is_large = fields.only_bytes || fields.rng.chance(50);
        let (id_bits, timestamp_bits) = if is_large { (16, 32) } else { (5, 27) };
        let (id_align, short_align) = if is_large { (8, 8) } else { (1, 1) };
        let escape_id = (1u64 << id_bits) - 1;
        let mapped_clock = clock.filter(|_| !self.is_ctf2());
        let int = |length: u32, align: u32, roles: Roles| IntClass {
            length,
            align,
            byte_order: self.byte_order,
            reversed_bits: false,
            signed: false,
            base: DisplayBase::Decimal,
            encoding: None,
            clock: mapped_clock.filter(|_| roles.contains(Roles::CLOCK_TIMESTAMP)),
            roles,
            is_enum: false,
            mappings: Arc::from([]),
        };
        let range = |lower: u64, upper: u64| IntRange {
            lower: i128::from(lower),
            upper: i128::from(upper),
        };
        let (short, long) = (range(0, escape_id - 1), range(escape_id, escape_id));
        let id = IntClass {
            is_enum: true,
            mappings: Arc::from([
                Mapping {
                    label: "compact".into(),
                    ranges: vec![short],
                },
                Mapping {
                    label: "extended".into(),
                    ranges: vec![long],
                },
            ]),
            ..int(id_bits, id_align, Roles::EVENT_CLASS_ID)
        };
        let member = |name: &str, class: IntClass| Member {
            name: name.into(),
            class: FieldClass::Int(Arc::new(class)),
        };
        let structure = |members: Vec<Member>, min_align: u32| {
            FieldClass::Struct(Arc::new(StructClass { min_align, members }))
        };
        let compact = structure(
            vec![member(
                "timestamp",
                int(timestamp_bits, short_align, Roles::CLOCK_TIMESTAMP),
            )],
            1,
        );
        let extended = structure(
            vec![
                member("id", int(32, 8, Roles::EVENT_CLASS_ID)),
                member("timestamp", int(64, 8, Roles::CLOCK_TIMESTAMP)),
            ],
            1,
        );
        let option = |name: &str, range: IntRange, class: FieldClass| VariantOption {
            name: Some(name.into()),
            ranges: vec![range],
            class,
        };
        let variant = VariantClass {
            selector: Arc::new(FieldLocation {
                scope: Scope::EventHeader,
                paths: vec![vec![0]],
            }),
            options: vec![
                option("compact", short, compact),
                option("extended", long, extended),
            ],
        };
        let v = Member {
            name: "v".into(),
            class: FieldClass::Variant(Arc::new(variant)),
        };
        let header = structure(vec![member("id", id), v], 8);
        (
            Some(header),
            HeaderStyle::Escaped {
                escape_id,
                timestamp_bits,
            },
        )
    }
}
