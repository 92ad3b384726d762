//! Field classes in TSDL.
//!
//! Open classes are kept in a list, so field classes may be nested to any depth.

use std::fmt::Write;

use super::super::error::WriteError;
use super::locate::FieldScopes;
use crate::schema::{
    ByteOrder, CtfVersion, DisplayBase, Encoding, FieldClass, FieldLocation, IntClass, IntRange,
    Parts, Scope, VariantClass,
};

/// Words that are not identifiers.
const KEYWORDS: [&str; 31] = [
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
    // Not words of the language, but of stricter readers.
    "complex",
    "imaginary",
    "bool",
];

/// Largest number of levels by which lines are indented: with more, the size of the text would grow
/// with the square of the number of levels.
const MOST_TABS: usize = 16;

/// True if the name can be written without quotes.
pub(super) fn is_identifier(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
}

/// A string literal.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
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

/// Writes the root class of a scope.
pub(super) fn root(
    text: &mut String,
    place: FieldScopes<'_>,
    scope: Scope,
    class: &FieldClass,
) -> Result<(), WriteError> {
    let mut writer = Writer {
        text,
        place,
        scope,
        path: Vec::new(),
        open: Vec::new(),
    };
    writer.begin(class, String::new())?;
    writer.rest()
}

/// A structure or variant whose parts are being written.
struct Open<'c> {
    class: &'c FieldClass,
    parts: Parts<'c>,
    next: u32,
    /// Number of steps of the path to it.
    depth: usize,
    /// Text after its closing brace: alignment, name and lengths.
    behind: String,
}

struct Writer<'t, 'c> {
    text: &'t mut String,
    place: FieldScopes<'c>,
    scope: Scope,
    /// Path to the field that is being written.
    path: Vec<u32>,
    open: Vec<Open<'c>>,
}

impl<'c> Writer<'_, 'c> {
    fn refuse<T>(&self, what: &str) -> Result<T, WriteError> {
        let root = self.place.root(self.scope);
        let mut name = String::new();
        let mut class = root;
        for &step in &self.path {
            let part = class.and_then(|class| class.parts().nth(step as usize));
            if let Some(part) = part.and_then(|(name, _)| name) {
                let _ = write!(name, "{}{part}", if name.is_empty() { "" } else { "." });
            }
            class = part.map(|(_, class)| class);
        }
        let event = match self.place.event {
            Some(event) => format!("event `{}`: ", event.name),
            None => String::new(),
        };
        Err(WriteError::inexpressible(
            CtfVersion::V1_8,
            format!("{event}field `{name}`: {what}"),
        ))
    }

    /// Writes the remaining parts of all open classes.
    fn rest(&mut self) -> Result<(), WriteError> {
        while let Some(open) = self.open.last_mut() {
            self.path.truncate(open.depth);
            let Some((name, part)) = open.parts.next() else {
                if let Some(open) = self.open.pop() {
                    self.indent();
                    self.text.push('}');
                    self.text.push_str(&open.behind);
                }
                continue;
            };
            self.path.push(open.next);
            open.next += 1;
            let class = open.class;
            let name = name.map_or("", |name| name.as_str());
            let identifier = match class {
                FieldClass::Variant(class) => self.option(class, name)?,
                _ => self.member(name)?,
            };
            self.indent();
            self.declaration(identifier, part)?;
        }
        Ok(())
    }

    fn indent(&mut self) {
        let tabs = (self.open.len() + 1).min(MOST_TABS);
        self.text.extend(std::iter::repeat_n('\t', tabs));
    }

    /// Writes a member or an option. Arrays have their lengths after the name.
    fn declaration(&mut self, identifier: String, class: &'c FieldClass) -> Result<(), WriteError> {
        let mut behind = format!(" {identifier}");
        let mut class = class;
        loop {
            match class {
                FieldClass::Array { min_align, .. } | FieldClass::Sequence { min_align, .. }
                    if *min_align != 1 =>
                {
                    return self.refuse("arrays have no alignment of their own");
                }
                FieldClass::Array {
                    element, length, ..
                } => {
                    let _ = write!(behind, "[{length}]");
                    class = element;
                }
                FieldClass::Sequence {
                    element, length, ..
                } => {
                    let length = self.location(length)?;
                    let _ = write!(behind, "[ {length} ]");
                    class = element;
                }
                _ => break,
            }
            self.path.push(0);
        }
        behind.push_str(";\n");
        self.begin(class, behind)
    }

    /// Writes a type and the text after it. For a type with parts, writes only the beginning.
    fn begin(&mut self, class: &'c FieldClass, behind: String) -> Result<(), WriteError> {
        match class {
            FieldClass::Int(int) if int.is_enum => self.enumeration(int)?,
            FieldClass::Int(int) => {
                let integer = self.integer(int)?;
                self.text.push_str(&integer);
            }
            FieldClass::Float {
                length,
                align,
                byte_order,
                reversed_bits,
            } => self.float(*length, *align, *byte_order, *reversed_bits)?,
            FieldClass::Str {
                encoding: Encoding::Utf8,
            } => self.text.push_str("string"),
            FieldClass::Str { .. } => return self.refuse("strings are in UTF-8"),
            FieldClass::Struct(structure) => {
                self.text.push_str("struct {\n");
                let align = match structure.min_align {
                    1 => String::new(),
                    align => format!(" align({align})"),
                };
                self.open(class, format!("{align}{behind}"));
                return Ok(());
            }
            FieldClass::Variant(variant) => {
                let selector = self.location(&variant.selector)?;
                let _ = writeln!(self.text, "variant <{selector}> {{");
                self.open(class, behind);
                return Ok(());
            }
            _ => return self.refuse("no such field type exists"),
        }
        self.text.push_str(&behind);
        Ok(())
    }

    fn open(&mut self, class: &'c FieldClass, behind: String) {
        self.open.push(Open {
            class,
            parts: class.parts(),
            next: 0,
            depth: self.path.len(),
            behind,
        });
    }

    fn order(&self, order: ByteOrder) -> &'static str {
        match order {
            _ if order == self.place.class.byte_order => "",
            ByteOrder::Little => " byte_order = le;",
            ByteOrder::Big => " byte_order = be;",
        }
    }

    /// An integer in LTTng's style.
    fn integer(&self, class: &IntClass) -> Result<String, WriteError> {
        if class.reversed_bits {
            return self.refuse("bits in the reverse order");
        }
        let encoding = match class.encoding {
            None => "none",
            Some(Encoding::Utf8) => "UTF8",
            Some(_) => return self.refuse("text is in UTF-8"),
        };
        let base = match class.base {
            DisplayBase::Binary => 2,
            DisplayBase::Octal => 8,
            DisplayBase::Decimal => 10,
            DisplayBase::Hexadecimal => 16,
        };
        let mut text = format!(
            "integer {{ size = {}; align = {}; signed = {}; encoding = {encoding}; base = {base};{}",
            class.length,
            class.align,
            u8::from(class.signed),
            self.order(class.byte_order)
        );
        if let Some(clock) = class.clock {
            match self.place.class.clocks.get(clock) {
                Some(clock) => {
                    let _ = write!(text, " map = clock.{}.value;", clock.id);
                }
                None => return self.refuse("a clock class that does not exist"),
            }
        }
        text.push_str(" }");
        Ok(text)
    }

    fn float(
        &mut self,
        length: u32,
        align: u32,
        order: ByteOrder,
        reversed: bool,
    ) -> Result<(), WriteError> {
        let (exponent, mantissa) = match length {
            16 => (5, 11),
            32 => (8, 24),
            64 => (11, 53),
            128 => (15, 113),
            _ => {
                return self.refuse("a floating-point number of other than 16, 32, 64 or 128 bits");
            }
        };
        if reversed {
            return self.refuse("bits in the reverse order");
        }
        let order = self.order(order);
        let _ = write!(
            self.text,
            "floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = {align};{order} }}"
        );
        Ok(())
    }

    fn enumeration(&mut self, class: &IntClass) -> Result<(), WriteError> {
        let integer = self.integer(class)?;
        let _ = write!(self.text, "enum : {integer} {{");
        for mapping in class.mappings.iter() {
            let label = if is_identifier(&mapping.label) {
                mapping.label.clone()
            } else {
                quoted(&mapping.label)
            };
            if mapping.ranges.is_empty() {
                return self.refuse("a label without values");
            }
            for IntRange { lower, upper } in &mapping.ranges {
                let _ = if lower == upper {
                    write!(self.text, " {label} = {lower},")
                } else {
                    write!(self.text, " {label} = {lower} ... {upper},")
                };
            }
        }
        self.text.push_str(" }");
        Ok(())
    }

    /// The identifier of a member. Readers remove a leading underscore. As in LTTng's traces, all
    /// members have one, except fields of headers, which readers recognize by their names.
    fn member(&self, name: &str) -> Result<String, WriteError> {
        let plain = matches!(
            self.scope,
            Scope::PacketHeader | Scope::PacketContext | Scope::EventHeader
        );
        match identifier(name, plain) {
            Some(identifier) => Ok(identifier),
            None => self.refuse("its name is not an identifier"),
        }
    }

    /// The identifier of an option: exactly the label of the selector that selects it.
    fn option(&self, variant: &VariantClass, name: &str) -> Result<String, WriteError> {
        let option = self
            .path
            .last()
            .and_then(|&index| variant.options.get(index as usize));
        let ranges = option.map_or(&[][..], |option| &option.ranges);
        let selector = self.place.names(&variant.selector);
        let Some((FieldClass::Int(selector), _)) = selector else {
            return self.refuse("its selector is not an enumeration");
        };
        let escaped = format!("_{name}");
        let labels = selector
            .mappings
            .iter()
            .map(|mapping| mapping.label.as_str());
        let mut labels =
            labels.filter(|label| !label.is_empty() && (*label == escaped || *label == name));
        let found = labels.next();
        if found.is_none() && !ranges.is_empty() {
            return self.refuse("its selector has no label with the name of this option");
        }
        match found {
            // The underscore that readers remove must not be part of the name.
            Some(label) if label == name && label.starts_with('_') => Ok(escaped),
            Some(label) if is_identifier(label) => Ok(label.to_owned()),
            _ => match identifier(name, true) {
                Some(identifier) => Ok(identifier),
                None => self.refuse("its name is not an identifier"),
            },
        }
    }

    /// Relative if the scope is that of the field, else absolute.
    fn location(&self, location: &FieldLocation) -> Result<String, WriteError> {
        let Some((_, names)) = self.place.names(location) else {
            return self.refuse("a length or selector that does not exist");
        };
        let plain = matches!(
            location.scope,
            Scope::PacketHeader | Scope::PacketContext | Scope::EventHeader
        );
        let mut words = Vec::with_capacity(names.len());
        for name in &names {
            match identifier(name, plain) {
                Some(word) => words.push(word),
                None => {
                    return self
                        .refuse("its length or selector has a name that is not an identifier");
                }
            }
        }
        let path = location.paths.first().map_or(&[][..], Vec::as_slice);
        if location.scope == self.scope
            && let Some(shared) = self.relative(path, &names)
        {
            return Ok(words.get(shared..).unwrap_or_default().join("."));
        }
        let scope = match location.scope {
            Scope::PacketHeader => "trace.packet.header",
            Scope::PacketContext => "stream.packet.context",
            Scope::EventHeader => "stream.event.header",
            Scope::CommonContext => "stream.event.context",
            Scope::SpecificContext => "event.context",
            Scope::Payload => "event.fields",
        };
        Ok(format!("{scope}.{}", words.join(".")))
    }

    /// Number of leading names that can be omitted; `None` if a nearer structure has a member with
    /// the name that would then come first.
    fn relative(&self, path: &[u32], names: &[&str]) -> Option<usize> {
        let steps = path.iter().zip(&self.path);
        let common = steps.take_while(|(one, other)| one == other).count();
        let mut class = self.place.root(self.scope)?;
        let (mut shared, mut behind) = (0, false);
        for (depth, &step) in self.path.iter().enumerate() {
            if let FieldClass::Struct(structure) = class {
                let first = names.get(shared)?;
                if behind && structure.members.iter().any(|member| member.name == *first) {
                    return None;
                }
                if depth < common {
                    shared += 1;
                } else {
                    behind = true;
                }
            }
            class = class.parts().nth(step as usize)?.1;
        }
        names.get(shared).map(|_| shared)
    }
}

/// The identifier for a name, with an underscore that readers remove; `plain`: only if it is
/// necessary.
fn identifier(name: &str, plain: bool) -> Option<String> {
    let escaped = format!("_{name}");
    if plain && is_identifier(name) && !name.starts_with('_') {
        Some(name.to_owned())
    } else {
        is_identifier(&escaped).then_some(escaped)
    }
}
