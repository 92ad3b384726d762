//! Builds field classes from types, once for each use: locations become paths, and fields get their
//! roles.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::ast::Path;
use super::error::{Error, Res, error};
use super::resolve::{Frame, Walk, Words, option_ranges};
use super::types::{Base, Location, StructTy, Ty, TyKind, TyRef, VariantTy};
use crate::descent::{Descent, Visited, descend};
use crate::schema::{
    ClockIndex, Encoding, FieldClass, FieldLocation, IntClass, IntRange, Member, Names, Roles,
    Scope, StructClass, VariantClass, VariantOption,
};

/// Roots of the scopes that are visible to a use, by [`Scope`].
#[derive(Clone, Debug, Default)]
pub(super) struct Roots<'a> {
    pub(super) by_scope: [Option<TyRef<'a>>; 6],
}

impl<'a> Roots<'a> {
    pub(super) fn get(&self, scope: Scope) -> Option<&TyRef<'a>> {
        self.by_scope.get(scope as usize).and_then(Option::as_ref)
    }

    pub(super) fn set(&mut self, scope: Scope, root: Option<TyRef<'a>>) {
        if let Some(slot) = self.by_scope.get_mut(scope as usize) {
            *slot = root;
        }
    }
}

/// Further results of building a scope.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// All roles that occur.
    pub(super) roles: Roles,
    /// A timestamp field without a clock mapping got the only clock.
    pub(super) implicit_clock: bool,
}

/// A unit of the budget is taken for each `LOOKS` types that are searched for a field.
const LOOKS: usize = 16;

/// A class, some of whose parts have been built.
pub(super) enum Making<'x, 'a> {
    /// An array or sequence with its element, which is still pending or has been built.
    Elements(Elements, Option<&'x Ty<'a>>, FieldClass),
    Struct(&'x StructTy<'a>, Vec<Member>),
    Variant(Box<MakingVariant<'x, 'a>>),
}

pub(super) enum Elements {
    Array(u64, Roles),
    Sequence(Arc<FieldLocation>),
}

/// Placeholder for a pending element.
const NO_ELEMENT: FieldClass = FieldClass::Str {
    encoding: Encoding::Utf8,
};

/// A variant, some of whose options have been built.
pub(super) struct MakingVariant<'x, 'a> {
    variant: &'x VariantTy<'a>,
    selector: Arc<FieldLocation>,
    tag: &'x IntClass,
    /// The tag's labels, if there are many options.
    by_label: HashMap<&'x str, &'x [IntRange]>,
    options: Vec<VariantOption>,
}

impl<'x> MakingVariant<'x, '_> {
    /// Values of the tag that select the option with this name.
    fn ranges(&self, name: &str) -> &'x [IntRange] {
        let ranges = if self.by_label.is_empty() {
            option_ranges(self.tag, name)
        } else {
            let bare = || {
                name.strip_prefix('_')
                    .and_then(|name| self.by_label.get(name))
            };
            self.by_label.get(name).or_else(bare).copied()
        };
        ranges.unwrap_or_default()
    }
}

/// Builds the root class of a scope.
pub(super) struct Builder<'x, 'a> {
    scope: Scope,
    roots: &'x Roots<'a>,
    /// See [`super::sema::Sema::open_locations`].
    open_locations: &'x mut [(Rc<Path<'a>>, bool)],
    /// Clock of timestamp fields without a clock mapping.
    implicit_clock: Option<ClockIndex>,
    frames: Vec<Frame<'x, 'a>>,
    budget: &'x mut Budget,
    names: &'x mut Names,
    pub(super) found: Found,
}

/// Limits the size of the classes of a trace: with shared types, it may have far more fields than
/// the text has characters.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// The budget of a text of this length, in bytes.
    pub(super) fn new(text: u64) -> Self {
        Budget {
            left: text.saturating_mul(4).saturating_add(1 << 21),
        }
    }

    /// Takes `size` units from the budget.
    fn take(&mut self, at: u32, size: u64) -> Res<()> {
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => error(
                at,
                "the types used up to here have more fields in all than are supported",
            ),
        }
    }
}

impl<'x, 'a> Builder<'x, 'a> {
    pub(super) fn new(
        scope: Scope,
        roots: &'x Roots<'a>,
        open_locations: &'x mut [(Rc<Path<'a>>, bool)],
        implicit_clock: Option<ClockIndex>,
        budget: &'x mut Budget,
        names: &'x mut Names,
    ) -> Self {
        Builder {
            scope,
            roots,
            open_locations,
            implicit_clock,
            frames: Vec::new(),
            budget,
            names,
            found: Found::default(),
        }
    }

    /// Builds the root of the scope, if it has one; `at` is the position of its block.
    pub(super) fn root(&mut self, at: u32) -> Res<Option<FieldClass>> {
        match self.roots.get(self.scope) {
            Some(ty) => {
                if let Some(clock) = ty.facts.unknown_clock {
                    return error(
                        clock.at,
                        format!("no `clock` block describes a clock `{}`", clock.text),
                    );
                }
                self.budget.take(at, ty.facts.nodes)?;
                descend(self, (ty, None)).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Whether fields can have roles, as in headers and the packet context. Fields of other scopes
    /// have the same class for every use, unless they refer to fields.
    fn has_roles(&self) -> bool {
        matches!(
            self.scope,
            Scope::PacketHeader | Scope::PacketContext | Scope::EventHeader
        )
    }

    fn variant(&mut self, variant: &'x VariantTy<'a>) -> Res<Making<'x, 'a>> {
        let Some(location) = &variant.tag else {
            return error(
                variant.at,
                "this variant has no tag: `variant <FIELD> {...}`",
            );
        };
        let (selector, tag) = self.tag(location, variant)?;
        let many = variant.options.list.len() > 16;
        let labels = tag.mappings.iter().filter(|_| many);
        let by_label = labels
            .map(|mapping| (mapping.label.as_str(), mapping.ranges.as_slice()))
            .collect();
        let options = Vec::with_capacity(variant.options.list.len());
        Ok(Making::Variant(Box::new(MakingVariant {
            variant,
            selector,
            tag,
            by_label,
            options,
        })))
    }

    /// An integer, with its roles.
    fn integer(&mut self, class: &Arc<IntClass>, name: Option<&str>) -> Arc<IntClass> {
        if !self.has_roles() || class.length > 64 || class.signed {
            return class.clone();
        }
        let clock = class.clock.or_else(|| self.clock_of_timestamp(name));
        self.found.implicit_clock |= clock != class.clock;
        let roles = self.roles(class, clock, name.unwrap_or_default());
        self.found.roles |= roles;
        if roles.is_empty() && clock == class.clock {
            return class.clone();
        }
        Arc::new(IntClass {
            roles,
            clock,
            ..IntClass::clone(class)
        })
    }

    /// The only clock, for timestamps without a clock mapping.
    fn clock_of_timestamp(&self, name: Option<&str>) -> Option<ClockIndex> {
        let is_timestamp = match self.scope {
            Scope::PacketContext => matches!(name, Some("timestamp_begin" | "timestamp_end")),
            Scope::EventHeader => name == Some("timestamp"),
            _ => false,
        };
        if is_timestamp {
            self.implicit_clock
        } else {
            None
        }
    }

    fn roles(&self, class: &IntClass, clock: Option<ClockIndex>, name: &str) -> Roles {
        let top = self.frames.len() == 1;
        let mut roles = match (self.scope, name) {
            (Scope::PacketHeader, "magic") if top && class.length == 32 && self.is_first() => {
                Roles::PACKET_MAGIC
            }
            (Scope::PacketHeader, "stream_id") if top => Roles::STREAM_CLASS_ID,
            (Scope::PacketHeader, "stream_instance_id") if top => Roles::STREAM_ID,
            (Scope::PacketContext, "packet_size") if top => Roles::PACKET_TOTAL_LENGTH,
            (Scope::PacketContext, "content_size") if top => Roles::PACKET_CONTENT_LENGTH,
            (Scope::PacketContext, "packet_seq_num") if top => Roles::PACKET_SEQUENCE_NUMBER,
            (Scope::PacketContext, "events_discarded") if top => Roles::DISCARDED_EVENTS,
            (Scope::PacketContext, "timestamp_end") if top => return Roles::PACKET_END_TIMESTAMP,
            (Scope::EventHeader, "id") => Roles::EVENT_CLASS_ID,
            _ => Roles::NONE,
        };
        if clock.is_some() && self.scope != Scope::PacketHeader {
            roles |= Roles::CLOCK_TIMESTAMP;
        }
        roles
    }

    fn is_first(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.index() == 0)
    }

    /// The role of `uint8_t uuid[16]` in the packet header.
    fn array_roles(&self, element: &Ty<'a>, length: u64, name: Option<&str>) -> Roles {
        let TyKind::Int(class) = &element.kind else {
            return Roles::NONE;
        };
        let bytes = class.length == 8 && !class.signed && class.align <= 8;
        let here = self.scope == Scope::PacketHeader && self.frames.len() == 1;
        if here && name == Some("uuid") && length == 16 && bytes {
            Roles::METADATA_UUID
        } else {
            Roles::NONE
        }
    }

    fn length(&mut self, location: &'x Location<'a>) -> Res<Arc<FieldLocation>> {
        let (scope, head, walk) = self.walk(location)?;
        walk.check_length()?;
        let steps = walk
            .targets
            .iter()
            .map(|target| head.len() + target.path.len())
            .sum::<usize>();
        self.budget.take(location.path.first.at, steps as u64 / 4)?;
        let paths = walk
            .targets
            .iter()
            .map(|target| [&head, target.path.as_slice()].concat())
            .collect();
        Ok(Arc::new(FieldLocation { scope, paths }))
    }

    fn tag(
        &mut self,
        location: &'x Location<'a>,
        variant: &VariantTy<'a>,
    ) -> Res<(Arc<FieldLocation>, &'x IntClass)> {
        let (scope, head, walk) = self.walk(location)?;
        let target = walk.check_tag(&variant.options)?;
        let paths = vec![[&head, target.path.as_slice()].concat()];
        self.budget
            .take(variant.at, (head.len() + target.path.len()) as u64 / 4)?;
        Ok((Arc::new(FieldLocation { scope, paths }), target.class))
    }

    /// Resolves a location: the scope, the steps to the start of the walk, and the walk.
    fn walk(&mut self, location: &'x Location<'a>) -> Res<(Scope, Vec<u32>, Walk<'x, 'x>)> {
        let path = &*location.path;
        if let Base::Scope(scope, words) = location.base {
            let mut walk = Walk::new(path);
            self.walk_scope(&mut walk, scope, Words::after(path, words))?;
            return Ok((scope, Vec::new(), walk));
        }
        let mut failure = None;
        for (index, frame) in self.frames.iter().enumerate().rev() {
            if index % LOOKS == 0 {
                self.budget.take(path.first.at, 1)?;
            }
            let Frame::Struct(structure, current) = *frame else {
                continue;
            };
            match location.base {
                Base::Struct(id) if id != structure.id => continue,
                _ => {}
            }
            let Some(member) = structure.members.find(path.first.text) else {
                continue;
            };
            let Some((_, ty)) = structure.members.list.get(member) else {
                continue;
            };
            let mut attempt = Walk::new(path);
            let live = self.frames.get(index + 1..).unwrap_or_default();
            match into_member(&mut attempt, ty, member as u32, current, live) {
                Ok(()) => {
                    if let Base::Use(entry) = location.base
                        && let Some((_, resolved)) = self.open_locations.get_mut(entry)
                    {
                        *resolved = true;
                    }
                    let head = self.frames.iter().take(index).map(Frame::index).collect();
                    return Ok((self.scope, head, attempt));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => error(path.first.at, no_field(path)),
        }
    }

    fn walk_scope(&self, walk: &mut Walk<'x, 'x>, scope: Scope, words: Words<'_, 'a>) -> Res<()> {
        if scope > self.scope {
            return error(
                walk.at,
                format!(
                    "`{}`: that scope is decoded later: only earlier fields can be used",
                    walk.text.text()
                ),
            );
        }
        let Some(root) = self.roots.get(scope) else {
            return error(
                walk.at,
                format!("`{}`: there is no such scope here", walk.text.text()),
            );
        };
        let live = if scope == self.scope {
            Some(self.frames.as_slice())
        } else {
            None
        };
        walk.follow(root, words, live)
    }
}

/// Follows the walk's path from a member of a struct. The member with the index `current` is being
/// built, with the frames `live` inside it.
fn into_member<'x, 'a>(
    walk: &mut Walk<'x, 'x>,
    ty: &'x Ty<'a>,
    member: u32,
    current: u32,
    live: &[Frame<'x, 'a>],
) -> Res<()>
where
    'a: 'x,
{
    let path = walk.text;
    if member > current {
        return error(
            path.first.at,
            format!(
                "`{}`: field `{}` comes later: only earlier ones can be used",
                path.text(),
                path.first.text
            ),
        );
    }
    walk.path.push(member);
    walk.follow(
        ty,
        Words::after(path, 1),
        (member == current).then_some(live),
    )
}

impl<'x, 'a> Descent for Builder<'x, 'a> {
    /// A type, and its name if it is a member of a struct.
    type Node = (&'x Ty<'a>, Option<&'a str>);
    /// With the type, if its class is the same for every use.
    type Open = (Making<'x, 'a>, Option<&'x Ty<'a>>);
    type Made = FieldClass;
    type Error = Box<Error>;

    fn enter(&mut self, (ty, name): Self::Node) -> Res<Visited<Self::Open, FieldClass>> {
        let shared = !ty.facts.refers && !self.has_roles();
        if shared && let Some(class) = ty.built.get() {
            return Ok(Visited::Made(class.clone()));
        }
        let making = match &ty.kind {
            TyKind::Int(class) => {
                return Ok(Visited::Made(FieldClass::Int(self.integer(class, name))));
            }
            TyKind::Leaf(class) => return Ok(Visited::Made(class.clone())),
            TyKind::Array(element, length) => {
                let roles = self.array_roles(element, *length, name);
                self.found.roles |= roles;
                Making::Elements(Elements::Array(*length, roles), Some(element), NO_ELEMENT)
            }
            TyKind::Sequence(element, location) => {
                let elements = Elements::Sequence(self.length(location)?);
                Making::Elements(elements, Some(element), NO_ELEMENT)
            }
            TyKind::Struct(structure) => {
                Making::Struct(structure, Vec::with_capacity(structure.members.list.len()))
            }
            TyKind::Variant(variant) => self.variant(variant)?,
        };
        Ok(Visited::Open((making, shared.then_some(ty))))
    }

    fn next(&mut self, (making, _): &mut Self::Open) -> Res<Option<Self::Node>> {
        match making {
            Making::Elements(_, element, _) => {
                let Some(element) = element.take() else {
                    return Ok(None);
                };
                self.frames.push(Frame::Element);
                Ok(Some((element, None)))
            }
            Making::Struct(structure, built) => {
                let Some((name, ty)) = structure.members.list.get(built.len()) else {
                    return Ok(None);
                };
                self.frames
                    .push(Frame::Struct(structure, built.len() as u32));
                let shown = structure.members.shown(name.text);
                self.budget.take(name.at, shown.len() as u64 / 64)?;
                Ok(Some((ty, Some(shown))))
            }
            Making::Variant(making) => {
                let index = making.options.len();
                let Some((_, ty)) = making.variant.options.list.get(index) else {
                    return Ok(None);
                };
                self.frames.push(Frame::Option(index as u32));
                Ok(Some((ty, None)))
            }
        }
    }

    fn add(&mut self, (making, _): &mut Self::Open, class: FieldClass) -> Res<()> {
        self.frames.pop();
        match making {
            Making::Elements(_, _, element) => *element = class,
            Making::Struct(structure, built) => {
                if let Some((name, _)) = structure.members.list.get(built.len()) {
                    let name = self.names.get(structure.members.shown(name.text));
                    built.push(Member { name, class });
                }
            }
            Making::Variant(making) => {
                let options = &making.variant.options;
                if let Some((name, _)) = options.list.get(making.options.len()) {
                    let ranges = making.ranges(name.text);
                    self.budget.take(
                        name.at,
                        ranges.len() as u64 / 2 + name.text.len() as u64 / 64,
                    )?;
                    making.options.push(VariantOption {
                        name: Some(self.names.get(options.shown(name.text))),
                        ranges: ranges.to_vec(),
                        class,
                    });
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self, (making, ty): Self::Open) -> Res<FieldClass> {
        let class = match making {
            Making::Elements(Elements::Array(length, roles), _, element) => FieldClass::Array {
                element: Arc::new(element),
                length,
                min_align: 1,
                roles,
            },
            Making::Elements(Elements::Sequence(length), _, element) => FieldClass::Sequence {
                element: Arc::new(element),
                length,
                min_align: 1,
            },
            Making::Struct(structure, members) => FieldClass::Struct(Arc::new(StructClass {
                min_align: structure.min_align,
                members,
            })),
            Making::Variant(making) => FieldClass::Variant(Arc::new(VariantClass {
                selector: making.selector,
                options: making.options,
            })),
        };
        if let Some(ty) = ty {
            let _ = ty.built.set(class.clone());
        }
        Ok(class)
    }
}

/// Message for a relative path that does not lead to a field.
pub(super) fn no_field(path: &Path<'_>) -> String {
    format!(
        "`{}`: there is no field `{}` before this one",
        path.text(),
        path.first.text
    )
}
