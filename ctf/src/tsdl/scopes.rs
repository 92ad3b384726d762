//! Declared names of types, by lexical scope.

use std::borrow::Cow;
use std::collections::HashMap;

use super::types::TyRef;

/// Namespaces of type names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Alias,
    Struct,
    Variant,
    Enum,
}

impl Space {
    /// Prefix of names in the namespace.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Space::Alias => "",
            Space::Struct => "struct ",
            Space::Variant => "variant ",
            Space::Enum => "enum ",
        }
    }
}

type Table<'a, T> = [HashMap<Cow<'a, str>, T>; 4];

/// The visible names. A lookup takes constant time, however many scopes are open.
#[derive(Debug, Default)]
pub(super) struct Scopes<'a> {
    /// Names of the whole trace.
    outermost: Table<'a, TyRef<'a>>,
    /// Names of inner scopes with their depths, the innermost last.
    inner: Table<'a, Vec<(usize, TyRef<'a>)>>,
    /// The names in `inner`, in the order of declaration.
    order: Vec<(Space, Cow<'a, str>)>,
    /// Length of `order` at the beginning of each open scope.
    open: Vec<usize>,
}

impl<'a> Scopes<'a> {
    /// Begins a scope.
    pub(super) fn begin(&mut self) {
        self.open.push(self.order.len());
    }

    /// Ends the innermost scope and removes its names.
    pub(super) fn end(&mut self) {
        let before = self.open.pop().unwrap_or_default();
        for (space, name) in self.order.drain(before.min(self.order.len())..) {
            if let Some(table) = self.inner.get_mut(space as usize)
                && let Some(types) = table.get_mut(&name)
            {
                types.pop();
                if types.is_empty() {
                    table.remove(&name);
                }
            }
        }
    }

    /// The type with this name.
    pub(super) fn find(&self, space: Space, name: &str) -> Option<TyRef<'a>> {
        let inner = || self.inner.get(space as usize)?.get(name)?.last();
        if !self.order.is_empty()
            && let Some((_, ty)) = inner()
        {
            return Some(ty.clone());
        }
        self.outermost.get(space as usize)?.get(name).cloned()
    }

    /// Declares a name in the innermost scope; false if it is declared there already.
    pub(super) fn declare(&mut self, space: Space, name: Cow<'a, str>, ty: TyRef<'a>) -> bool {
        let depth = self.open.len();
        if depth == 0 {
            let table = self.outermost.get_mut(space as usize);
            return table.is_some_and(|table| table.insert(name, ty).is_none());
        }
        let Some(table) = self.inner.get_mut(space as usize) else {
            return false;
        };
        let types = table.entry(name.clone()).or_default();
        if types.last().is_some_and(|(at, _)| *at == depth) {
            return false;
        }
        types.push((depth, ty));
        self.order.push((space, name));
        true
    }
}
