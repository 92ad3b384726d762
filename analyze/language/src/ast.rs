//! The syntax tree.

use crate::glob::Glob;

/// A condition on event records.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// All of them hold.
    And(Vec<Expr>),
    /// At least one holds.
    Or(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// The event's name matches.
    Event(Glob),
    /// The field is there and compares so.
    Compare(Field, Operator, Value),
    /// The field is there.
    Has(Field),
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Name of the event.
    Name,
    /// Time of the event record.
    Time,
    /// CPU.
    Cpu,
    /// Thread that the event record belongs to: its own fields name it, or it is the one that runs.
    Tid,
    /// As above, only where fields of the event record name it. Not part of the language: following
    /// the running thread requires reading all switches.
    OwnTid,
    /// Process that the event record belongs to.
    Pid,
    /// Name of that thread.
    Procname,
    /// The trace environment's value of that name (`hostname` is `env.hostname`).
    Environment(String),
    /// A field: in which scopes it is looked for, and the names of members that lead to it.
    Path(Where, Vec<String>),
}

/// Scopes in which a field is looked for, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Payload, specific context, common context, packet context.
    Anywhere,
    /// Payload.
    Payload,
    /// Specific context, common context.
    Context,
    /// Specific context.
    EventContext,
    /// Common context.
    StreamContext,
    /// Packet context.
    Packet,
    /// Header of the event record: `id`, the number of its class.
    Header,
    /// Header of the packet: `stream_id`, the number of the stream's class, and `magic`.
    PacketHeader,
}

/// How values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `=~`: matches the glob pattern.
    Matches,
    /// `!~`: does not match it.
    MatchesNot,
}

impl Operator {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Matches => "=~",
            Operator::MatchesNot => "!~",
        }
    }

    /// Whether it holds for two values that compare so.
    pub fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Operator::Equal | Operator::Matches => ordering.is_eq(),
            Operator::NotEqual | Operator::MatchesNot => ordering.is_ne(),
            Operator::Less => ordering.is_lt(),
            Operator::LessOrEqual => ordering.is_le(),
            Operator::Greater => ordering.is_gt(),
            Operator::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// What it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i128),
    /// Another number; its text serves for times, which need all digits.
    Float(f64, String),
    /// A string, or a word.
    Text(String),
}

impl Value {
    /// The value as it was written.
    pub fn text(&self) -> String {
        match self {
            Value::Integer(number) => number.to_string(),
            Value::Float(_, text) | Value::Text(text) => text.clone(),
        }
    }
}
