//! Random trace classes: headers, contexts, clocks, stream and event classes.

use super::Options;
use super::fields::{FieldMaker, Slot};
use super::needs::Needs;
use crate::rng::Rng;
use std::sync::Arc;
use tracebraid_ctf::schema::{
    ByteOrder, ClockClass, ClockOrigin, CtfVersion, DisplayBase, EnvValue, EventClass, FieldClass,
    FieldLocation, IntClass, IntRange, Mapping, Member, Roles, Scope, StreamClass, StructClass, TraceClass,
    Uuid, VariantClass, VariantOption,
};

/// How the headers of a stream class's event records tell the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderStyle {
    /// Any structure with or without id and timestamp; of how many bits the timestamp is.
    Plain { timestamp_bits: Option<u32> },
    /// LTTng's: an id and a short timestamp, or, after an escape id, a long id and timestamp.
    Escaped { escape_id: u64, timestamp_bits: u32 },
}

/// What the metadata does not say of a stream class, but its packets must keep to.
#[derive(Clone, Debug)]
pub(super) struct StreamPlan {
    pub(super) header: HeaderStyle,
    /// Packets end where their content does, at a byte: there is no length of the content, or no
    /// total length.
    pub(super) no_padding: bool,
    /// All of a stream is one packet: there are no lengths at all, or times would be ambiguous.
    pub(super) one_packet: bool,
    /// Packets tell when they begin.
    pub(super) has_begin: bool,
}

/// A trace class with everything that its data must keep to.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    pub(super) class: TraceClass,
    pub(super) plans: Vec<StreamPlan>,
    pub(super) needs: Needs,
    /// Streams have ids in their packet headers.
    pub(super) has_stream_ids: bool,
}

const FREQUENCIES: [u64; 8] = [
    1_000_000_000,
    1_000_000_000,
    1_000_000,
    1000,
    1,
    123_456_789,
    3_000_000_000,
    32_768,
];

struct Maker<'a> {
    options: &'a Options,
    byte_order: ByteOrder,
    /// Packet headers may end within a byte; all streams then have all lengths.
    loose_header: bool,
}

/// Makes a trace class.
pub(super) fn make(rng: &mut Rng, options: &Options) -> Classes {
    let byte_order = rng.pick(&[ByteOrder::Little, ByteOrder::Big]);
    let is_ctf2 = options.version == CtfVersion::V2_0;
    let stream_classes = match options.stream_classes {
        Some(count) => count.max(1),
        None => rng.pick(&[1, 1, 2, 3]),
    };
    let maker = Maker {
        options,
        byte_order,
        loose_header: rng.chance(40),
    };
    let clocks = maker.clocks(rng);
    let mut class = TraceClass {
        version: options.version,
        namespace: (is_ctf2 && rng.chance(30)).then(|| "example.com,2026".into()),
        name: (is_ctf2 && rng.chance(50)).then(|| "random".into()),
        uid: (is_ctf2 && rng.chance(50)).then(|| "the-trace-1".into()),
        uuid: rng.chance(80).then(|| random_uuid(rng)),
        byte_order: if is_ctf2 { ByteOrder::Little } else { byte_order },
        environment: maker.environment(rng),
        packet_header: None,
        clocks,
        streams: Vec::new(),
    };
    let mut fields = FieldMaker::new(rng, options, byte_order);
    let (header, has_stream_ids) = maker.packet_header(&mut fields, class.uuid.is_some(), stream_classes > 1);
    class.packet_header = header;
    let mut plans = Vec::new();
    let of_trace = fields.candidates.len();
    for index in 0..stream_classes as usize {
        fields.candidates.truncate(of_trace);
        let id = if stream_classes > 1 {
            index as u64 * fields.rng.between(1, 3) * 2 + index as u64
        } else {
            0
        };
        let (stream, plan) = maker.stream(&mut fields, &class, index, id);
        class.streams.push(stream);
        plans.push(plan);
    }
    let needs = std::mem::take(&mut fields.needs);
    Classes {
        class,
        plans,
        needs,
        has_stream_ids,
    }
}

fn random_uuid(rng: &mut Rng) -> Uuid {
    (u128::from(rng.next()) << 64 | u128::from(rng.next())).to_le_bytes()
}

fn uuid_text(uuid: &Uuid) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

impl Maker<'_> {
    fn is_ctf2(&self) -> bool {
        self.options.version == CtfVersion::V2_0
    }

    fn environment(&self, rng: &mut Rng) -> Vec<(String, EnvValue)> {
        let mut environment = Vec::new();
        for index in 0..rng.below(4) {
            let value = match rng.below(2) {
                0 => EnvValue::Int(i128::from(rng.sized(40) as i64) - 1000),
                _ => EnvValue::Str(
                    rng.pick(&["lttng", "a \"quoted\" text", "C:\\x", "two words"])
                        .into(),
                ),
            };
            let name = rng.pick(&["hostname", "tracer_note", "major_version", "domain_of"]);
            environment.push((format!("{name}{index}"), value));
        }
        environment
    }

    fn clocks(&self, rng: &mut Rng) -> Vec<ClockClass> {
        let count = match rng.below(10) {
            0 => 0,
            1..8 => 1,
            _ => 2,
        };
        // Readers that put all events in one order can do so only with comparable clocks.
        let all_absolute = self.options.babeltrace && count > 1;
        (0..count)
            .map(|index| self.clock(rng, index, all_absolute))
            .collect()
    }

    fn clock(&self, rng: &mut Rng, index: usize, absolute: bool) -> ClockClass {
        let name = rng.pick(&["monotonic", "sys_clk", "tsc"]);
        let id = format!("{name}{index}");
        let is_ctf2 = self.is_ctf2();
        let frequency = rng.pick(&FREQUENCIES);
        let uuid = (!is_ctf2 && rng.chance(50)).then(|| random_uuid(rng));
        let custom = ClockOrigin::Custom {
            namespace: rng.chance(50).then(|| "example.com,2026".into()),
            name: "boot".into(),
            uid: "0815".into(),
        };
        let origin = match rng.below(3) {
            _ if absolute => ClockOrigin::UnixEpoch,
            0 => ClockOrigin::UnixEpoch,
            1 if is_ctf2 => custom,
            _ => ClockOrigin::Unknown,
        };
        let far = 2_000_000_000;
        let offset_seconds = match rng.below(4) {
            0 => 0,
            1 if !self.options.babeltrace => -(rng.below(1000) as i64),
            _ => rng.below(far) as i64,
        };
        ClockClass {
            name: if is_ctf2 {
                rng.chance(60).then(|| name.into())
            } else {
                Some(id.clone())
            },
            id,
            namespace: (is_ctf2 && rng.chance(20)).then(|| "example.com,2026".into()),
            uid: if is_ctf2 {
                rng.chance(40).then(|| format!("clock-{index}"))
            } else {
                uuid.as_ref().map(uuid_text)
            },
            uuid,
            description: rng.chance(40).then(|| "A \"clock\"".into()),
            frequency,
            precision: rng.chance(30).then(|| rng.sized(20)),
            accuracy: (is_ctf2 && rng.chance(20)).then(|| rng.sized(20)),
            offset_seconds,
            offset_cycles: if rng.chance(50) {
                rng.below(frequency) as i64
            } else {
                0
            },
            origin,
        }
    }

    /// An unsigned integer with a role, in whole bytes if the maker says so.
    fn int(&self, fields: &mut FieldMaker<'_>, lengths: &[u32], roles: Roles) -> IntClass {
        let length = fields.rng.pick(lengths);
        let whole = fields.only_bytes || (length % 8 == 0 && fields.rng.chance(60));
        let length = if whole { length.next_multiple_of(8) } else { length };
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

    /// A member with a role; in CTF 2 its name means nothing, and it may be of variable length.
    fn role(&self, fields: &mut FieldMaker<'_>, name: &str, lengths: &[u32], roles: Roles) -> Member {
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

    /// The packet header, and whether it tells the streams of a class apart.
    fn packet_header(
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
    fn scatter(&self, fields: &mut FieldMaker<'_>, slots: &mut Vec<Slot>, percent: u64) {
        if fields.rng.chance(percent) {
            slots.extend(vec![Slot::Random; fields.rng.between(1, 2) as usize]);
        }
        for index in (1..slots.len()).rev() {
            let other = fields.rng.below(index as u64 + 1) as usize;
            slots.swap(index, other);
        }
    }

    fn stream(
        &self,
        fields: &mut FieldMaker<'_>,
        class: &TraceClass,
        index: usize,
        id: u64,
    ) -> (StreamClass, StreamPlan) {
        fields.stream = Some(index);
        fields.event = None;
        // With one clock, all streams have it, or none: see `clocks`.
        let clock = match class.clocks.len() {
            0 => None,
            count => Some(fields.rng.below(count as u64) as usize),
        };
        let is_ctf2 = self.is_ctf2();
        let has_total = self.loose_header || fields.rng.chance(85);
        let has_content = self.loose_header || fields.rng.chance(if has_total { 85 } else { 20 });
        let no_padding = !(has_total && has_content);
        fields.only_bytes = no_padding;
        // babeltrace2 does not mix streams with and without a clock.
        let has_begin = clock.is_some() && (self.options.babeltrace || fields.rng.chance(80));
        let packet_context = self.packet_context(fields, clock, has_total, has_content, has_begin);
        let (event_header, header) = self.event_header(fields, clock);
        let common_context = self.context(fields, Scope::CommonContext, 35);
        let of_stream = fields.candidates.len();
        let has_ids = event_header
            .as_ref()
            .is_some_and(|header| has_role(header, Roles::EVENT_CLASS_ID));
        let event_classes = if has_ids { fields.rng.between(1, 6) } else { 1 };
        let mut events: Vec<EventClass> = Vec::new();
        for event in 0..event_classes as usize {
            fields.candidates.truncate(of_stream);
            fields.event = Some(event);
            let id = match events.last() {
                Some(last) => last.id + fields.rng.pick(&[1, 1, 7, 40]),
                None => 0,
            };
            events.push(self.event(fields, id, event_header.is_none()));
        }
        fields.only_bytes = false;
        let short_time = match header {
            HeaderStyle::Plain {
                timestamp_bits: Some(bits),
            } => bits < 64,
            HeaderStyle::Plain { timestamp_bits: None } => false,
            HeaderStyle::Escaped { .. } => true,
        };
        let one_packet = (!has_total && !has_content) || (clock.is_some() && !has_begin && short_time);
        let uses_clock = has_begin || !matches!(header, HeaderStyle::Plain { timestamp_bits: None });
        let stream = StreamClass {
            id,
            namespace: (is_ctf2 && fields.rng.chance(20)).then(|| "example.com,2026".into()),
            name: (is_ctf2 && fields.rng.chance(40)).then(|| format!("stream {index}")),
            uid: (is_ctf2 && fields.rng.chance(20)).then(|| format!("s{index}")),
            default_clock: clock.filter(|_| is_ctf2 || uses_clock),
            packet_context,
            event_header,
            common_context,
            events,
        };
        (
            stream,
            StreamPlan {
                header,
                no_padding,
                one_packet,
                has_begin,
            },
        )
    }

    fn packet_context(
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

    fn event_header(
        &self,
        fields: &mut FieldMaker<'_>,
        clock: Option<usize>,
    ) -> (Option<FieldClass>, HeaderStyle) {
        match fields.rng.below(10) {
            0 => (None, HeaderStyle::Plain { timestamp_bits: None }),
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
            let mut member = self.timestamp(fields, "timestamp", length, Roles::CLOCK_TIMESTAMP, clock);
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
            return (None, HeaderStyle::Plain { timestamp_bits: None });
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
            selector: FieldLocation {
                scope: Scope::EventHeader,
                paths: vec![vec![0]],
            },
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

    fn context(&self, fields: &mut FieldMaker<'_>, scope: Scope, percent: u64) -> Option<FieldClass> {
        if !fields.rng.chance(percent) {
            return None;
        }
        let count = fields.rng.between(1, 3) as usize;
        Some(fields.root(scope, vec![Slot::Random; count]))
    }

    fn event(&self, fields: &mut FieldMaker<'_>, id: u64, needs_size: bool) -> EventClass {
        let specific_context = self.context(fields, Scope::SpecificContext, 30);
        let mut slots = vec![Slot::Random; fields.rng.pick(&[0, 1, 2, 3, 4, 5, 6])];
        if needs_size {
            // Event records without a header must have something in them to be told apart.
            let class = self.int(fields, &[8], Roles::NONE);
            slots.push(Slot::Given(Member {
                name: "something".into(),
                class: FieldClass::Int(Arc::new(class)),
            }));
        }
        let has_payload = !slots.is_empty() || fields.rng.chance(50);
        let payload = has_payload.then(|| fields.root(Scope::Payload, slots));
        let is_ctf2 = self.is_ctf2();
        let name = fields.rng.pick(&["sched_switch", "app:request", "my event", "x"]);
        let has_name = self.options.babeltrace || fields.rng.chance(95);
        EventClass {
            id,
            name: if has_name {
                format!("{name}{id}")
            } else {
                String::new()
            },
            namespace: (is_ctf2 && fields.rng.chance(20)).then(|| "example.com,2026".into()),
            uid: (is_ctf2 && fields.rng.chance(20)).then(|| format!("e{id}")),
            log_level: (!is_ctf2 && fields.rng.chance(30)).then(|| fields.rng.below(15) as i64),
            model_emf_uri: (!is_ctf2 && fields.rng.chance(20)).then(|| "http://example.com/model".into()),
            specific_context,
            payload,
        }
    }
}

/// True if an integer with the role is in the structure or in its variants.
fn has_role(class: &FieldClass, role: Roles) -> bool {
    match class {
        FieldClass::Int(int) | FieldClass::VarInt(int) => int.roles.contains(role),
        FieldClass::Struct(class) => class.members.iter().any(|member| has_role(&member.class, role)),
        FieldClass::Variant(class) => class.options.iter().any(|option| has_role(&option.class, role)),
        _ => false,
    }
}
