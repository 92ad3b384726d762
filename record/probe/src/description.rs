//! Fields of an event class as text.

use crate::text::Text;

/// Fields of an event class in TSDL.
pub(crate) type Fields = Text<3000>;

/// Builder of the fields of an event class in TSDL.
pub struct Description {
    pub(crate) text: Fields,
}
