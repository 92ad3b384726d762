//! The fields of events with stacks, whatever their class.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::schema::{Encoding, IntClass, Name};
use tracebraid_ctf::walk::Visitor;

/// Field values by name, for the types that occur in these events: integers, texts, arrays of
/// integers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fields {
    #[serde(with = "by_name")]
    integers: Vec<(Name, u64)>,
    #[serde(with = "by_name")]
    texts: Vec<(Name, Vec<u8>)>,
    #[serde(with = "by_name")]
    arrays: Vec<(Name, Vec<u64>)>,
    /// Used only while the fields are decoded.
    #[serde(skip)]
    is_in_array: bool,
}

/// Serializes fields with their names as text: [`Name`] is not serializable.
mod by_name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tracebraid_ctf::schema::Name;

    pub(super) fn serialize<S: Serializer, T: Serialize>(
        fields: &[(Name, T)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(fields.iter().map(|(name, value)| (&**name, value)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        from: D,
    ) -> Result<Vec<(Name, T)>, D::Error> {
        let fields = Vec::<(String, T)>::deserialize(from)?.into_iter();
        Ok(fields
            .map(|(name, value)| (Name::from(name.as_str()), value))
            .collect())
    }
}

impl Fields {
    /// Decodes the fields of an event.
    pub(crate) fn of(event: &mut Event<'_>) -> Fields {
        let mut fields = Fields::default();
        // A reader hands out sound event records only.
        let _ = event.walk_body(&mut fields, |_, _| ());
        fields
    }

    /// Fields with these integers, texts and arrays.
    #[cfg(test)]
    pub(crate) fn with(
        integers: &[(&str, u64)],
        texts: &[(&str, &str)],
        arrays: &[(&str, &[u64])],
    ) -> Fields {
        let integers = integers
            .iter()
            .map(|&(name, value)| (Name::from(name), value));
        let texts = texts
            .iter()
            .map(|&(name, text)| (Name::from(name), text.into()));
        let arrays = arrays
            .iter()
            .map(|&(name, array)| (Name::from(name), array.to_vec()));
        Fields {
            integers: integers.collect(),
            texts: texts.collect(),
            arrays: arrays.collect(),
            is_in_array: false,
        }
    }

    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        of(&self.integers, name).copied()
    }

    /// The text; empty if the event has no such field.
    pub(crate) fn text(&self, name: &str) -> &[u8] {
        of(&self.texts, name).map_or(&[], Vec::as_slice)
    }

    /// The array; empty if the event has no such field.
    pub(crate) fn array(&self, name: &str) -> &[u64] {
        of(&self.arrays, name).map_or(&[], Vec::as_slice)
    }

    /// True if the event has an array of this name.
    pub(crate) fn has_array(&self, name: &str) -> bool {
        of(&self.arrays, name).is_some()
    }

    /// The elements of an array as bytes.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        self.array(name).iter().map(|&byte| byte as u8).collect()
    }
}

fn of<'f, T>(fields: &'f [(Name, T)], name: &str) -> Option<&'f T> {
    fields
        .iter()
        .find(|(known, _)| **known == *name)
        .map(|(_, value)| value)
}

impl Visitor for Fields {
    fn integer(&mut self, node: &Node, _: &IntClass, raw: u64) {
        match self.arrays.last_mut() {
            Some((_, array)) if self.is_in_array => array.push(raw),
            _ => self.integers.push((node.name.clone(), raw)),
        }
    }

    fn string(&mut self, node: &Node, _: Encoding, bytes: &[u8]) {
        self.texts.push((node.name.clone(), bytes.to_vec()));
    }

    fn blob(&mut self, node: &Node, bytes: &[u8]) {
        let bytes = bytes.iter().map(|&byte| u64::from(byte)).collect();
        self.arrays.push((node.name.clone(), bytes));
    }

    fn begin_array(&mut self, node: &Node, _: u64) {
        self.arrays.push((node.name.clone(), Vec::new()));
        self.is_in_array = true;
    }

    fn end_array(&mut self, _: &Node) {
        self.is_in_array = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_can_cross_a_network() {
        let fields = Fields::with(
            &[("tid", 7), ("ip", u64::MAX)],
            &[("comm", "a thread")],
            &[("callstack_user", &[1, 2, 3]), ("callstack_kernel", &[])],
        );
        let bytes = postcard::to_allocvec(&fields).expect("fields can be encoded");
        assert_eq!(postcard::from_bytes::<Fields>(&bytes), Ok(fields));
    }
}
