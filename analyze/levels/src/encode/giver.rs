//! Re-encodes each field of a record, with replaced values.

use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::schema::{Encoding, IntClass};
use tracebraid_ctf::walk::Visitor;
use tracebraid_ctf::write::fields::Fields;

use crate::changed_fields::Replaced;
use crate::names::{NAME, text};

/// Passes the fields that a walk finds to the writer, with replaced values.
pub(super) struct Giver<'f, 'p, 'v> {
    pub(super) fields: &'f mut Fields<'p>,
    pub(super) values: &'v [(&'v Replaced, Option<i32>, [u8; NAME])],
}

impl Giver<'_, '_, '_> {
    fn value(&self, node: &Node, is_name: bool) -> Option<&(&Replaced, Option<i32>, [u8; NAME])> {
        let found = self.values.iter().find(|(field, id, _)| {
            id.is_some() && field.is_name == is_name && *node.name == *field.field
        });
        found.filter(|_| !node.name.is_empty())
    }
}

impl Visitor for Giver<'_, '_, '_> {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        let raw = match self.value(node, false) {
            Some((_, Some(id), _)) => i64::from(*id) as u64,
            _ => raw,
        };
        if class.signed {
            self.fields.int(raw as i64);
        } else {
            self.fields.uint(raw);
        }
    }
    fn wide_integer(&mut self, _: &Node, _: &IntClass, bytes: &[u8]) {
        self.fields.wide(bytes);
    }
    fn boolean(&mut self, _: &Node, value: bool) {
        self.fields.uint(u64::from(value));
    }
    fn bits(&mut self, _: &Node, _: &IntClass, raw: u64) {
        self.fields.uint(raw);
    }
    fn float(&mut self, _: &Node, _: u32, value: f64) {
        self.fields.float(value);
    }
    fn string(&mut self, node: &Node, _: Encoding, bytes: &[u8]) {
        match self.value(node, true).map(|(_, _, name)| *name) {
            Some(name) => self.fields.bytes(text(&name)),
            None => self.fields.bytes(bytes),
        };
    }
    fn blob(&mut self, _: &Node, bytes: &[u8]) {
        self.fields.bytes(bytes);
    }
}
