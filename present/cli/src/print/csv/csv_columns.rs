//! Names and order of the columns for the fields of event classes.

use std::collections::{HashMap, HashSet};
use std::fmt;

use tracebraid_ctf::layout::node::NodeKind;
use tracebraid_ctf::layout::tree::{Part, Tree};

use crate::print::hidden::Hidden;

/// Maximum number of columns for fields. All system calls need 300, all events that LTTng knows 450:
/// almost every cell of such a table is empty.
pub(super) const MOST_COLUMNS: usize = 400;

/// More than [`MOST_COLUMNS`] columns would be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyColumns;

impl fmt::Display for TooManyColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the selected events have more than {MOST_COLUMNS} different fields, each of which is a column: \
             choose events with --name, such as --name sched_switch"
        )
    }
}

/// Scopes whose fields of the same name share a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Group {
    /// Contexts of packets and event records.
    Context,
    Payload,
}

impl Group {
    fn name(self) -> &'static str {
        match self {
            Group::Context => "context",
            Group::Payload => "payload",
        }
    }
}

/// The columns in the order of their first occurrence.
#[derive(Debug)]
pub(super) struct Columns {
    names: Vec<String>,
    taken: HashSet<String>,
    /// By group, path and number of the earlier fields of an event class with that path. (Names
    /// that differ only in a leading underscore are read as the same name.)
    known: HashMap<(Group, String, usize), usize>,
}

impl Columns {
    /// `taken` are the names of other columns. If a field has one of them, the name of its column
    /// begins with its group.
    pub(super) fn new(taken: &[&str]) -> Self {
        Columns {
            names: Vec::new(),
            taken: taken.iter().map(|&name| name.to_owned()).collect(),
            known: HashMap::new(),
        }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns of the visible fields of consecutive scopes, in the order of the data.
    ///
    /// # Errors
    /// When there would be too many columns.
    pub(super) fn of_fields(
        &mut self,
        group: Group,
        scopes: &[&Tree],
        hidden: &Hidden,
    ) -> Result<Vec<usize>, TooManyColumns> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut columns = Vec::new();
        for root in scopes.iter().filter_map(|scope| scope.root()) {
            visible(root, hidden, |path| {
                let count = counts.entry(path.to_owned()).or_default();
                columns.push(self.column(group, path, *count)?);
                *count += 1;
                Ok(())
            })?;
        }
        Ok(columns)
    }

    fn column(&mut self, group: Group, path: &str, nth: usize) -> Result<usize, TooManyColumns> {
        let key = (group, path.to_owned(), nth);
        if let Some(&column) = self.known.get(&key) {
            return Ok(column);
        }
        if self.names.len() >= MOST_COLUMNS {
            return Err(TooManyColumns);
        }
        let name = self.free_name(group, path);
        self.taken.insert(name.clone());
        self.names.push(name);
        let column = self.names.len() - 1;
        self.known.insert(key, column);
        Ok(column)
    }

    fn free_name(&self, group: Group, path: &str) -> String {
        let is_free = |name: &String| !self.taken.contains(name);
        let qualified = format!("{}.{path}", group.name());
        let numbered = (2u64..).map(|number| format!("{qualified}_{number}"));
        let mut names = [path.to_owned(), qualified.clone()]
            .into_iter()
            .chain(numbered);
        names.find(is_free).unwrap_or_default()
    }
}

/// Calls `each` with the path of every visible field that is not a structure, in the order of the
/// data.
fn visible(
    root: Part<'_>,
    hidden: &Hidden,
    mut each: impl FnMut(&str) -> Result<(), TooManyColumns>,
) -> Result<(), TooManyColumns> {
    let mut path = String::new();
    // The remaining members of each open structure, and the length of its path.
    let mut open = vec![(root.parts(), 0)];
    while let Some((members, length)) = open.last_mut() {
        path.truncate(*length);
        let Some(member) = members.next() else {
            open.pop();
            continue;
        };
        if hidden.hides(&member) {
            continue;
        }
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&member.name);
        match member.kind {
            NodeKind::Struct(_) => open.push((member.parts(), path.len())),
            _ => each(&path)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_qualified_only_where_they_collide() {
        let mut columns = Columns::new(&["time_ns", "event"]);
        let mut add = |group, path, nth| columns.column(group, path, nth).unwrap();
        assert_eq!(add(Group::Context, "tid", 0), 0);
        assert_eq!(add(Group::Context, "event", 0), 1);
        assert_eq!(add(Group::Payload, "payload.tid", 0), 2);
        assert_eq!(add(Group::Payload, "tid", 0), 3);
        assert_eq!(add(Group::Payload, "prio", 0), 4);
        assert_eq!(add(Group::Payload, "prio", 1), 5);
        assert_eq!(add(Group::Payload, "prio", 2), 6);
        assert_eq!(add(Group::Payload, "tid", 0), 3);
        assert_eq!(add(Group::Context, "tid", 0), 0);
        let names = [
            "tid",
            "context.event",
            "payload.tid",
            "payload.tid_2",
            "prio",
            "payload.prio",
            "payload.prio_2",
        ];
        assert_eq!(columns.names(), names);
    }

    #[test]
    fn the_number_of_columns_is_bounded() {
        let mut columns = Columns::new(&[]);
        for index in 0..MOST_COLUMNS {
            assert_eq!(
                columns.column(Group::Payload, &index.to_string(), 0),
                Ok(index)
            );
        }
        assert_eq!(columns.column(Group::Payload, "0", 0), Ok(0));
        assert_eq!(columns.column(Group::Payload, "x", 0), Err(TooManyColumns));
    }
}
