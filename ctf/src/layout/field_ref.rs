//! Location of a field of an event class: a skip program from the end of the event header to the
//! field.

use crate::bits::{Cursor, DecodeError, FixedRead};
use crate::layout::StreamLayout;
use crate::layout::compile::SkipBuilder;
use crate::layout::node::{self, NodeKind};
use crate::layout::skip::{self, SkipProgram};
use crate::layout::tree::Part;
use crate::schema::Scope;

/// Indices in paths are less than this: the skip program to an element grows with its index.
const MOST_INDEX: u64 = 256;

/// Location of a field of an event class, compiled once and used for many event records.
#[derive(Clone, Debug)]
pub struct FieldRef {
    skip: SkipProgram,
    kind: NodeKind,
    element: Option<NodeKind>,
}

impl FieldRef {
    /// Kind of the field.
    pub fn kind(&self) -> &NodeKind {
        &self.kind
    }

    /// Kind of the elements, if the field is an array.
    pub fn element(&self) -> Option<&NodeKind> {
        self.element.as_ref()
    }

    /// Size in bytes of an element that is an integer of whole bytes.
    fn element_bytes(&self) -> Option<u64> {
        match &self.element {
            Some(NodeKind::Int(read, _)) if read.length % 8 == 0 => {
                Some(u64::from(read.length / 8))
            }
            _ => None,
        }
    }

    /// Distance in bits from the end of the header, if it does not depend on the data.
    pub fn offset(&self) -> Option<u64> {
        self.skip.constant()
    }

    /// Distance in bits from the end of the header and the way to read the field, if the field is a
    /// fixed-length integer and the distance does not depend on the data.
    pub fn constant(&self) -> Option<(u64, FixedRead)> {
        match &self.kind {
            NodeKind::Int(read, _) | NodeKind::Bool(read) => Some((self.skip.constant()?, *read)),
            _ => None,
        }
    }

    /// Position of the field, in bits from the start of the packet, without the padding of its own
    /// parts; `body` is at the end of the header.
    ///
    /// # Errors
    /// If the record ends before the field.
    pub fn position(&self, mut body: Cursor<'_>, slots: &mut [u64]) -> Result<u64, DecodeError> {
        self.skip.run_again(&mut body, slots)?;
        Ok(body.pos)
    }

    /// Raw value of an integer field, sign-extended if it is signed; `body` is at the end of the
    /// header.
    #[inline(always)]
    pub fn integer(&self, mut body: Cursor<'_>, slots: &mut [u64]) -> Result<u64, DecodeError> {
        self.skip.run_again(&mut body, slots)?;
        match &self.kind {
            NodeKind::Int(read, _)
            | NodeKind::Bool(read)
            | NodeKind::BitArray(read, _)
            | NodeKind::BitMap(read, _) => body.fixed(*read),
            NodeKind::VarInt(class) => body.leb128(class.signed),
            _ => Err(DecodeError::Length {
                at: body.pos,
                length: 0,
            }),
        }
    }

    /// Value of a floating-point field, rounded to `f64`; `body` is at the end of the header.
    pub fn float(&self, mut body: Cursor<'_>, slots: &mut [u64]) -> Result<f64, DecodeError> {
        self.skip.run_again(&mut body, slots)?;
        match &self.kind {
            NodeKind::Float(read) => Ok(crate::float::float(body.fixed(*read)?, read.length)),
            _ => Err(DecodeError::Length {
                at: body.pos,
                length: 0,
            }),
        }
    }

    /// Bytes of a string (up to the first null), of a BLOB, or of an array of integers of whole
    /// bytes; `body` is at the end of the header.
    pub fn bytes<'a>(&self, body: Cursor<'a>, slots: &mut [u64]) -> Result<&'a [u8], DecodeError> {
        let bytes = self.raw_bytes(body, slots)?;
        Ok(match &self.kind {
            NodeKind::SizedStr(_, encoding) => {
                crate::bits::until_null(bytes, encoding.unit_bytes())
            }
            _ => bytes,
        })
    }

    /// The same with all bytes of a string of a stated length: tracers write structures as text.
    pub fn raw_bytes<'a>(
        &self,
        mut body: Cursor<'a>,
        slots: &mut [u64],
    ) -> Result<&'a [u8], DecodeError> {
        self.skip.run_again(&mut body, slots)?;
        match &self.kind {
            NodeKind::Str(encoding) => body.terminated(encoding.unit_bytes()),
            NodeKind::SizedStr(length, _) | NodeKind::Blob(length) => {
                let length = skip::count(*length, slots, &body, 8)?;
                body.bytes(length)
            }
            NodeKind::Array(length) if self.element_bytes().is_some() => {
                let bytes = self.element_bytes().unwrap_or(1);
                let length = skip::count(*length, slots, &body, bytes * 8)?;
                body.bytes(length * bytes)
            }
            _ => Err(DecodeError::Length {
                at: body.pos,
                length: 0,
            }),
        }
    }
}

impl StreamLayout {
    /// Compiles the location of a field of an event class. `path` contains the names of members,
    /// from the scope's root down through structures, and decimal indices below 256 of elements of
    /// arrays of fixed length. `None` if the field does not exist, is not in a scope after the
    /// header, or if the path leads through a variant, a sequence or an optional.
    pub fn field(&self, event: usize, scope: Scope, path: &[&str]) -> Option<FieldRef> {
        let event = self.events.get(event)?;
        let mut skip = SkipBuilder::at(self.place.known, self.mixed);
        let parts = [
            (Scope::CommonContext, &self.common_context),
            (Scope::SpecificContext, &event.specific_context),
            (Scope::Payload, &event.payload),
        ];
        for (at, tree) in parts {
            let Some(root) = tree.root() else { continue };
            if at == scope {
                let part = way_to(root, path, &mut skip)?;
                let is_array = matches!(part.kind, NodeKind::Array(_));
                let element = part.element().filter(|_| is_array);
                return Some(FieldRef {
                    skip: skip.finish(),
                    kind: part.kind.clone(),
                    element: element.map(|element| element.kind.clone()),
                });
            }
            skip.skip(root);
        }
        None
    }
}

/// Compiles the path of names and indices into `skip` and returns the part at its end.
fn way_to<'n>(root: Part<'n>, path: &[&str], skip: &mut SkipBuilder) -> Option<Part<'n>> {
    let mut part = root;
    for step in path {
        skip.align(part.align);
        match &part.kind {
            NodeKind::Array(node::Length::Static(length)) => {
                let index: u64 = step
                    .parse()
                    .ok()
                    .filter(|index| index < length && *index < MOST_INDEX)?;
                let element = part.element()?;
                (0..index).for_each(|_| skip.skip(element));
                part = element;
            }
            NodeKind::Struct(_) => {
                let target = part.parts().position(|member| member.name == **step)?;
                let mut members = part.parts();
                members
                    .by_ref()
                    .take(target)
                    .for_each(|member| skip.skip(member));
                part = members.next()?;
            }
            _ => return None,
        }
    }
    skip.align(part.align);
    Some(part)
}
