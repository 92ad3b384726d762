//! Random trace classes: headers, contexts, clocks, stream and event classes.

use super::Options;
use super::fields::{FieldMaker, Slot};
use super::needs::Needs;
use crate::rng::Rng;
use std::sync::Arc;
use tracebraid_ctf::schema::{
    ByteOrder, ClockClass, ClockOrigin, CtfVersion, EnvValue, EventClass, FieldClass, Member, Name,
    Roles, Scope, StreamClass, TraceClass, Uuid,
};

/// How the headers of a stream class's event records encode the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderStyle {
    /// Any structure with or without id and timestamp, and the number of bits of the timestamp.
    Plain { timestamp_bits: Option<u32> },
    /// LTTng's header: an id and a short timestamp or, after an escape id, a long id and timestamp.
    Escaped { escape_id: u64, timestamp_bits: u32 },
}

/// Constraints on the packets of a stream class that its metadata does not express.
#[derive(Clone, Debug)]
pub(super) struct StreamPlan {
    pub(super) header: HeaderStyle,
    /// Packets end where their content does, at a byte boundary: there is no content length, or no
    /// total length.
    pub(super) no_padding: bool,
    /// The stream has a single packet: there are no lengths, or times would be ambiguous.
    pub(super) one_packet: bool,
    /// Packets record their beginning.
    pub(super) has_begin: bool,
}

/// A trace class with all constraints on its data.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    pub(super) class: TraceClass,
    pub(super) plans: Vec<StreamPlan>,
    pub(super) needs: Needs,
    /// Packet headers contain stream ids.
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

/// State shared by all classes of a trace.
pub(super) struct Maker<'a> {
    options: &'a Options,
    pub(super) byte_order: ByteOrder,
    /// Packet headers may end within a byte; all streams then have both lengths.
    pub(super) loose_header: bool,
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
        byte_order: if is_ctf2 {
            ByteOrder::Little
        } else {
            byte_order
        },
        environment: maker.environment(rng),
        packet_header: None,
        clocks,
        streams: Vec::new(),
    };
    let mut fields = FieldMaker::new(rng, options, byte_order);
    let (header, has_stream_ids) =
        maker.packet_header(&mut fields, class.uuid.is_some(), stream_classes > 1);
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
    (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).to_le_bytes()
}

fn uuid_text(uuid: &Uuid) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

impl Maker<'_> {
    pub(super) fn is_ctf2(&self) -> bool {
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
        // Readers that merge all events need comparable clocks.
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

    fn stream(
        &self,
        fields: &mut FieldMaker<'_>,
        class: &TraceClass,
        index: usize,
        id: u64,
    ) -> (StreamClass, StreamPlan) {
        fields.stream = Some(index);
        fields.event = None;
        // If there is one clock, either all streams use it or none does: see `clocks`.
        let clock = match class.clocks.len() {
            0 => None,
            count => Some(fields.rng.below(count as u64) as usize),
        };
        let is_ctf2 = self.is_ctf2();
        let must_have_context = self.loose_header || (self.options.babeltrace && clock.is_some());
        let is_bare = !must_have_context && fields.rng.chance(8);
        let has_total = !is_bare && (self.loose_header || fields.rng.chance(85));
        let has_content =
            !is_bare && (self.loose_header || fields.rng.chance(if has_total { 85 } else { 20 }));
        let no_padding = !(has_total && has_content);
        fields.only_bytes = no_padding;
        // babeltrace2 does not mix streams with and without a clock.
        let has_begin =
            !is_bare && clock.is_some() && (self.options.babeltrace || fields.rng.chance(80));
        let packet_context = match is_bare {
            true => None,
            false => self.packet_context(fields, clock, has_total, has_content, has_begin),
        };
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
            HeaderStyle::Plain {
                timestamp_bits: None,
            } => false,
            HeaderStyle::Escaped { .. } => true,
        };
        let one_packet =
            (!has_total && !has_content) || (clock.is_some() && !has_begin && short_time);
        let uses_clock = has_begin
            || !matches!(
                header,
                HeaderStyle::Plain {
                    timestamp_bits: None
                }
            );
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

    fn context(
        &self,
        fields: &mut FieldMaker<'_>,
        scope: Scope,
        percent: u64,
    ) -> Option<FieldClass> {
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
            // Event records without a header need a payload to be distinguishable.
            let class = self.int(fields, &[8], Roles::NONE);
            slots.push(Slot::Given(Member {
                name: "extra".into(),
                class: FieldClass::Int(Arc::new(class)),
            }));
        }
        let has_payload = !slots.is_empty() || fields.rng.chance(50);
        let payload = has_payload.then(|| fields.root(Scope::Payload, slots));
        let is_ctf2 = self.is_ctf2();
        let name = fields
            .rng
            .pick(&["sched_switch", "app:request", "my event", "x"]);
        let has_name = self.options.babeltrace || fields.rng.chance(95);
        EventClass {
            id,
            name: if has_name {
                format!("{name}{id}").into()
            } else {
                Name::default()
            },
            namespace: (is_ctf2 && fields.rng.chance(20)).then(|| "example.com,2026".into()),
            uid: (is_ctf2 && fields.rng.chance(20)).then(|| format!("e{id}").into()),
            log_level: (!is_ctf2 && fields.rng.chance(30)).then(|| fields.rng.below(15) as i64),
            model_emf_uri: (!is_ctf2 && fields.rng.chance(20))
                .then(|| "http://example.com/model".into()),
            specific_context,
            payload,
        }
    }
}

/// True if an integer with the role is in the structure or in its variants.
fn has_role(class: &FieldClass, role: Roles) -> bool {
    match class {
        FieldClass::Int(int) | FieldClass::VarInt(int) => int.roles.contains(role),
        FieldClass::Struct(class) => class
            .members
            .iter()
            .any(|member| has_role(&member.class, role)),
        FieldClass::Variant(class) => class
            .options
            .iter()
            .any(|option| has_role(&option.class, role)),
        _ => false,
    }
}
