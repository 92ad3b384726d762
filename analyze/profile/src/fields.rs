//! The fields of an event of stacks, whichever it is.

use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::schema::{Encoding, IntClass};
use tracebraid_ctf::walk::Visitor;

/// Fields by name, of what these events have: integers, one text, one array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    integers: Vec<(String, u64)>,
    pub(crate) text: Vec<u8>,
    pub(crate) array: Vec<u64>,
    is_in_array: bool,
}

impl Fields {
    /// Of that event.
    pub(crate) fn of(event: &mut Event<'_>) -> Fields {
        let mut fields = Fields::default();
        // A reader hands out sound event records only.
        let _ = event.walk_body(&mut fields, |_, _| ());
        fields
    }

    /// An integer.
    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        let found = self.integers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| *value)
    }
}

impl Visitor for Fields {
    fn integer(&mut self, node: &Node, _: &IntClass, raw: u64) {
        if self.is_in_array {
            self.array.push(raw);
        } else {
            self.integers.push((node.name.to_string(), raw));
        }
    }

    fn string(&mut self, _: &Node, _: Encoding, bytes: &[u8]) {
        self.text = bytes.to_vec();
    }

    fn blob(&mut self, _: &Node, bytes: &[u8]) {
        self.array = bytes.iter().map(|&byte| u64::from(byte)).collect();
    }

    fn begin_array(&mut self, _: &Node, _: u64) {
        self.is_in_array = true;
    }

    fn end_array(&mut self, _: &Node) {
        self.is_in_array = false;
    }
}
