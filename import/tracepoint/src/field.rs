//! A line of a `format` file: `field:TYPE NAME[N]; offset:O; size:S; signed:B;`.

/// A field of a tracepoint's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// A C identifier.
    pub name: String,
    /// Offset in bytes from the beginning of the record.
    pub offset: u32,
    /// Size in bytes; 0 if the field extends to the end of the record.
    pub size: u32,
    /// Interpretation of the bytes.
    pub kind: FieldContent,
}

/// Content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldContent {
    /// An integer of 1, 2, 4 or 8 bytes.
    Int(Number),
    /// Characters, up to a null character or the end of the field.
    Text,
    /// This number of integers.
    Array(Number, u32),
    /// Bytes of an unknown type.
    Opaque,
    /// Offset and length of data elsewhere in the record.
    Dynamic(OffsetBase, Element),
    /// The rest of the record.
    Tail(Element),
}

/// The position that the offset of a dynamic field is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetBase {
    /// The beginning of the record (`__data_loc`).
    Record,
    /// The end of the field itself (`__rel_loc`).
    Field,
}

/// Content of a dynamic field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// A string.
    Text,
    /// Integers.
    Number(Number),
}

/// An integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Size in bytes: 1, 2, 4 or 8.
    pub bytes: u32,
    /// Two's complement.
    pub signed: bool,
    /// The integer is or may be an address, which the kernel stores in `unsigned long`; displayed
    /// in hexadecimal.
    pub hex: bool,
}

impl Field {
    /// Parses the text after `field:`; `long` is the size of the kernel's `long` in bytes.
    pub(crate) fn parse(line: &str, long: u32) -> Option<Field> {
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next()?;
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in parts {
            match part.split_once(':') {
                Some(("offset", value)) => offset = value.trim().parse().ok(),
                Some(("size", value)) => size = value.trim().parse().ok(),
                Some(("signed", value)) => signed = value.trim() == "1",
                _ => {}
            }
        }
        let (offset, size) = (offset?, size?);
        let declaration = Declaration::parse(declaration)?;
        Some(Field {
            kind: declaration.kind(size, signed, long),
            name: identifier(declaration.name)?,
            offset,
            size,
        })
    }

    /// Offset of the end of the field in the record, in bytes.
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.size)
    }
}

/// The parts of a declaration such as `unsigned char saddr[4]`.
#[derive(Debug)]
struct Declaration<'a> {
    place: Option<OffsetBase>,
    /// `unsigned char`
    type_name: &'a str,
    name: &'a str,
    /// The text between brackets, after the name or the type.
    count: Option<&'a str>,
}

impl<'a> Declaration<'a> {
    fn parse(text: &'a str) -> Option<Declaration<'a>> {
        let (place, text) = match text.split_once(' ') {
            Some(("__data_loc", rest)) => (Some(OffsetBase::Record), rest),
            Some(("__rel_loc", rest)) => (Some(OffsetBase::Field), rest),
            _ => (None, text),
        };
        let (text, mut count) = match text
            .strip_suffix(']')
            .and_then(|text| text.rsplit_once('['))
        {
            Some((before, count)) => (before.trim_end(), Some(count)),
            None => (text, None),
        };
        let at = text.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')? + 1;
        let (mut type_name, name) = (text.get(..at)?.trim(), text.get(at..)?);
        if let Some((element, inner)) = type_name
            .strip_suffix(']')
            .and_then(|name| name.rsplit_once('['))
        {
            (type_name, count) = (element.trim(), count.or(Some(inner)));
        }
        Some(Declaration {
            place,
            type_name,
            name,
            count,
        })
    }

    fn kind(&self, size: u32, signed: bool, long: u32) -> FieldContent {
        let plain = self.type_name.trim_start_matches("const ").trim();
        let number = |bytes| Number {
            bytes,
            signed,
            hex: plain.contains('*') || !signed && plain.contains("long"),
        };
        let element = match (plain, self.element_bytes(plain, long)) {
            ("char", _) => Element::Text,
            (_, bytes) => Element::Number(number(bytes.unwrap_or(1))),
        };
        if let (Some(place), 4) = (self.place, size) {
            return FieldContent::Dynamic(place, element);
        }
        if size == 0 {
            return FieldContent::Tail(element);
        }
        if self.count.is_none() {
            return match size {
                1 | 2 | 4 | 8 => FieldContent::Int(number(size)),
                _ => FieldContent::Opaque,
            };
        }
        if element == Element::Text {
            return FieldContent::Text;
        }
        let told = self
            .count
            .and_then(|count| count.trim().parse::<u32>().ok());
        let by_count = told
            .filter(|&count| size.is_multiple_of(count))
            .and_then(|count| size.checked_div(count));
        match by_count.or(self.element_bytes(plain, long)) {
            Some(bytes @ (1 | 2 | 4 | 8)) if size.is_multiple_of(bytes) => {
                FieldContent::Array(number(bytes), size / bytes)
            }
            _ => FieldContent::Opaque,
        }
    }

    /// Size in bytes of an element, by the name of its type.
    fn element_bytes(&self, plain: &str, long: u32) -> Option<u32> {
        if plain.contains('*') {
            return Some(long);
        }
        let name = plain
            .trim_start_matches("unsigned ")
            .trim_start_matches("signed ");
        Some(match name.trim_start_matches("__") {
            "char" | "u8" | "s8" | "uint8_t" | "int8_t" | "bool" => 1,
            "short" | "u16" | "s16" | "uint16_t" | "int16_t" | "be16" | "le16" => 2,
            "int" | "unsigned" | "u32" | "s32" | "uint32_t" | "int32_t" | "be32" | "le32"
            | "pid_t" | "gid_t" | "uid_t" | "dev_t" => 4,
            "long long" | "u64" | "s64" | "uint64_t" | "int64_t" | "be64" | "le64" | "loff_t"
            | "sector_t" => 8,
            "long" | "size_t" | "cpumask_t" | "uintptr_t" => long,
            _ => return None,
        })
    }
}

/// The name, if it is a valid identifier.
fn identifier(name: &str) -> Option<String> {
    let is_sound = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit());
    is_sound.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Field {
        Field::parse(text, 8).unwrap_or_else(|| panic!("{text}"))
    }

    #[track_caller]
    fn check(text: &str, name: &str, kind: FieldContent) {
        let field = parse(text);
        assert_eq!((field.name.as_str(), field.kind), (name, kind), "{text}");
    }

    fn number(bytes: u32, signed: bool, hex: bool) -> Number {
        Number { bytes, signed, hex }
    }

    #[test]
    fn every_kind_of_declaration_is_understood() {
        check(
            "pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;",
            "prev_pid",
            FieldContent::Int(number(4, true, false)),
        );
        check(
            "const char * filename;\toffset:24;\tsize:8;\tsigned:0;",
            "filename",
            FieldContent::Int(number(8, false, true)),
        );
        check(
            "char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;",
            "prev_comm",
            FieldContent::Text,
        );
        check(
            "char comm[TASK_COMM_LEN];\toffset:8;\tsize:16;\tsigned:0;",
            "comm",
            FieldContent::Text,
        );
        check(
            "__u8 saddr[4];\toffset:8;\tsize:4;\tsigned:0;",
            "saddr",
            FieldContent::Array(number(1, false, false), 4),
        );
        check(
            "unsigned long args[0];\toffset:16;\tsize:48;\tsigned:0;",
            "args",
            FieldContent::Array(number(8, false, true), 6),
        );
        check(
            "unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;",
            "args",
            FieldContent::Array(number(8, false, true), 6),
        );
        check(
            "__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;",
            "name",
            FieldContent::Dynamic(OffsetBase::Record, Element::Text),
        );
        check(
            "__rel_loc cpumask_t[] mask;\toffset:8;\tsize:4;\tsigned:0;",
            "mask",
            FieldContent::Dynamic(OffsetBase::Field, Element::Number(number(8, false, false))),
        );
        check(
            "char buf[];\toffset:16;\tsize:0;\tsigned:0;",
            "buf",
            FieldContent::Tail(Element::Text),
        );
        check(
            "struct foo bar;\toffset:16;\tsize:24;\tsigned:0;",
            "bar",
            FieldContent::Opaque,
        );
    }

    #[test]
    fn what_is_no_field_is_none() {
        for text in [
            "",
            "int;",
            "int a;",
            "int a; offset:x; size:4;",
            "int a b-; offset:0; size:4;",
        ] {
            assert_eq!(Field::parse(text, 8), None, "{text}");
        }
    }
}
