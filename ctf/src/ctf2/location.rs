//! Field locations: reads them and finds the fields that they may lead to.
//!
//! The specification finds a length or selector field while it decodes. This module does the same
//! walk over field classes, once for all data. Where the path enters a variant that is not being
//! decoded any more, every option must have a target.

use super::fault::{Fault, Result};
use super::json::{JsonContent, Value};
use super::object::{Object, items_of, shown};
use super::raw::{RawClass, RawKind};
use super::roles::scope_name;
use crate::schema::{FieldClass, FieldLocation, Scope};

/// A field location as read.
#[derive(Debug)]
pub(super) struct Location {
    at: usize,
    /// `None`: the path starts at the structure that contains the dependent field.
    origin: Option<Scope>,
    /// Member names; `None` goes up to the parent structure.
    path: Vec<Option<String>>,
}

impl Location {
    /// Byte offset in the metadata.
    pub(super) fn at(&self) -> usize {
        self.at
    }
}

pub(super) fn read_location(value: &Value) -> Result<Location> {
    let object = Object::of(value, "field location")?;
    object.only(&[&["origin", "path"]])?;
    let scopes = [
        Scope::CommonContext,
        Scope::EventHeader,
        Scope::Payload,
        Scope::SpecificContext,
        Scope::PacketContext,
        Scope::PacketHeader,
    ]
    .map(|scope| (scope_name(scope), scope));
    let origin = object.one_of("origin", &scopes)?;
    let path_value = object.need("path")?;
    let items = items_of(path_value, "path")?;
    match items.last() {
        None => {
            return Err(Fault::new(
                path_value.at,
                "`path`: expecting at least one element",
            ));
        }
        Some(Value {
            at,
            kind: JsonContent::Null,
        }) => {
            return Err(Fault::new(*at, "`path`: the last element may not be null"));
        }
        Some(_) if items.len() > MAX_PATH => {
            let message = format!("`path`: more than {MAX_PATH} elements are not supported");
            return Err(Fault::new(path_value.at, message));
        }
        Some(_) => {}
    }
    let path = items
        .iter()
        .map(|item| match &item.kind {
            JsonContent::Str(name) => Ok(Some(name.clone())),
            JsonContent::Null => Ok(None),
            _ => {
                let message = format!(
                    "`path`: expecting a string or null, not {}",
                    item.kind_name()
                );
                Err(Fault::new(item.at, message))
            }
        })
        .collect::<Result<_>>()?;
    Ok(Location {
        at: value.at,
        origin,
        path,
    })
}

/// Type of the value of a located field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetKind {
    Boolean,
    Unsigned,
    Signed,
}

impl TargetKind {
    fn of(class: &RawClass) -> Option<Self> {
        match &class.kind {
            RawKind::Plain(FieldClass::Bool(_)) => Some(TargetKind::Boolean),
            RawKind::Plain(FieldClass::Int(int) | FieldClass::VarInt(int)) => Some(if int.signed {
                TargetKind::Signed
            } else {
                TargetKind::Unsigned
            }),
            _ => None,
        }
    }

    pub(super) fn noun(self) -> &'static str {
        match self {
            TargetKind::Boolean => "a boolean",
            TargetKind::Unsigned => "an unsigned integer",
            TargetKind::Signed => "a signed integer",
        }
    }
}

/// A step down into a class that contains the dependent field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Containing<'a> {
    pub(super) class: &'a RawClass,
    /// Index of the part that contains the field, as in [`FieldLocation::paths`].
    pub(super) index: u32,
}

/// The root classes of the scopes, in the order of [`Scope`]; `None` if the scope does not exist.
pub(super) type Roots<'a> = [Option<&'a RawClass>; 6];

/// Cost of recording a target, in steps. It bounds the memory of all paths.
const TARGET_STEPS: u64 = 16;

/// Largest number of elements in a location's path.
const MAX_PATH: usize = 256;

/// The position of the dependent field, and the budget of the walks.
pub(super) struct Finder<'a> {
    /// Roots of the known scopes.
    pub(super) roots: Roots<'a>,
    /// Scope of the dependent field.
    pub(super) scope: Scope,
    /// Path from the scope's root to the dependent field.
    pub(super) trail: Vec<Containing<'a>>,
    /// Remaining steps for all walks of this metadata stream.
    pub(super) steps: u64,
}

/// A structure on the path, with the length of the path to it.
#[derive(Clone, Copy)]
struct Frame<'a> {
    class: &'a RawClass,
    path_len: usize,
}

/// The state of a walk: at the value of `class` at `path`, within the structures of `frames`.
#[derive(Clone)]
struct ClassWalk<'f, 'a> {
    class: &'a RawClass,
    frames: Vec<Frame<'a>>,
    path: Vec<u32>,
    /// Remaining elements of the location's path.
    rest: &'f [Option<String>],
    /// Of a variant whose options are all candidates: index of the next option.
    option: usize,
}

impl<'a> ClassWalk<'_, 'a> {
    /// Moves on to a part of the class.
    fn part(mut self, class: &'a RawClass, index: u32) -> Self {
        self.path.push(index);
        ClassWalk {
            class,
            option: 0,
            ..self
        }
    }
}

/// A walk along a location.
struct Walk<'f, 'a> {
    finder: &'f mut Finder<'a>,
    location: &'f Location,
    scope: Scope,
    paths: Vec<Vec<u32>>,
    kind: Option<TargetKind>,
}

impl<'a> Finder<'a> {
    /// Finds the targets of a location, starting from the field at the end of the trail.
    pub(super) fn find(&mut self, location: &Location) -> Result<(FieldLocation, TargetKind)> {
        let scope = location.origin.unwrap_or(self.scope);
        if scope > self.scope {
            let message = format!(
                "a field of the `{}` scope cannot depend on the `{}` scope, which is decoded later",
                scope_name(self.scope),
                scope_name(scope)
            );
            return Err(Fault::new(location.at, message));
        }
        let (frames, path) = self.start(location, scope)?;
        let mut walk = Walk {
            finder: self,
            location,
            scope,
            paths: Vec::new(),
            kind: None,
        };
        walk.spend(frames.len() as u64)?;
        walk.follow(frames, path)?;
        let Some(kind) = walk.kind else {
            return Err(walk.fault("leads to no field"));
        };
        let mut paths = walk.paths;
        // Paths that go down, up and down again may lead to the same field more than once.
        paths.sort_unstable();
        paths.dedup();
        Ok((FieldLocation { scope, paths }, kind))
    }

    /// Position of the dependent field, for messages: an alias may be used at many positions.
    pub(super) fn place(&self) -> String {
        let names = self.trail.iter().filter_map(|step| match &step.class.kind {
            RawKind::Struct { members, .. } => {
                members.get(step.index as usize).map(|(name, _)| name)
            }
            _ => None,
        });
        let names: Vec<String> = names
            .take(16)
            .map(|name| format!("`{}`", shown(name)))
            .collect();
        format!("`{}`: {}", scope_name(self.scope), names.join("/"))
    }

    /// The structures in which the walk starts, outermost first, and the path to the innermost.
    fn start(&self, location: &Location, scope: Scope) -> Result<(Vec<Frame<'a>>, Vec<u32>)> {
        if location.origin.is_some() {
            let root = self
                .roots
                .get(scope as usize)
                .copied()
                .flatten()
                .ok_or_else(|| {
                    let message = format!("there is no `{}` field class", scope_name(scope));
                    Fault::new(location.at, message)
                })?;
            let path_len = 0;
            return Ok((
                vec![Frame {
                    class: root,
                    path_len,
                }],
                Vec::new(),
            ));
        }
        let mut frames = Vec::new();
        for (path_len, step) in self.trail.iter().enumerate() {
            if matches!(step.class.kind, RawKind::Struct { .. }) {
                frames.push(Frame {
                    class: step.class,
                    path_len,
                });
            }
        }
        let path_len = frames.last().map_or(0, |frame| frame.path_len);
        let steps = self.trail.iter().take(path_len).map(|step| step.index);
        Ok((frames, steps.collect()))
    }
}

impl<'f, 'a> Walk<'f, 'a> {
    fn fault(&self, problem: &str) -> Fault {
        let path: Vec<String> = self
            .location
            .path
            .iter()
            .take(16)
            .map(|element| match element {
                Some(name) => format!("`{}`", shown(name)),
                None => String::from("null"),
            })
            .collect();
        let origin = match self.location.origin {
            Some(scope) => format!("`{}`: ", scope_name(scope)),
            None => String::new(),
        };
        let message = format!(
            "field location {origin}{}: {problem} (needed by {})",
            path.join("/"),
            self.finder.place()
        );
        Fault::new(self.location.at, message)
    }

    fn spend(&mut self, steps: u64) -> Result<()> {
        match self.finder.steps.checked_sub(steps) {
            Some(left) => {
                self.finder.steps = left;
                Ok(())
            }
            None => Err(self.fault("too many candidates: the metadata is too complex")),
        }
    }

    /// Follows the location from the innermost of these structures, which is at `path`.
    fn follow(&mut self, frames: Vec<Frame<'a>>, path: Vec<u32>) -> Result<()> {
        let location = self.location;
        let mut left = vec![self.member(frames, path, &location.path)?];
        while let Some(place) = left.pop() {
            self.enter(place, &mut left)?;
        }
        Ok(())
    }

    /// Goes up and down to the next member that the rest of the path names.
    fn member(
        &mut self,
        mut frames: Vec<Frame<'a>>,
        mut path: Vec<u32>,
        mut rest: &'f [Option<String>],
    ) -> Result<ClassWalk<'f, 'a>> {
        while let [None, tail @ ..] = rest {
            frames.pop();
            let Some(parent) = frames.last() else {
                return Err(self.fault("there is no parent structure"));
            };
            path.truncate(parent.path_len);
            rest = tail;
        }
        let ([Some(name), rest @ ..], Some(frame)) = (rest, frames.last()) else {
            return Err(self.fault("leads to no field"));
        };
        let RawKind::Struct { members, .. } = &frame.class.kind else {
            return Err(self.fault("leads through a field that is not a structure"));
        };
        let mut members = members.iter().zip(0u32..);
        let Some(((_, class), index)) = members.find(|((member, _), _)| member == name) else {
            return Err(self.fault(&format!("no structure member is named `{}`", shown(name))));
        };
        self.spend(u64::from(index) + 1)?;
        path.push(index);
        Ok(ClassWalk {
            class,
            frames,
            path,
            rest,
            option: 0,
        })
    }

    /// Continues with the value of a member, an option or an element; pushes the next states.
    fn enter(
        &mut self,
        mut place: ClassWalk<'f, 'a>,
        left: &mut Vec<ClassWalk<'f, 'a>>,
    ) -> Result<()> {
        self.spend(1 + place.path.len() as u64)?;
        if self.is_ahead(&place.path) {
            return Err(self.fault("leads to a field that is not decoded yet where it is needed"));
        }
        match &place.class.kind {
            RawKind::Struct { .. } if place.rest.is_empty() => {
                return Err(self.fault("leads to a structure: expecting an integer or a boolean"));
            }
            RawKind::Struct { .. } => {
                let (class, path_len) = (place.class, place.path.len());
                place.frames.push(Frame { class, path_len });
                left.push(self.member(place.frames, place.path, place.rest)?);
            }
            RawKind::Array { element, .. } | RawKind::Sequence { element, .. } => {
                if self.current(&place.path).is_none() {
                    return Err(self.fault("leads into an array that is not being decoded"));
                }
                left.push(place.part(element, 0));
            }
            RawKind::Optional { element, .. } => {
                if self.current(&place.path).is_none() {
                    return Err(self.fault("leads into an optional field that may not exist"));
                }
                left.push(place.part(element, 0));
            }
            RawKind::Variant { options, .. } => match self.current(&place.path) {
                Some(current) => {
                    if let Some(option) = options.get(current as usize) {
                        left.push(place.part(&option.class, current));
                    }
                }
                None => {
                    // All options, one after the other.
                    if let Some(option) = options.get(place.option) {
                        let index = place.option as u32;
                        let mut others = place.clone();
                        others.option += 1;
                        left.push(others);
                        left.push(place.part(&option.class, index));
                    }
                }
            },
            _ => self.arrive(place.class, &place.path, place.rest)?,
        }
        Ok(())
    }

    /// Ends the walk at a scalar field.
    fn arrive(&mut self, class: &RawClass, path: &[u32], rest: &[Option<String>]) -> Result<()> {
        let Some(kind) = TargetKind::of(class) else {
            let problem = format!(
                "leads to {}: expecting an integer or a boolean",
                class.noun()
            );
            return Err(self.fault(&problem));
        };
        if !rest.is_empty() {
            return Err(self.fault(&format!(
                "leads on from {}, which has no members",
                kind.noun()
            )));
        }
        match self.kind {
            Some(other) if other != kind => {
                let problem = format!("leads to {} and to {}", other.noun(), kind.noun());
                return Err(self.fault(&problem));
            }
            _ => self.kind = Some(kind),
        }
        self.spend(TARGET_STEPS)?;
        self.paths.push(path.to_vec());
        Ok(())
    }

    /// The index of the part that contains the dependent field, if the field at `path` contains it.
    fn current(&self, path: &[u32]) -> Option<u32> {
        if self.scope != self.finder.scope {
            return None;
        }
        let trail = &self.finder.trail;
        let is_on_trail = trail
            .iter()
            .map(|step| step.index)
            .take(path.len())
            .eq(path.iter().copied());
        is_on_trail
            .then(|| trail.get(path.len()).map(|step| step.index))
            .flatten()
    }

    /// True if the field at `path` is decoded after the dependent field, or lies inside it.
    fn is_ahead(&self, path: &[u32]) -> bool {
        self.scope == self.finder.scope
            && path
                .iter()
                .copied()
                .cmp(self.finder.trail.iter().map(|step| step.index))
                .is_gt()
    }
}
