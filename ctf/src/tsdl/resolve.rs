//! Resolves the lengths and tags of a type at its use to the fields that they refer to.

use std::sync::Arc;

use super::ast::{Ident, Path};
use super::error::{Res, error};
use super::types::{Members, StructTy, Ty, TyKind, VariantTy};
use crate::schema::{IntClass, IntRange};

/// A compound type that is being built: a step of the path from the root of the scope to the
/// current field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame<'x, 'a> {
    /// A struct, and the index of its current member.
    Struct(&'x StructTy<'a>, u32),
    /// A variant: the index of its current option.
    Option(u32),
    /// An array or sequence: the current element.
    Element,
}

impl Frame<'_, '_> {
    /// The index of the step in a path.
    pub(super) fn index(&self) -> u32 {
        match self {
            Frame::Struct(_, index) | Frame::Option(index) => *index,
            Frame::Element => 0,
        }
    }
}

/// The remaining words of a location.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'x, 'a> {
    first: Option<Ident<'a>>,
    rest: &'x [Ident<'a>],
}

impl<'x, 'a> Words<'x, 'a> {
    /// The words of a path after the first `skip`.
    pub(super) fn after(path: &'x Path<'a>, skip: usize) -> Self {
        match skip.checked_sub(1) {
            None => Words {
                first: Some(path.first),
                rest: &path.rest,
            },
            Some(skip) => Words {
                first: None,
                rest: path.rest.get(skip..).unwrap_or_default(),
            },
        }
    }

    fn split(self) -> Option<(Ident<'a>, Words<'x, 'a>)> {
        if let Some(first) = self.first {
            return Some((
                first,
                Words {
                    first: None,
                    rest: self.rest,
                },
            ));
        }
        let (first, rest) = self.rest.split_first()?;
        Some((*first, Words { first: None, rest }))
    }
}

/// An integer that a location leads to.
#[derive(Debug)]
pub(super) struct Target<'x> {
    /// Steps from the start of the walk.
    pub(super) path: Vec<u32>,
    pub(super) class: &'x Arc<IntClass>,
}

/// Maximum number of targets. Larger numbers only serve to exhaust memory.
const MAX_TARGETS: usize = 256;

/// Maximum number of types that a name may lead through.
const MAX_STEPS: usize = 16 * MAX_TARGETS;

/// Maximum number of nested variants that a name may lead into while the selected option is
/// unknown. Bounds the recursion over them.
const MAX_VARIANTS: usize = 64;

/// Follows words down a type.
pub(super) struct Walk<'x, 'p> {
    /// Byte offset of the location, for errors.
    pub(super) at: u32,
    /// The location as written.
    pub(super) text: &'p Path<'p>,
    pub(super) path: Vec<u32>,
    pub(super) targets: Vec<Target<'x>>,
    steps: usize,
    variants: usize,
}

/// State of a walk: in `ty`, with these words left. `live` contains the frames from `ty` on if `ty`
/// is being built. If it is `None`, `ty` is complete, and all its parts are decoded before the use.
struct TypeWalk<'x, 'w, 'a> {
    ty: &'x Ty<'a>,
    words: Words<'w, 'a>,
    live: Option<&'w [Frame<'x, 'a>]>,
}

impl<'x, 'a: 'x, 'p> Walk<'x, 'p> {
    pub(super) fn new(text: &'p Path<'p>) -> Self {
        Walk {
            at: text.first.at,
            text,
            path: Vec::new(),
            targets: Vec::new(),
            steps: 0,
            variants: 0,
        }
    }

    fn fail<T>(&self, at: u32, message: impl std::fmt::Display) -> Res<T> {
        error(at, format!("`{}`: {message}", self.text.text()))
    }

    /// Follows `words` from `ty`; for `live` see [`TypeWalk`].
    pub(super) fn follow<'w>(
        &mut self,
        ty: &'x Ty<'a>,
        words: Words<'w, 'a>,
        live: Option<&'w [Frame<'x, 'a>]>,
    ) -> Res<()> {
        let depth = self.path.len();
        let mut next = Some(TypeWalk { ty, words, live });
        while let Some(place) = next.take() {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return self.fail(self.at, "this name leads to too many fields");
            }
            next = self.step(place)?;
        }
        self.path.truncate(depth);
        Ok(())
    }

    /// Takes a step down; `None` at the end of the path.
    fn step<'w>(&mut self, place: TypeWalk<'x, 'w, 'a>) -> Res<Option<TypeWalk<'x, 'w, 'a>>> {
        let TypeWalk { ty, words, live } = place;
        let next = match (&ty.kind, live) {
            (_, Some([])) => return self.fail(self.at, "a field cannot refer to itself"),
            (TyKind::Struct(structure), _) => self.follow_struct(structure, words, live)?,
            (TyKind::Variant(variant), Some([frame, rest @ ..])) => {
                self.follow_live_option(variant, words, frame.index(), rest)?
            }
            (TyKind::Variant(variant), None) => {
                return self.follow_options(variant, words).map(|()| None);
            }
            (TyKind::Array(element, _) | TyKind::Sequence(element, _), Some([_, rest @ ..])) => {
                self.path.push(0);
                TypeWalk {
                    ty: element,
                    words,
                    live: Some(rest),
                }
            }
            (TyKind::Array(..) | TyKind::Sequence(..), None) => {
                return self.fail(
                    self.at,
                    "this is an array, or leads through one: its elements cannot be referred to",
                );
            }
            (TyKind::Int(class), _) if words.split().is_none() => {
                return self.arrive(class).map(|()| None);
            }
            (TyKind::Int(_) | TyKind::Leaf(_), _) => {
                return match words.split() {
                    Some((word, _)) => {
                        self.fail(word.at, format!("there is no field `{}` there", word.text))
                    }
                    None => self.fail(self.at, "this field is not an integer"),
                };
            }
        };
        Ok(Some(next))
    }

    fn arrive(&mut self, class: &'x Arc<IntClass>) -> Res<()> {
        if self.targets.len() >= MAX_TARGETS {
            return self.fail(self.at, "this name leads to too many fields");
        }
        let path = self.path.clone();
        self.targets.push(Target { path, class });
        Ok(())
    }

    fn follow_struct<'w>(
        &mut self,
        structure: &'x StructTy<'a>,
        words: Words<'w, 'a>,
        live: Option<&'w [Frame<'x, 'a>]>,
    ) -> Res<TypeWalk<'x, 'w, 'a>> {
        let Some((word, words)) = words.split() else {
            return self.fail(self.at, "this is a struct, not an integer");
        };
        let Some((index, ty)) = lookup(&structure.members, word.text) else {
            return self.fail(word.at, format!("there is no field `{}`", word.text));
        };
        let live = match live {
            Some([frame, rest @ ..]) if index == frame.index() => Some(rest),
            Some([frame, ..]) if index > frame.index() => {
                return self.fail(
                    word.at,
                    format!(
                        "field `{}` comes later: only earlier ones can be used",
                        word.text
                    ),
                );
            }
            _ => None,
        };
        self.path.push(index);
        Ok(TypeWalk { ty, words, live })
    }

    /// A word may name the option that is being decoded; else the variant is transparent.
    fn follow_live_option<'w>(
        &mut self,
        variant: &'x VariantTy<'a>,
        words: Words<'w, 'a>,
        index: u32,
        rest: &'w [Frame<'x, 'a>],
    ) -> Res<TypeWalk<'x, 'w, 'a>> {
        let Some((name, ty)) = variant.options.list.get(index as usize) else {
            return self.fail(self.at, "no such option");
        };
        let words = match words.split() {
            Some((word, inner)) if word.text == name.text => inner,
            _ => words,
        };
        self.path.push(index);
        Ok(TypeWalk {
            ty,
            words,
            live: Some(rest),
        })
    }

    /// A word may name an option. Otherwise any option may be the decoded one, so all are followed.
    fn follow_options(&mut self, variant: &'x VariantTy<'a>, words: Words<'_, 'a>) -> Res<()> {
        if self.variants >= MAX_VARIANTS {
            return self.fail(self.at, "this name leads through too many nested variants");
        }
        self.variants += 1;
        let named = words.split().and_then(|(word, inner)| {
            let (index, ty) = lookup(&variant.options, word.text)?;
            Some((index, ty, inner))
        });
        let is_named = named.is_some_and(|(index, ty, inner)| {
            let found = self.targets.len();
            let is_there = self.follow_option(index, ty, inner).is_ok();
            if !is_there {
                self.targets.truncate(found);
            }
            is_there
        });
        if !is_named {
            for (index, (_, ty)) in (0u32..).zip(&variant.options.list) {
                self.follow_option(index, ty, words)?;
            }
        }
        self.variants -= 1;
        Ok(())
    }

    fn follow_option(&mut self, index: u32, ty: &'x Ty<'a>, words: Words<'_, 'a>) -> Res<()> {
        let (depth, variants) = (self.path.len(), self.variants);
        self.path.push(index);
        let result = self.follow(ty, words, None);
        // Restores the state, since the path may have failed halfway.
        self.path.truncate(depth);
        self.variants = variants;
        result
    }

    /// Checks that lengths are unsigned integers of at most 64 bits.
    pub(super) fn check_length(&self) -> Res<()> {
        for target in &self.targets {
            if target.class.signed {
                return self.fail(
                    self.at,
                    "a length is an unsigned integer: this field is signed",
                );
            }
            if target.class.length > 64 {
                return self.fail(
                    self.at,
                    "a length has at most 64 bits: this field is longer",
                );
            }
        }
        Ok(())
    }

    /// Checks that the tag is a single enumeration with a label for some option.
    pub(super) fn check_tag(&self, options: &Members<'_>) -> Res<&Target<'x>> {
        let [target] = self.targets.as_slice() else {
            return self.fail(self.at, "a tag is exactly one field: this leads to several");
        };
        if !target.class.is_enum {
            return self.fail(
                self.at,
                "a tag is an enumeration: this field is an integer without labels",
            );
        }
        if target.class.length > 64 {
            return self.fail(self.at, "a tag has at most 64 bits: this field is longer");
        }
        if options
            .list
            .iter()
            .all(|(name, _)| option_ranges(target.class, name.text).is_none())
        {
            return self.fail(
                self.at,
                "no label of this enumeration is the name of an option of the variant",
            );
        }
        Ok(target)
    }
}

fn lookup<'x, 'a>(members: &'x Members<'a>, name: &str) -> Option<(u32, &'x Ty<'a>)> {
    let index = members.find(name)?;
    members.list.get(index).map(|(_, ty)| (index as u32, &**ty))
}

/// Ranges of the label that selects an option: the label of the same name, or of the name without
/// the underscore that protects names from keywords.
pub(super) fn option_ranges<'c>(tag: &'c IntClass, option: &str) -> Option<&'c [IntRange]> {
    let label = |name: &str| tag.mappings.iter().find(|mapping| mapping.label == name);
    label(option)
        .or_else(|| option.strip_prefix('_').and_then(label))
        .map(|mapping| mapping.ranges.as_slice())
}
