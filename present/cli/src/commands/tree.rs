//! The lines of a process tree.

use tracebraid_tables::{Branch, Section, Unit, Value};

use crate::glyphs::glyphs;
use crate::terminal_text;
use crate::units;

/// The processes of a section's tree; empty if it has no tree.
fn tree<'r>(section: &Section, rows: &[&'r Vec<Value>]) -> Vec<&'r Branch> {
    let mut columns = section.columns.iter();
    let Some(at) = columns.position(|column| column.unit == Unit::Tree) else {
        return Vec::new();
    };
    let branches = rows.iter().filter_map(|row| match row.get(at) {
        Some(Value::Branch(branch)) => Some(&**branch),
        _ => None,
    });
    branches.collect()
}

/// The lines that lead to each process from the process that created it. Processes with an unknown
/// creator are marked.
pub(super) fn branches(section: &Section, rows: &[&Vec<Value>]) -> Vec<String> {
    // For each depth, whether another process follows there; rows are visited from the last to the
    // first.
    let mut follows: Vec<bool> = Vec::new();
    let mut lines: Vec<String> = Vec::with_capacity(rows.len());
    for branch in tree(section, rows).into_iter().rev() {
        let depth = branch.depth as usize;
        let follows_here = follows.get(depth).copied().unwrap_or(false);
        follows.resize(depth + 1, false);
        let mut line: String = (1..depth)
            .map(|depth| {
                if follows[depth] {
                    glyphs().tree[2]
                } else {
                    "  "
                }
            })
            .collect();
        if depth > 0 {
            line += if follows_here {
                glyphs().tree[1]
            } else {
                glyphs().tree[0]
            };
        } else if !branch.is_maker_known {
            line += "? ";
        }
        follows[depth] = true;
        lines.push(line);
    }
    lines.reverse();
    lines
}

/// Explains the mark of a tree, if it occurs.
pub(super) fn legend(section: &Section, rows: &[&Vec<Value>]) -> String {
    let branches = tree(section, rows);
    let unknown = branches
        .iter()
        .filter(|branch| !branch.is_maker_known)
        .count();
    if unknown == 0 {
        return String::new();
    }
    let processes = units::number_of(unknown as u64, "process", "processes");
    terminal_text::paragraph(&format!(
        "  The parent of {processes} (marked ?) is unknown"
    ))
}
