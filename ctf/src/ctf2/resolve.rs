//! Converts field classes as read to those of the schema: resolves their field locations and checks
//! the conditions that depend on where a field class is used.

use std::sync::Arc;

use super::fault::{Fault, Result};
use super::location::{Containing, Finder, Location, Roots, TargetKind};
use super::raw::{RawClass, RawKind};
use super::roles::RoleContext;
use crate::descent::{Descent, Visited, descend};
use crate::schema::{
    FieldClass, FieldLocation, IntRange, Member, OptionalClass, Roles, StructClass, VariantClass,
    VariantOption,
};

/// Field classes that every metadata stream may have, with aliases expanded.
const FREE_CLASSES: u64 = 200_000;

/// Steps that the field locations of every metadata stream may take.
const FREE_STEPS: u64 = 10_000_000;

/// Additional steps for each byte of the text.
const STEPS_PER_BYTE: u64 = 16;

/// The remaining budget of a metadata stream. It bounds the memory that nested aliases can take,
/// and the time that resolving field locations can take.
#[derive(Debug)]
pub(super) struct Budget {
    classes: u64,
    steps: u64,
}

impl Budget {
    /// The budget of a metadata text of this length, in bytes.
    pub(super) fn new(text_len: usize) -> Self {
        Budget {
            classes: FREE_CLASSES.saturating_add(text_len as u64),
            steps: FREE_STEPS.saturating_add((text_len as u64).saturating_mul(STEPS_PER_BYTE)),
        }
    }
}

/// Creates the root field class of a scope. `roots` contains the raw classes of this scope and of
/// all earlier scopes.
pub(super) fn resolve_scope(
    roots: Roots<'_>,
    context: RoleContext,
    budget: &mut Budget,
) -> Result<Option<FieldClass>> {
    let Some(root) = roots.get(context.scope as usize).copied().flatten() else {
        return Ok(None);
    };
    budget.classes = budget.classes.checked_sub(root.size).ok_or_else(|| {
        let message = format!(
            "too many field classes: {} here, with all aliases expanded",
            root.size
        );
        Fault::new(root.at, message)
    })?;
    let finder = Finder {
        roots,
        scope: context.scope,
        trail: Vec::new(),
        steps: budget.steps,
    };
    let mut resolver = Resolver { finder, context };
    let class = descend(&mut resolver, root);
    budget.steps = resolver.finder.steps;
    class.map(Some)
}

struct Resolver<'a> {
    finder: Finder<'a>,
    context: RoleContext,
}

/// A class, some of whose parts have been converted.
struct Making<'a> {
    raw: &'a RawClass,
    /// Location of the length or selector of this class.
    location: Option<Arc<FieldLocation>>,
    parts: Made,
}

enum Made {
    Element(Option<FieldClass>),
    Members(Vec<Member>),
    Options(Vec<VariantOption>),
}

impl Made {
    fn count(&self) -> usize {
        match self {
            Made::Element(element) => usize::from(element.is_some()),
            Made::Members(members) => members.len(),
            Made::Options(options) => options.len(),
        }
    }
}

impl<'a> Descent for Resolver<'a> {
    type Node = &'a RawClass;
    type Open = Making<'a>;
    type Made = FieldClass;
    type Error = Fault;

    fn enter(&mut self, raw: &'a RawClass) -> Result<Visited<Making<'a>, FieldClass>> {
        if let Some((roles, at)) = raw.roles {
            self.context.check(roles, at)?;
            self.check_magic(raw, roles, at)?;
        }
        let (location, parts) = match &raw.kind {
            RawKind::Plain(class) => return Ok(Visited::Made(class.clone())),
            RawKind::DynStr { length, encoding } => {
                return Ok(Visited::Made(FieldClass::DynStr {
                    length: self.length(length)?,
                    encoding: *encoding,
                }));
            }
            RawKind::DynBlob { length, media_type } => {
                return Ok(Visited::Made(FieldClass::DynBlob {
                    length: self.length(length)?,
                    media_type: media_type.clone(),
                }));
            }
            RawKind::Array { .. } => (None, Made::Element(None)),
            RawKind::Sequence { length, .. } => (Some(self.length(length)?), Made::Element(None)),
            RawKind::Struct { members, .. } => {
                (None, Made::Members(Vec::with_capacity(members.len())))
            }
            RawKind::Optional {
                selector, ranges, ..
            } => {
                let selector = self.optional_selector(selector, ranges.as_deref())?;
                (Some(selector), Made::Element(None))
            }
            RawKind::Variant { selector, options } => {
                let options = Vec::with_capacity(options.len());
                (
                    Some(self.variant_selector(selector)?),
                    Made::Options(options),
                )
            }
        };
        Ok(Visited::Open(Making {
            raw,
            location,
            parts,
        }))
    }

    fn next(&mut self, making: &mut Making<'a>) -> Result<Option<&'a RawClass>> {
        let (class, count) = (making.raw, making.parts.count());
        let part = match &class.kind {
            RawKind::Struct { members, .. } => members.get(count).map(|(_, class)| class),
            RawKind::Variant { options, .. } => options.get(count).map(|option| &option.class),
            RawKind::Array { element, .. }
            | RawKind::Sequence { element, .. }
            | RawKind::Optional { element, .. } => Some(element).filter(|_| count == 0),
            _ => None,
        };
        if part.is_some() {
            let index = count as u32;
            self.finder.trail.push(Containing { class, index });
        }
        Ok(part.map(|part| &**part))
    }

    fn add(&mut self, making: &mut Making<'a>, class: FieldClass) -> Result<()> {
        self.finder.trail.pop();
        match (&mut making.parts, &making.raw.kind) {
            (Made::Element(element), _) => *element = Some(class),
            (Made::Members(made), RawKind::Struct { members, .. }) => {
                let name = members.get(made.len()).map(|(name, _)| name.clone());
                let name = name.unwrap_or_default();
                made.push(Member { name, class });
            }
            (Made::Options(made), RawKind::Variant { options, .. }) => {
                if let Some(option) = options.get(made.len()) {
                    made.push(VariantOption {
                        name: option.name.clone(),
                        ranges: option.ranges.clone(),
                        class,
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self, making: Making<'a>) -> Result<FieldClass> {
        let raw = making.raw;
        let lacking = || Fault::new(raw.at, "a field class lacks a part");
        Ok(match (&raw.kind, making.location, making.parts) {
            (
                RawKind::Array {
                    length, min_align, ..
                },
                _,
                Made::Element(Some(element)),
            ) => FieldClass::Array {
                element: Arc::new(element),
                length: *length,
                min_align: *min_align,
                roles: Roles::NONE,
            },
            (RawKind::Sequence { min_align, .. }, Some(length), Made::Element(Some(element))) => {
                FieldClass::Sequence {
                    element: Arc::new(element),
                    length,
                    min_align: *min_align,
                }
            }
            (RawKind::Struct { min_align, .. }, _, Made::Members(members)) => {
                FieldClass::Struct(Arc::new(StructClass {
                    min_align: *min_align,
                    members,
                }))
            }
            (RawKind::Optional { ranges, .. }, Some(selector), Made::Element(Some(element))) => {
                FieldClass::Optional(Arc::new(OptionalClass {
                    selector,
                    ranges: ranges.clone(),
                    element,
                }))
            }
            (RawKind::Variant { .. }, Some(selector), Made::Options(options)) => {
                FieldClass::Variant(Arc::new(VariantClass { selector, options }))
            }
            _ => return Err(lacking()),
        })
    }
}

impl Resolver<'_> {
    fn length(&mut self, location: &Location) -> Result<Arc<FieldLocation>> {
        let (found, kind) = self.finder.find(location)?;
        match kind {
            TargetKind::Unsigned => Ok(found.into()),
            other => Err(self.mismatch(location, "length", other, "an unsigned integer")),
        }
    }

    fn variant_selector(&mut self, location: &Location) -> Result<Arc<FieldLocation>> {
        let (found, kind) = self.finder.find(location)?;
        match kind {
            TargetKind::Unsigned | TargetKind::Signed => Ok(found.into()),
            other => Err(self.mismatch(location, "selector", other, "an integer")),
        }
    }

    fn optional_selector(
        &mut self,
        location: &Location,
        ranges: Option<&[IntRange]>,
    ) -> Result<Arc<FieldLocation>> {
        let (found, kind) = self.finder.find(location)?;
        match (kind, ranges) {
            (TargetKind::Boolean, None) | (TargetKind::Unsigned | TargetKind::Signed, Some(_)) => {
                Ok(found.into())
            }
            (other, None) => {
                let expecting = "a boolean where there is no `selector-field-ranges` property";
                Err(self.mismatch(location, "selector", other, expecting))
            }
            (other, Some(_)) => {
                let expecting = "an integer where there is a `selector-field-ranges` property";
                Err(self.mismatch(location, "selector", other, expecting))
            }
        }
    }

    fn mismatch(
        &self,
        location: &Location,
        what: &str,
        found: TargetKind,
        expecting: &str,
    ) -> Fault {
        let place = self.finder.place();
        let message = format!(
            "the {what} field of {place} is {}: expecting {expecting}",
            found.noun()
        );
        Fault::new(location.at(), message)
    }

    /// Checks that the packet magic number is a 32-bit integer and the first member of the packet
    /// header.
    fn check_magic(&self, raw: &RawClass, roles: Roles, at: usize) -> Result<()> {
        if !roles.contains(Roles::PACKET_MAGIC) {
            return Ok(());
        }
        let is_32_bits =
            matches!(&raw.kind, RawKind::Plain(FieldClass::Int(int)) if int.length == 32);
        if !is_32_bits {
            let message =
                "the role `packet-magic-number` needs a fixed-length unsigned integer of 32 bits";
            return Err(Fault::new(at, message));
        }
        if !matches!(self.finder.trail.as_slice(), [Containing { index: 0, .. }]) {
            let message = "the field with the role `packet-magic-number` must be the first member of the \
                           packet header";
            return Err(Fault::new(at, message));
        }
        Ok(())
    }
}
