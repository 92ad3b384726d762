//! Probes in Rust: [`probe!`](crate::probe).
//!
//! A site registers its event class at its first use; no other declaration is needed. The program
//! that uses the macro needs no `unsafe`.

#![allow(unsafe_code)]

use core::fmt::Write;
use core::sync::atomic::Ordering;

use crate::class::Class;
pub use crate::description::Description;
use crate::description::Fields;
use crate::reserve;

/// Maximum length in bytes of a recorded string or byte array.
pub const MOST_TEXT: usize = 4095;

impl Description {
    /// Appends the declaration of a field.
    pub fn field<T: Field>(&mut self, name: &str) {
        T::describe(&mut self.text_of(name));
    }

    fn text_of<'a>(&'a mut self, name: &'a str) -> FieldText<'a> {
        FieldText {
            text: &mut self.text,
            name,
        }
    }
}

/// A field's declaration in TSDL.
pub struct FieldText<'a> {
    text: &'a mut Fields,
    name: &'a str,
}

impl FieldText<'_> {
    fn integer(&mut self, bits: usize, signed: bool) {
        // The text records an overflow itself.
        let _ = writeln!(
            self.text,
            "integer {{ size = {bits}; align = 8; signed = {signed}; }} _{};",
            self.name
        );
    }

    fn float(&mut self, exponent: u32, mantissa: u32) {
        let _ = writeln!(
            self.text,
            "floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = 8; }} _{};",
            self.name
        );
    }

    fn string(&mut self) {
        let _ = writeln!(self.text, "string _{};", self.name);
    }

    fn sequence(&mut self, bits: u32, base: &str) {
        let name = self.name;
        let _ = writeln!(
            self.text,
            "integer {{ size = 32; align = 8; signed = false; }} __{name}_length;"
        );
        let _ = writeln!(
            self.text,
            "integer {{ size = {bits}; align = 8; signed = false; {base}}} _{name}[ __{name}_length ];"
        );
    }

    fn address(&mut self) {
        let _ = writeln!(
            self.text,
            "integer {{ size = 64; align = 8; signed = false; base = x; }} _{};",
            self.name
        );
    }
}

/// A number that readers show in base 16: an address or a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub u64);

/// A value that can be a field.
pub trait Field {
    /// Writes the field's declaration.
    fn describe(text: &mut FieldText<'_>);
    /// Size of the encoded value in bytes.
    fn size(&self) -> usize;
    /// Writes the encoded value.
    fn write(&self, record: &mut Record);
}

macro_rules! number {
    ($($type:ty, $describe:ident($($argument:expr),*);)*) => {$(
        impl Field for $type {
            fn describe(text: &mut FieldText<'_>) {
                text.$describe($($argument),*);
            }
            #[inline(always)]
            fn size(&self) -> usize {
                size_of::<$type>()
            }
            #[inline(always)]
            fn write(&self, record: &mut Record) {
                record.put(&self.to_ne_bytes());
            }
        }
    )*};
}

number! {
    i8, integer(8, true);
    i16, integer(16, true);
    i32, integer(32, true);
    i64, integer(64, true);
    isize, integer(isize::BITS as usize, true);
    u8, integer(8, false);
    u16, integer(16, false);
    u32, integer(32, false);
    u64, integer(64, false);
    usize, integer(usize::BITS as usize, false);
    f32, float(8, 24);
    f64, float(11, 53);
}

impl Field for bool {
    fn describe(text: &mut FieldText<'_>) {
        text.integer(8, false);
    }
    #[inline(always)]
    fn size(&self) -> usize {
        1
    }
    #[inline(always)]
    fn write(&self, record: &mut Record) {
        record.put(&[u8::from(*self)]);
    }
}

/// The text up to its first NUL, cut to [`MOST_TEXT`] bytes.
fn shown(text: &str) -> &[u8] {
    let bytes = text.as_bytes();
    let mut end = bytes.len().min(MOST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    crate::sys::until_nul(&bytes[..end])
}

impl Field for &str {
    fn describe(text: &mut FieldText<'_>) {
        text.string();
    }
    #[inline]
    fn size(&self) -> usize {
        shown(self).len() + 1
    }
    #[inline]
    fn write(&self, record: &mut Record) {
        record.put(shown(self));
        record.put(&[0]);
    }
}

impl Field for &[u8] {
    fn describe(text: &mut FieldText<'_>) {
        text.sequence(8, "");
    }
    #[inline]
    fn size(&self) -> usize {
        4 + self.len().min(MOST_TEXT)
    }
    #[inline]
    fn write(&self, record: &mut Record) {
        let bytes = &self[..self.len().min(MOST_TEXT)];
        record.put(&(bytes.len() as u32).to_ne_bytes());
        record.put(bytes);
    }
}

/// Up to 511 words, shown in base 16, for addresses.
impl Field for &[u64] {
    fn describe(text: &mut FieldText<'_>) {
        text.sequence(64, "base = x; ");
    }
    #[inline]
    fn size(&self) -> usize {
        4 + self.len().min(MOST_TEXT / 8) * 8
    }
    #[inline]
    fn write(&self, record: &mut Record) {
        let words = &self[..self.len().min(MOST_TEXT / 8)];
        record.put(&(words.len() as u32).to_ne_bytes());
        for word in words {
            record.put(&word.to_ne_bytes());
        }
    }
}

impl Field for Address {
    fn describe(text: &mut FieldText<'_>) {
        text.address();
    }
    #[inline(always)]
    fn size(&self) -> usize {
        8
    }
    #[inline(always)]
    fn write(&self, record: &mut Record) {
        record.put(&self.0.to_ne_bytes());
    }
}

/// Up to 511 numbers, for sizes and counts.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a>(pub &'a [u64]);

impl Field for Numbers<'_> {
    fn describe(text: &mut FieldText<'_>) {
        text.sequence(64, "");
    }
    #[inline]
    fn size(&self) -> usize {
        self.0.size()
    }
    #[inline]
    fn write(&self, record: &mut Record) {
        self.0.write(record);
    }
}

/// Up to 1,023 numbers.
impl Field for &[u32] {
    fn describe(text: &mut FieldText<'_>) {
        text.sequence(32, "");
    }
    #[inline]
    fn size(&self) -> usize {
        4 + self.len().min(MOST_TEXT / 4) * 4
    }
    #[inline]
    fn write(&self, record: &mut Record) {
        let numbers = &self[..self.len().min(MOST_TEXT / 4)];
        record.put(&(numbers.len() as u32).to_ne_bytes());
        for number in numbers {
            record.put(&number.to_ne_bytes());
        }
    }
}

impl Field for &core::ffi::CStr {
    fn describe(text: &mut FieldText<'_>) {
        text.string();
    }
    #[inline]
    fn size(&self) -> usize {
        self.to_bytes().len().min(MOST_TEXT) + 1
    }
    #[inline]
    fn write(&self, record: &mut Record) {
        let bytes = self.to_bytes();
        record.put(&bytes[..bytes.len().min(MOST_TEXT)]);
        record.put(&[0]);
    }
}

/// A reserved record, filled from its beginning. It is unfinished until it is
/// [committed](Record::commit).
pub struct Record {
    payload: *mut u8,
    at: usize,
    size: usize,
    id: u16,
}

impl Record {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        // A value that has grown since its size was determined is cut.
        let count = bytes.len().min(self.size - self.at);
        // SAFETY: `size` bytes were reserved.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.payload.add(self.at), count);
        }
        self.at += count;
    }

    /// Completes the event record.
    #[inline(always)]
    pub fn commit(self) {
        if self.at == self.size {
            // SAFETY: the payload is written.
            unsafe { reserve::commit(self.payload, self.id) };
        }
    }
}

/// A probe in a program: records events of one class.
pub struct Site {
    class: Class,
}

impl Site {
    /// For static values only. `name` is `provider:event` with a terminating NUL.
    pub const fn new(name: &'static str, describe: fn(&mut Description)) -> Site {
        assert!(
            matches!(name.as_bytes().last(), Some(0)),
            "the name must end with a NUL"
        );
        Site {
            class: Class::new(name, describe),
        }
    }

    /// True if its event class is enabled.
    #[inline(always)]
    pub fn is_enabled(&'static self) -> bool {
        self.class.is_enabled()
            && (self.class.epoch.load(Ordering::Relaxed) != 0 || self.register())
    }

    #[cold]
    fn register(&'static self) -> bool {
        crate::emit::register(&self.class);
        self.class.is_enabled()
    }

    /// Reserves a record with `size` bytes of fields; `None` if there is no room.
    #[inline(always)]
    pub fn reserve(&'static self, size: usize) -> Option<Record> {
        let payload = crate::fast::reserve(&self.class, size);
        (!payload.is_null()).then(|| Record {
            payload,
            at: 0,
            size,
            id: self.class.id.load(Ordering::Relaxed),
        })
    }
}

/// Records an event, if its class is enabled: `probe!(provider, event, field: type = value, ...)`.
///
/// Types are integers, `bool`, `f32`, `f64`, `&str`, `&[u8]` and `&[u64]`; up to ten fields. Values
/// are evaluated only if the class is enabled.
///
/// ```
/// # let (descriptor, path) = (3, "/tmp/x");
/// tracebraid_probe::probe!(my_server, file_opened, fd: i32 = descriptor, path: &str = path);
/// ```
#[macro_export]
macro_rules! probe {
    ($provider:ident, $event:ident $(, $field:ident : $type:ty = $value:expr)* $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new(
            concat!(stringify!($provider), ":", stringify!($event), "\0"),
            |_description| { $(_description.field::<$type>(stringify!($field));)* },
        );
        if SITE.is_enabled() {
            $(let $field: $type = $value;)*
            let size = 0 $(+ $crate::Field::size(&$field))*;
            if let Some(mut _record) = SITE.reserve(size) {
                $($crate::Field::write(&$field, &mut _record);)*
                _record.commit();
            }
        }
    }};
}
