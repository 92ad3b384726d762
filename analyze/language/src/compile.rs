//! Compiles the syntax tree to one predicate for each event class, on first use.

use std::cmp::Ordering;

use tracebraid_ctf::bits::Cursor;
use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::{NodeId, NodeKind};
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::{EnvValue, IntClass, Scope};
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_kernel_model::{event_cpu, packet_cpu};

use crate::ast::{Expr, Field, Operator, Value, Where};
use crate::glob::Glob;

/// Properties of an event record that are not among its own fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// Nanoseconds from the clock's origin.
    pub time: i64,
    /// CPU.
    pub cpu: Option<u64>,
    /// Thread, for traces whose event records do not contain it.
    pub tid: Option<i64>,
    /// Process of `tid`.
    pub pid: Option<i64>,
    /// Name of `tid`.
    pub procname: Option<&'a [u8]>,
    /// Integers of the packet context.
    pub packet: &'a [(NodeId, u64)],
}

/// A condition after evaluating all parts that do not depend on the data.
#[derive(Clone, Debug)]
enum Predicate {
    Const(bool),
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
    Time(Operator, i64),
    Cpu(Operator, i128),
    Tid(Operator, i128),
    Pid(Operator, i128),
    Procname(Text),
    /// The flag is true for a signed field.
    Integer(Box<FieldRef>, bool, Operator, i128),
    IntegerAsFloat(Box<FieldRef>, bool, Operator, f64),
    /// The value is in one of the ranges, or in none if the last flag is false.
    Label(Box<FieldRef>, bool, Vec<(i128, i128)>, bool),
    Float(Box<FieldRef>, Operator, f64),
    Bytes(Box<FieldRef>, Text),
    Packet(NodeId, Operator, i128),
}

/// Comparison of a string with a constant.
#[derive(Clone, Debug)]
struct Text {
    operator: Operator,
    glob: Glob,
    text: String,
}

impl Text {
    fn new(operator: Operator, value: &Value) -> Self {
        let text = value.text();
        Text {
            operator,
            glob: Glob::new(&text),
            text,
        }
    }

    fn holds(&self, bytes: &[u8]) -> bool {
        match self.operator {
            Operator::Matches => self.glob.matches(bytes),
            Operator::MatchesNot => !self.glob.matches(bytes),
            operator => operator.holds(bytes.cmp(self.text.as_bytes())),
        }
    }
}

/// A filter for the event records of a set of traces.
#[derive(Debug)]
pub struct Filter<'t> {
    pub(crate) expr: Expr,
    pub(crate) traces: &'t [Trace],
    /// By trace, stream class and event class; compiled when a class first occurs.
    predicates: Vec<Vec<Vec<Option<Predicate>>>>,
    needs_tasks: bool,
}

/// The body of an event record, and scratch registers to decode it with.
#[derive(Debug)]
pub struct At<'e, 's> {
    pub(crate) body: Cursor<'e>,
    pub(crate) slots: &'s mut [u64],
}

impl<'e, 's> At<'e, 's> {
    /// `body` starts after the header of the event record.
    pub fn new(body: Cursor<'e>, slots: &'s mut [u64]) -> Self {
        At { body, slots }
    }
}

/// Converts the text of a time to nanoseconds from the origin.
pub type TimeOf<'f> = &'f dyn Fn(&str) -> Result<i64, String>;

impl<'t> Filter<'t> {
    /// Prepares an expression; `time_of` converts the times in it.
    ///
    /// # Errors
    /// A time in the expression is malformed.
    pub fn new(mut expr: Expr, set: &'t TraceSet, time_of: TimeOf<'_>) -> Result<Self, String> {
        resolve_times(&mut expr, time_of)?;
        let per_class = |stream: &StreamLayout| stream.events.iter().map(|_| None).collect();
        let per_trace = |trace: &Trace| trace.layout.streams.iter().map(per_class).collect();
        let needs_tasks = needs_tasks(&expr);
        Ok(Filter {
            expr,
            traces: &set.traces,
            predicates: set.traces.iter().map(per_trace).collect(),
            needs_tasks,
        })
    }

    /// Whether [`Subject::tid`], [`Subject::pid`] or [`Subject::procname`] matter.
    pub fn needs_tasks(&self) -> bool {
        self.needs_tasks
    }

    /// False if the metadata prove that the filter selects no event record of a class. The indices
    /// are those of the trace, of its stream class and of the event class in it.
    pub fn may_accept(&self, trace: usize, stream_class: usize, event: usize) -> bool {
        let Some(trace) = self.traces.get(trace) else {
            return false;
        };
        let Some(stream) = trace.layout.streams.get(stream_class) else {
            return false;
        };
        let compiler = Compiler {
            trace,
            stream,
            event,
        };
        compiler.may_hold(&self.expr)
    }

    /// Whether the filter selects the event record. `trace` and `stream_class` are the indices of
    /// its trace and of its stream's class.
    #[inline]
    pub fn accepts(
        &mut self,
        trace: usize,
        stream_class: usize,
        event: &mut Event<'_>,
        subject: &Subject<'_>,
    ) -> bool {
        let classes = self
            .predicates
            .get_mut(trace)
            .and_then(|streams| streams.get_mut(stream_class));
        let Some(slot) = classes.and_then(|classes| classes.get_mut(event.class_index)) else {
            return false;
        };
        let predicate = match slot {
            Some(predicate) => predicate,
            None => {
                let Some(owner) = self.traces.get(trace) else {
                    return false;
                };
                let compiler = Compiler {
                    trace: owner,
                    stream: event.stream,
                    event: event.class_index,
                };
                slot.insert(compiler.compile(&self.expr))
            }
        };
        predicate.holds(&mut At::new(event.body, event.slots), subject)
    }
}

fn resolve_times(expr: &mut Expr, time_of: TimeOf<'_>) -> Result<(), String> {
    match expr {
        Expr::And(parts) | Expr::Or(parts) => parts
            .iter_mut()
            .try_for_each(|part| resolve_times(part, time_of)),
        Expr::Not(inner) => resolve_times(inner, time_of),
        Expr::Compare(Field::Time, _, value) => {
            *value = Value::Integer(time_of(&value.text())?.into());
            Ok(())
        }
        _ => Ok(()),
    }
}

fn needs_tasks(expr: &Expr) -> bool {
    match expr {
        Expr::And(parts) | Expr::Or(parts) => parts.iter().any(needs_tasks),
        Expr::Not(inner) => needs_tasks(inner),
        Expr::Compare(field, ..) | Expr::Has(field) => {
            matches!(field, Field::Tid | Field::Pid | Field::Procname)
        }
        Expr::Event(_) => false,
    }
}

/// The first field of that path in the scopes that `place` lists.
fn field(stream: &StreamLayout, event: usize, place: Where, path: &[String]) -> Option<FieldRef> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let scopes: &[Scope] = match place {
        Where::Anywhere => &[Scope::Payload, Scope::SpecificContext, Scope::CommonContext],
        Where::Payload => &[Scope::Payload],
        Where::Context => &[Scope::SpecificContext, Scope::CommonContext],
        Where::EventContext => &[Scope::SpecificContext],
        Where::StreamContext => &[Scope::CommonContext],
        Where::Packet | Where::Header | Where::PacketHeader => &[],
    };
    scopes
        .iter()
        .find_map(|&scope| stream.field(event, scope, &path))
}

/// A header member that has the same value in all event records of a class. The other members only
/// encode the class.
pub(crate) fn header_member(
    stream: &StreamLayout,
    event: usize,
    place: Where,
    path: &[String],
) -> Option<i128> {
    let [name] = path else { return None };
    match (place, name.as_str()) {
        (Where::Header, "id") => Some(stream.events.get(event)?.id.into()),
        (Where::PacketHeader, "stream_id") => Some(stream.id.into()),
        (Where::PacketHeader, "magic") => Some(0xc1fc_1fc1),
        _ => None,
    }
}

pub(crate) fn packet_member(
    stream: &StreamLayout,
    place: Where,
    path: &[String],
) -> Option<NodeId> {
    match (place, path) {
        (Where::Anywhere | Where::Packet, [name]) => stream.packet_context_member(name),
        _ => None,
    }
}

/// A condition on the event records of one class, for callers that select the classes themselves.
/// Names and environments are evaluated already; [`Field::Time`] must be compared with nanoseconds.
#[derive(Clone, Debug)]
pub struct ClassFilter(Predicate);

impl ClassFilter {
    /// `event` is the index of an event class in the stream class `stream` of `trace`.
    pub fn new(expr: &Expr, trace: &Trace, stream: &StreamLayout, event: usize) -> ClassFilter {
        ClassFilter(
            Compiler {
                trace,
                stream,
                event,
            }
            .compile(expr),
        )
    }

    /// The result, if it is the same for all event records of the class.
    pub fn constant(&self) -> Option<bool> {
        match self.0 {
            Predicate::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the condition holds for an event record.
    #[inline]
    pub fn holds(&self, event: &mut At<'_, '_>, subject: &Subject<'_>) -> bool {
        self.0.holds(event, subject)
    }
}

/// Compiles expressions for one event class.
#[derive(Clone, Copy)]
pub(crate) struct Compiler<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) stream: &'a StreamLayout,
    pub(crate) event: usize,
}

impl<'a> Compiler<'a> {
    fn compile(&self, expr: &Expr) -> Predicate {
        match expr {
            Expr::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.compile(part)).collect();
                if parts
                    .iter()
                    .any(|part| matches!(part, Predicate::Const(false)))
                {
                    return Predicate::Const(false);
                }
                join(parts, true, Predicate::And)
            }
            Expr::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.compile(part)).collect();
                if parts
                    .iter()
                    .any(|part| matches!(part, Predicate::Const(true)))
                {
                    return Predicate::Const(true);
                }
                join(parts, false, Predicate::Or)
            }
            Expr::Not(inner) => match self.compile(inner) {
                Predicate::Const(value) => Predicate::Const(!value),
                inner => Predicate::Not(Box::new(inner)),
            },
            Expr::Event(glob) => Predicate::Const(glob.matches(self.name().as_bytes())),
            Expr::Has(field) => Predicate::Const(self.has(field)),
            Expr::Compare(field, operator, value) => self.compare(field, *operator, value),
        }
    }

    /// False if the metadata prove that an expression holds for no event record of the class.
    pub(crate) fn may_hold(&self, expr: &Expr) -> bool {
        self.compile(expr).can_hold()
    }

    /// False if the comparison holds for no event record of the class, whatever the field's value.
    pub(crate) fn may_compare(&self, field: &Field, operator: Operator, value: &Value) -> bool {
        self.compare(field, operator, value).can_hold()
    }

    /// The labels of a field that is an enumeration; empty for other fields.
    pub(crate) fn labels(&self, field: &Field) -> Vec<String> {
        let Field::Path(place, path) = field else {
            return Vec::new();
        };
        match self.find(*place, path).as_ref().map(FieldRef::kind) {
            Some(NodeKind::Int(_, class) | NodeKind::VarInt(class)) if class.is_enum => {
                let labels = class.mappings.iter();
                labels.map(|mapping| mapping.label.to_string()).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &'a str {
        self.stream
            .events
            .get(self.event)
            .map_or("", |event| &event.name)
    }

    pub(crate) fn find(&self, place: Where, path: &[String]) -> Option<FieldRef> {
        field(self.stream, self.event, place, path)
    }

    /// The context field that contains the value of `field` in every event record. perf and ftrace
    /// store it among the event's own fields, ahead of the others.
    pub(crate) fn context(&self, field: &Field) -> Option<FieldRef> {
        let (names, perf): (&[&str], &[&str]) = match field {
            Field::Tid | Field::OwnTid => (&["tid", "vtid"], &["common_pid", "perf_tid"]),
            Field::Pid => (&["pid", "vpid"], &["perf_pid"]),
            Field::Procname => (&["procname"], &[]),
            // The packet contains the CPU of all its event records.
            Field::Cpu if packet_cpu(self.stream).is_some() => return None,
            Field::Cpu => return event_cpu(&self.trace.layout.class, self.stream, self.event),
            _ => return None,
        };
        let find = |place, names: &[&str]| {
            let mut names = names.iter();
            names.find_map(|&name| self.find(place, &[name.to_owned()]))
        };
        let domain = self.trace.layout.class.env_str("domain");
        let may_be_perf = domain.is_none_or(|domain| domain == "kernel");
        // In a super-trace, the common context has the user-level thread, and the context of the event
        // the thread that recorded it.
        let contexts = [Where::StreamContext, Where::Context];
        let of_context = contexts.into_iter().find_map(|place| find(place, names));
        of_context.or_else(|| find(Where::Payload, perf).filter(|_| may_be_perf))
    }

    pub(crate) fn has(&self, field: &Field) -> bool {
        match field {
            Field::Path(place, path) => {
                self.find(*place, path).is_some()
                    || packet_member(self.stream, *place, path).is_some()
                    || header_member(self.stream, self.event, *place, path).is_some()
            }
            Field::Environment(name) => self.trace.layout.class.env(name).is_some(),
            Field::Time => self.stream.clock.is_some(),
            _ => true,
        }
    }

    fn compare(&self, field: &Field, operator: Operator, value: &Value) -> Predicate {
        let whole = match value {
            Value::Integer(whole) => Some(*whole),
            _ => None,
        };
        match (field, whole) {
            (Field::Name, _) => {
                Predicate::Const(Text::new(operator, value).holds(self.name().as_bytes()))
            }
            (Field::Environment(name), _) => {
                Predicate::Const(match self.trace.layout.class.env(name) {
                    Some(EnvValue::Str(text)) => Text::new(operator, value).holds(text.as_bytes()),
                    Some(EnvValue::Int(number)) => {
                        whole.is_some_and(|whole| operator.holds(number.cmp(&whole)))
                    }
                    None => false,
                })
            }
            (Field::Time, Some(whole)) if self.stream.clock.is_some() => {
                let most = i128::from(i64::MAX);
                Predicate::Time(operator, whole.clamp(-most, most) as i64)
            }
            (Field::Procname, _) => match self.context(field) {
                Some(field) => Predicate::Bytes(Box::new(field), Text::new(operator, value)),
                None => Predicate::Procname(Text::new(operator, value)),
            },
            (Field::Cpu | Field::Tid | Field::Pid, Some(whole)) => match self.context(field) {
                Some(found) => compare_field(found, operator, value),
                None if matches!(field, Field::Cpu) => Predicate::Cpu(operator, whole),
                None if matches!(field, Field::Tid) => Predicate::Tid(operator, whole),
                None => Predicate::Pid(operator, whole),
            },
            (Field::Path(place, path), whole) => match (self.find(*place, path), whole) {
                (Some(field), _) => compare_field(field, operator, value),
                (None, Some(whole)) => match packet_member(self.stream, *place, path) {
                    Some(node) => Predicate::Packet(node, operator, whole),
                    None => {
                        let member = header_member(self.stream, self.event, *place, path);
                        Predicate::Const(known(member, operator, whole))
                    }
                },
                _ => Predicate::Const(false),
            },
            _ => Predicate::Const(false),
        }
    }
}

/// Joins the parts that are not constant; without any, the result is `neutral`.
fn join(parts: Vec<Predicate>, neutral: bool, join: fn(Vec<Predicate>) -> Predicate) -> Predicate {
    let mut parts: Vec<_> = parts
        .into_iter()
        .filter(|part| !matches!(part, Predicate::Const(_)))
        .collect();
    match parts.pop() {
        None => Predicate::Const(neutral),
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
    }
}

fn compare_field(field: FieldRef, operator: Operator, value: &Value) -> Predicate {
    let kind = field.kind().clone();
    let field = Box::new(field);
    match (&kind, value) {
        (NodeKind::Int(_, class) | NodeKind::VarInt(class), Value::Integer(whole)) => {
            Predicate::Integer(field, class.signed, operator, *whole)
        }
        (NodeKind::Int(_, class) | NodeKind::VarInt(class), Value::Float(number, _)) => {
            Predicate::IntegerAsFloat(field, class.signed, operator, *number)
        }
        (NodeKind::Int(_, class) | NodeKind::VarInt(class), Value::Text(_)) if class.is_enum => {
            label(field, class, operator, value)
        }
        (NodeKind::Bool(_), Value::Integer(whole)) => {
            Predicate::Integer(field, false, operator, *whole)
        }
        (NodeKind::Bool(_), Value::Text(text)) => match text.as_str() {
            "true" => Predicate::Integer(field, false, operator, 1),
            "false" => Predicate::Integer(field, false, operator, 0),
            _ => Predicate::Const(false),
        },
        (NodeKind::BitArray(..) | NodeKind::BitMap(..), Value::Integer(whole)) => {
            Predicate::Integer(field, false, operator, *whole)
        }
        (NodeKind::Float(_), Value::Integer(whole)) => {
            Predicate::Float(field, operator, *whole as f64)
        }
        (NodeKind::Float(_), Value::Float(number, _)) => Predicate::Float(field, operator, *number),
        (NodeKind::Str(_) | NodeKind::SizedStr(..), _) => {
            Predicate::Bytes(field, Text::new(operator, value))
        }
        _ => Predicate::Const(false),
    }
}

/// Compares the labels once, and keeps the ranges of those for which the comparison holds.
fn label(field: Box<FieldRef>, class: &IntClass, operator: Operator, value: &Value) -> Predicate {
    let (negated, positive) = match operator {
        Operator::NotEqual => (true, Operator::Equal),
        Operator::MatchesNot => (true, Operator::Matches),
        Operator::Equal | Operator::Matches => (false, operator),
        // Labels have no order.
        _ => return Predicate::Const(false),
    };
    let text = Text::new(positive, value);
    let mappings = class
        .mappings
        .iter()
        .filter(|mapping| text.holds(mapping.label.as_bytes()));
    let ranges = mappings
        .flat_map(|mapping| &mapping.ranges)
        .map(|range| (range.lower, range.upper))
        .collect();
    Predicate::Label(field, class.signed, ranges, !negated)
}

pub(crate) fn whole(raw: u64, signed: bool) -> i128 {
    if signed {
        i128::from(raw as i64)
    } else {
        i128::from(raw)
    }
}

impl Predicate {
    /// False if the predicate is known to hold for no event record. Meant for a single comparison:
    /// and, or and not are not examined.
    fn can_hold(&self) -> bool {
        match self {
            Predicate::Const(value) => *value,
            Predicate::Label(_, _, ranges, true) => !ranges.is_empty(),
            _ => true,
        }
    }

    fn holds(&self, event: &mut At<'_, '_>, subject: &Subject<'_>) -> bool {
        let integer =
            |field: &FieldRef, event: &mut At<'_, '_>| field.integer(event.body, event.slots).ok();
        match self {
            Predicate::Const(value) => *value,
            Predicate::And(parts) => parts.iter().all(|part| part.holds(event, subject)),
            Predicate::Or(parts) => parts.iter().any(|part| part.holds(event, subject)),
            Predicate::Not(inner) => !inner.holds(event, subject),
            Predicate::Time(operator, time) => operator.holds(subject.time.cmp(time)),
            Predicate::Cpu(operator, value) => {
                known(subject.cpu.map(i128::from), *operator, *value)
            }
            Predicate::Tid(operator, value) => {
                known(subject.tid.map(i128::from), *operator, *value)
            }
            Predicate::Pid(operator, value) => {
                known(subject.pid.map(i128::from), *operator, *value)
            }
            Predicate::Procname(text) => subject.procname.is_some_and(|name| text.holds(name)),
            Predicate::Integer(field, signed, operator, value) => integer(field, event)
                .is_some_and(|raw| operator.holds(whole(raw, *signed).cmp(value))),
            Predicate::IntegerAsFloat(field, signed, operator, value) => {
                let number = integer(field, event).map(|raw| whole(raw, *signed) as f64);
                number.is_some_and(|number| floats(number, *operator, *value))
            }
            Predicate::Label(field, signed, ranges, wanted) => {
                integer(field, event).is_some_and(|raw| {
                    let value = whole(raw, *signed);
                    ranges
                        .iter()
                        .any(|&(lower, upper)| lower <= value && value <= upper)
                        == *wanted
                })
            }
            Predicate::Float(field, operator, value) => field
                .float(event.body, event.slots)
                .is_ok_and(|number| floats(number, *operator, *value)),
            Predicate::Bytes(field, text) => field
                .bytes(event.body, event.slots)
                .is_ok_and(|bytes| text.holds(bytes)),
            Predicate::Packet(node, operator, value) => {
                let found = subject.packet.iter().find(|(id, _)| id == node);
                found.is_some_and(|(_, raw)| operator.holds(i128::from(*raw).cmp(value)))
            }
        }
    }
}

fn known(found: Option<i128>, operator: Operator, value: i128) -> bool {
    found.is_some_and(|found| operator.holds(found.cmp(&value)))
}

/// NaN compares with nothing, not even with itself.
fn floats(found: f64, operator: Operator, value: f64) -> bool {
    found
        .partial_cmp(&value)
        .map_or(operator == Operator::NotEqual, |ordering: Ordering| {
            operator.holds(ordering)
        })
}
