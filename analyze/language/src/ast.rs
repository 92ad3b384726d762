//! The syntax tree.

use crate::glob::Glob;

/// A condition on event records.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Conjunction: every part holds.
    And(Vec<Expr>),
    /// Disjunction: at least one part holds.
    Or(Vec<Expr>),
    /// Negation.
    Not(Box<Expr>),
    /// The event class's name matches the pattern.
    Event(Glob),
    /// The field exists, and the comparison of its value with this one holds.
    Compare(Field, Operator, Value),
    /// The field exists.
    Has(Field),
}

/// The left side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// Name of the event class.
    Name,
    /// Time of the event record.
    Time,
    /// CPU on which the event record was written.
    Cpu,
    /// Thread of the event record: from its own fields, else the thread that runs on its CPU.
    Tid,
    /// [`Field::Tid`] from the event record's own fields only. Not part of the language: following
    /// the running thread requires reading all switches.
    OwnTid,
    /// Process of the event record.
    Pid,
    /// Name of the thread of the event record.
    Procname,
    /// Value of that name in the trace environment (`hostname` is `env.hostname`).
    Environment(String),
    /// A field: the scopes in which it is looked up, and the names of the members that lead to it.
    Path(Where, Vec<String>),
}

/// Scopes in which a field is looked up, in the listed order.
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

/// A comparison of two values.
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
    /// `!~`: does not match the glob pattern.
    MatchesNot,
}

impl Operator {
    /// The operator as written in an expression.
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

    /// Whether the comparison holds for two values of that ordering.
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

/// The right side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i128),
    /// A number that is not whole. Its text is kept for times, which need all digits.
    Float(f64, String),
    /// A string or an unquoted word.
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
