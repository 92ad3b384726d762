//! Field classes in TSDL.

use std::collections::HashMap;
use std::fmt::Write;
use tracebraid_ctf::schema::{
    ByteOrder, DisplayBase, FieldClass, FieldLocation, IntClass, Scope, StructClass, TraceClass,
    VariantClass,
};

/// Keywords, which cannot be identifiers.
const KEYWORDS: [&str; 29] = [
    "align",
    "callsite",
    "char",
    "clock",
    "const",
    "double",
    "enum",
    "env",
    "event",
    "float",
    "floating_point",
    "int",
    "integer",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "unsigned",
    "variant",
    "void",
    "_Bool",
    "_Complex",
    "_Imaginary",
    "enumeration",
];

/// Members whose names have a meaning to readers: they are never escaped.
const MEANINGFUL: [&str; 17] = [
    "magic",
    "uuid",
    "stream_id",
    "stream_instance_id",
    "packet_size",
    "content_size",
    "packet_seq_num",
    "events_discarded",
    "timestamp_begin",
    "timestamp_end",
    "cpu_id",
    "id",
    "timestamp",
    "v",
    "compact",
    "extended",
    "header",
];

/// A string literal.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_ascii_control() => {
                let _ = write!(quoted, "\\{:03o}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A small hash that chooses between equivalent forms, so that both occur.
fn parity(text: &str) -> bool {
    text.bytes().fold(7u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u32::from(byte))
    }) % 3
        == 0
}

/// The identifier of a member or option: readers remove one leading underscore.
pub(super) fn identifier(name: &str) -> String {
    let must_escape = name.starts_with('_') || KEYWORDS.contains(&name);
    if must_escape || (!MEANINGFUL.contains(&name) && parity(name)) {
        format!("_{name}")
    } else {
        name.to_string()
    }
}

/// Writes field classes; collects the aliases that they use.
pub(super) struct Fields<'a> {
    class: &'a TraceClass,
    stream: Option<usize>,
    event: Option<usize>,
    scope: Scope,
    path: Vec<u32>,
    aliases: HashMap<String, String>,
    alias_text: String,
}

impl<'a> Fields<'a> {
    pub(super) fn new(class: &'a TraceClass) -> Self {
        Fields {
            class,
            stream: None,
            event: None,
            scope: Scope::PacketHeader,
            path: Vec::new(),
            aliases: HashMap::new(),
            alias_text: String::new(),
        }
    }

    /// Sets the stream and event class of the next roots.
    pub(super) fn set_place(&mut self, stream: Option<usize>, event: Option<usize>) {
        self.stream = stream;
        self.event = event;
    }

    /// The declarations of the aliases used since the last call.
    pub(super) fn take_aliases(&mut self) -> String {
        std::mem::take(&mut self.alias_text)
    }

    /// The root class of a scope.
    pub(super) fn root(&mut self, scope: Scope, class: &FieldClass) -> String {
        self.scope = scope;
        self.path.clear();
        self.specifier(class, 1)
    }

    /// A declaration of a member or an option: specifier, name, and lengths of arrays.
    fn declaration(&mut self, identifier: &str, class: &FieldClass, depth: usize) -> String {
        match class {
            FieldClass::Array {
                element, length, ..
            } => {
                self.path.push(0);
                let element = self.specifier(element, depth);
                self.path.pop();
                format!("{element} {identifier}[{length}]")
            }
            FieldClass::Sequence {
                element, length, ..
            } => {
                let length = self.location(length);
                self.path.push(0);
                let element = self.specifier(element, depth);
                self.path.pop();
                format!("{element} {identifier}[ {length} ]")
            }
            class => format!("{} {identifier}", self.specifier(class, depth)),
        }
    }

    /// A type specifier.
    fn specifier(&mut self, class: &FieldClass, depth: usize) -> String {
        match class {
            FieldClass::Int(int) if int.is_enum => self.enumeration(int, depth),
            FieldClass::Int(int) => {
                let text = self.integer(int);
                // Not in a packet header, where aliases would precede the clocks.
                if parity(&text) && self.scope != Scope::PacketHeader {
                    self.alias(text)
                } else {
                    text
                }
            }
            FieldClass::Float {
                length,
                align,
                byte_order,
                ..
            } => {
                let (exponent, mantissa) = if *length == 32 { (8, 24) } else { (11, 53) };
                format!(
                    "floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = {align}; byte_order = {}; }}",
                    self.byte_order(*byte_order)
                )
            }
            FieldClass::Str { .. } => "string { encoding = UTF8; }".into(),
            FieldClass::Struct(class) => self.structure(class, depth),
            FieldClass::Variant(class) => self.variant(class, depth),
            // CTF 1.8 has no other classes; arrays of arrays are not written.
            _ => "/* not a class of CTF 1.8 */".into(),
        }
    }

    fn alias(&mut self, text: String) -> String {
        if let Some(name) = self.aliases.get(&text) {
            return name.clone();
        }
        let name = format!("alias{}_t", self.aliases.len());
        let _ = writeln!(self.alias_text, "typealias {text} := {name};");
        self.aliases.insert(text, name.clone());
        name
    }

    fn byte_order(&self, order: ByteOrder) -> &'static str {
        match order {
            _ if order == self.class.byte_order => "native",
            ByteOrder::Little => "le",
            ByteOrder::Big => "network",
        }
    }

    fn integer(&self, class: &IntClass) -> String {
        let mut text = format!(
            "integer {{ size = {}; align = {};",
            class.length, class.align
        );
        if class.signed {
            text.push_str(" signed = true;");
        }
        let base = match class.base {
            DisplayBase::Binary => " base = binary;",
            DisplayBase::Octal => " base = 8;",
            DisplayBase::Decimal => "",
            DisplayBase::Hexadecimal => " base = x;",
        };
        text.push_str(base);
        if class.byte_order != self.class.byte_order || parity(&text) {
            let _ = write!(text, " byte_order = {};", self.byte_order(class.byte_order));
        }
        if class.encoding.is_some() {
            text.push_str(" encoding = UTF8;");
        }
        if let Some(clock) = class.clock.and_then(|clock| self.class.clocks.get(clock)) {
            let _ = write!(text, " map = clock.{}.value;", clock.id);
        }
        text.push_str(" }");
        text
    }

    fn enumeration(&self, class: &IntClass, depth: usize) -> String {
        let mut text = format!("enum : {} {{", self.integer(class));
        let indent = "\t".repeat(depth + 1);
        for mapping in class.mappings.iter() {
            for range in &mapping.ranges {
                let label = label(&mapping.label);
                let _ = if range.lower == range.upper {
                    write!(text, "\n{indent}{label} = {},", range.lower)
                } else {
                    write!(
                        text,
                        "\n{indent}{label} = {} ... {},",
                        range.lower, range.upper
                    )
                };
            }
        }
        let _ = write!(text, "\n{}}}", "\t".repeat(depth));
        text
    }

    fn structure(&mut self, class: &StructClass, depth: usize) -> String {
        let mut text = String::from("struct {\n");
        for (index, member) in class.members.iter().enumerate() {
            self.path.push(index as u32);
            let member = self.declaration(&identifier(&member.name), &member.class, depth + 1);
            self.path.pop();
            let _ = writeln!(text, "{}{member};", "\t".repeat(depth + 1));
        }
        let _ = write!(text, "{}}}", "\t".repeat(depth));
        if class.min_align != 1 {
            let _ = write!(text, " align({})", class.min_align);
        }
        text
    }

    fn variant(&mut self, class: &VariantClass, depth: usize) -> String {
        let mut text = format!("variant <{}> {{\n", self.location(&class.selector));
        for (index, option) in class.options.iter().enumerate() {
            self.path.push(index as u32);
            // The label of the enumeration, verbatim: readers compare before they unescape.
            let name = option.name.as_deref().unwrap_or("unnamed");
            let option = self.declaration(name, &option.class, depth + 1);
            self.path.pop();
            let _ = writeln!(text, "{}{option};", "\t".repeat(depth + 1));
        }
        let _ = write!(text, "{}}}", "\t".repeat(depth));
        text
    }

    /// The location relative to the current field if they share a scope, else absolute.
    fn location(&self, location: &FieldLocation) -> String {
        let path = location.paths.first().map(Vec::as_slice).unwrap_or(&[]);
        let Some(root) = super::scope_root(self.class, location.scope, self.stream, self.event)
        else {
            return "nowhere".into();
        };
        let names: Vec<String> = super::member_names(root, path)
            .iter()
            .map(|name| identifier(name))
            .collect();
        if location.scope == self.scope {
            let common = path
                .iter()
                .zip(&self.path)
                .take_while(|(one, other)| one == other)
                .count();
            let shared = super::member_names(root, &path[..common]).len();
            return names[shared..].join(".");
        }
        let scope = match location.scope {
            Scope::PacketHeader => "trace.packet.header",
            Scope::PacketContext => "stream.packet.context",
            Scope::EventHeader => "stream.event.header",
            Scope::CommonContext => "stream.event.context",
            Scope::SpecificContext => "event.context",
            Scope::Payload => "event.fields",
        };
        format!("{scope}.{}", names.join("."))
    }
}

/// An enumeration's label: an identifier if possible.
fn label(label: &str) -> String {
    let is_identifier = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && label.starts_with(|c: char| c.is_ascii_alphabetic())
        && !KEYWORDS.contains(&label);
    if is_identifier {
        label.to_string()
    } else {
        quoted(label)
    }
}
