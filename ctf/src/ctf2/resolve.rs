//! From the field classes as read to those of the schema: resolves their field locations and
//! checks what depends on where a field class is used.

use std::sync::Arc;

use super::fault::{Fault, Result};
use super::field_class::{RawClass, RawKind};
use super::location::{Finder, Location, Roots, Step, TargetKind};
use super::roles::RoleContext;
use crate::schema::{
    FieldClass, FieldLocation, IntRange, Member, OptionalClass, Roles, StructClass, VariantClass,
    VariantOption,
};

/// Field classes that any metadata stream may have, aliases written out.
const FREE_CLASSES: u64 = 200_000;

/// Steps that the field locations of any metadata stream may take.
const FREE_STEPS: u64 = 10_000_000;

/// More of them for each byte of the text.
const STEPS_PER_BYTE: u64 = 16;

/// What one metadata stream may still use: bounds the memory that aliases of aliases can take, and
/// the time that field locations can.
#[derive(Debug)]
pub(super) struct Budget {
    classes: u64,
    steps: u64,
}

impl Budget {
    /// The budget of a metadata text of that length, in bytes.
    pub(super) fn new(text_len: usize) -> Self {
        Budget {
            classes: FREE_CLASSES.saturating_add(text_len as u64),
            steps: FREE_STEPS.saturating_add((text_len as u64).saturating_mul(STEPS_PER_BYTE)),
        }
    }
}

/// Makes the root field class of a scope. `roots` has the raw classes of all scopes that the
/// class and those before it are in; the class itself is the one of `context.scope`.
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
            "too many field classes: {} here, all aliases written out",
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
    let class = resolver.class(root);
    budget.steps = resolver.finder.steps;
    class.map(Some)
}

struct Resolver<'a> {
    finder: Finder<'a>,
    context: RoleContext,
}

impl<'a> Resolver<'a> {
    fn class(&mut self, raw: &'a RawClass) -> Result<FieldClass> {
        if let Some((roles, at)) = raw.roles {
            self.context.check(roles, at)?;
            self.check_magic(raw, roles, at)?;
        }
        Ok(match &raw.kind {
            RawKind::Plain(class) => class.clone(),
            RawKind::DynStr { length, encoding } => FieldClass::DynStr {
                length: self.length(length)?,
                encoding: *encoding,
            },
            RawKind::DynBlob { length, media_type } => FieldClass::DynBlob {
                length: self.length(length)?,
                media_type: media_type.clone(),
            },
            RawKind::Array {
                element,
                length,
                min_align,
            } => FieldClass::Array {
                element: Arc::new(self.part(raw, 0, element)?),
                length: *length,
                min_align: *min_align,
                roles: Roles::NONE,
            },
            RawKind::Sequence {
                element,
                length,
                min_align,
            } => FieldClass::Sequence {
                length: self.length(length)?,
                element: Arc::new(self.part(raw, 0, element)?),
                min_align: *min_align,
            },
            RawKind::Struct { min_align, members } => {
                let members = (0u32..)
                    .zip(members)
                    .map(|(index, (name, class))| {
                        Ok(Member {
                            name: name.clone(),
                            class: self.part(raw, index, class)?,
                        })
                    })
                    .collect::<Result<_>>()?;
                FieldClass::Struct(Arc::new(StructClass {
                    min_align: *min_align,
                    members,
                }))
            }
            RawKind::Optional {
                selector,
                ranges,
                element,
            } => FieldClass::Optional(Arc::new(OptionalClass {
                selector: self.optional_selector(selector, ranges.as_deref())?,
                ranges: ranges.clone(),
                element: self.part(raw, 0, element)?,
            })),
            RawKind::Variant { selector, options } => {
                let selector = self.variant_selector(selector)?;
                let options = (0u32..)
                    .zip(options)
                    .map(|(index, option)| {
                        Ok(VariantOption {
                            name: option.name.clone(),
                            ranges: option.ranges.clone(),
                            class: self.part(raw, index, &option.class)?,
                        })
                    })
                    .collect::<Result<_>>()?;
                FieldClass::Variant(Arc::new(VariantClass { selector, options }))
            }
        })
    }

    /// Makes the class of a part of `container`.
    fn part(&mut self, container: &'a RawClass, index: u32, part: &'a RawClass) -> Result<FieldClass> {
        self.finder.trail.push(Step {
            class: container,
            index,
        });
        let class = self.class(part);
        self.finder.trail.pop();
        class
    }

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

    fn mismatch(&self, location: &Location, what: &str, found: TargetKind, expecting: &str) -> Fault {
        let place = self.finder.place();
        let message = format!(
            "the {what} field of {place} is {}: expecting {expecting}",
            found.noun()
        );
        Fault::new(location.at(), message)
    }

    /// The packet magic number is a 32-bit integer, the first member of the packet header.
    fn check_magic(&self, raw: &RawClass, roles: Roles, at: usize) -> Result<()> {
        if !roles.contains(Roles::PACKET_MAGIC) {
            return Ok(());
        }
        let is_32_bits = matches!(&raw.kind, RawKind::Plain(FieldClass::Int(int)) if int.length == 32);
        if !is_32_bits {
            let message = "the role `packet-magic-number` needs a fixed-length unsigned integer of 32 bits";
            return Err(Fault::new(at, message));
        }
        if !matches!(self.finder.trail.as_slice(), [Step { index: 0, .. }]) {
            let message = "the field with the role `packet-magic-number` must be the first member of the \
                           packet header";
            return Err(Fault::new(at, message));
        }
        Ok(())
    }
}
