//! Calling contexts after functions are renamed.

use std::collections::HashMap;

use crate::build::Union;
use crate::contexts::{ContextId, Contexts, FrameKind};
use crate::names::{NameId, Names};

/// Contexts with renamed functions, where equal ones are joined; and for each old context, the id
/// of the new one.
pub(super) fn renamed(
    mut names: Names,
    contexts: Contexts,
    renames: &[(String, String)],
) -> (Union, Vec<ContextId>) {
    if renames.is_empty() {
        let ids = (0..contexts.count() as u32).map(ContextId).collect();
        return (Union { contexts, names }, ids);
    }
    let known: HashMap<NameId, NameId> = renames
        .iter()
        .map(|(old, new)| (names.id(old), names.id(new)))
        .collect();
    let known = followed(&known);
    let mut merged = vec![Contexts::EMPTY];
    let mut found = Contexts::default();
    for id in 1..contexts.count() as u32 {
        let Some((around, mut frame)) = contexts.parts(ContextId(id)) else {
            continue;
        };
        if let (FrameKind::Function, Some(&new)) = (frame.kind, known.get(&frame.name)) {
            frame.name = new;
        }
        let around = merged.get(around.0 as usize).copied().unwrap_or_default();
        merged.push(found.within(around, frame));
    }
    let union = Union {
        contexts: found,
        names,
    };
    (union, merged)
}

/// The final name of each renamed name, through chains of renames. Databases from elsewhere may
/// contain cycles: their names all get one name of the cycle.
fn followed(known: &HashMap<NameId, NameId>) -> HashMap<NameId, NameId> {
    let mut ends: HashMap<NameId, NameId> = HashMap::new();
    let mut way = Vec::new();
    for &from in known.keys() {
        let mut at = from;
        // Names on the chain get a temporary end, so that a cycle is left where it closes.
        while let (Some(&next), None) = (known.get(&at), ends.get(&at)) {
            ends.insert(at, at);
            way.push(at);
            at = next;
        }
        let end = ends.get(&at).copied().unwrap_or(at);
        for name in way.drain(..) {
            ends.insert(name, end);
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_followed_to_their_ends() {
        let ends = |pairs: &[(u32, u32)]| {
            let known = pairs.iter().map(|&(old, new)| (NameId(old), NameId(new)));
            let mut ends: Vec<(u32, u32)> = followed(&known.collect())
                .into_iter()
                .map(|(old, end)| (old.0, end.0))
                .collect();
            ends.sort_unstable();
            ends
        };
        assert_eq!(
            ends(&[(1, 2), (2, 3), (7, 3), (5, 6)]),
            [(1, 3), (2, 3), (5, 6), (7, 3)]
        );
        // All names of a cycle end at the same name.
        let circle = ends(&[(1, 2), (2, 1), (4, 1)]);
        assert!(
            circle
                .iter()
                .all(|(_, end)| *end == circle[0].1 && *end <= 2),
            "{circle:?}"
        );
    }
}
