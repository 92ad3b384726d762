//! The value of a field, as decoded by the reference reader or as written by the generator.

/// Value of a field.
///
/// Without names: these are in the field's class, whose members and options have the same order.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Signed integer of at most 64 bits.
    Int(i64),
    /// Unsigned integer of at most 64 bits.
    UInt(u64),
    /// Integer of more than 64 bits (CTF 1.8): its bytes, least significant first; the unused bits
    /// of the last byte are zero.
    Wide(Vec<u8>),
    /// Boolean.
    Bool(bool),
    /// Bit array or bit map.
    Bits(u64),
    /// Floating point number as its raw IEEE 754 bits, so that NaNs can be compared.
    Float {
        /// 16, 32, 64 or 128.
        length: u32,
        /// Raw bits.
        bits: u128,
    },
    /// String without its terminator; invalid sequences of its encoding are U+FFFD.
    Str(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// Elements of an array, static or dynamic.
    Array(Vec<Value>),
    /// Members of a structure.
    Struct(Vec<Value>),
    /// The selected option of a variant.
    Variant {
        /// Its index.
        option: usize,
        /// Its value.
        value: Box<Value>,
    },
    /// Optional field: its value if present.
    Optional(Option<Box<Value>>),
}

impl Value {
    /// The integer, boolean or bit array as an integer.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Value::Int(value) => Some(i128::from(*value)),
            Value::UInt(value) | Value::Bits(value) => Some(i128::from(*value)),
            Value::Bool(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// The value of a floating-point number of 32 or 64 bits.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float { length: 32, bits } => Some(f64::from(f32::from_bits(*bits as u32))),
            Value::Float { length: 64, bits } => Some(f64::from_bits(*bits as u64)),
            _ => None,
        }
    }

    /// The text of an array of 8-bit integers that CTF 1.8 calls text (`encoding = UTF8`): up to
    /// the first null byte.
    pub fn array_text(&self) -> Option<String> {
        let Value::Array(elements) = self else {
            return None;
        };
        let bytes: Vec<u8> = elements
            .iter()
            .map_while(|element| {
                element
                    .as_integer()
                    .filter(|&byte| byte != 0)
                    .map(|byte| byte as u8)
            })
            .collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}
