//! Names of system calls that occur in traces but not in the table of calls common to all
//! architectures: `arm_fadvise64_64`, `riscv_flush_icache`, calls of newer kernels, and calls known
//! only by number.
//!
//! The names live as long as the program, like those of the table, so that a system call stays a
//! small number: here its index in the list of such names. They come from the metadata of opened
//! traces, which bounds their lengths; the caller bounds their number.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::category::Category;

#[derive(Debug)]
struct Met {
    name: &'static str,
    category: Category,
}

#[derive(Debug, Default)]
struct Names {
    calls: Vec<Met>,
    /// Indices in `calls`.
    by_name: HashMap<&'static str, usize>,
}

static NAMES: LazyLock<RwLock<Names>> = LazyLock::new(RwLock::default);

fn read<T>(of: impl FnOnce(&Names) -> T) -> T {
    of(&NAMES.read().unwrap_or_else(PoisonError::into_inner))
}

/// Index of a name that occurred in a trace.
pub(crate) fn by_name(name: &str) -> Option<usize> {
    read(|names| names.by_name.get(name).copied())
}

/// Index of a name, which is added with this category if it is new; `None` if the list already has
/// `most` names.
pub(crate) fn add(name: &str, most: usize, category: impl FnOnce() -> Category) -> Option<usize> {
    if let Some(place) = by_name(name) {
        return Some(place);
    }
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = names.by_name.get(name) {
        return Some(*place);
    }
    let place = names.calls.len();
    if place >= most {
        return None;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let category = category();
    names.calls.push(Met { name, category });
    names.by_name.insert(name, place);
    Some(place)
}

/// The name at an index.
pub(crate) fn name(place: usize) -> Option<&'static str> {
    read(|names| names.calls.get(place).map(|met| met.name))
}

/// The category of the call at an index.
pub(crate) fn category(place: usize) -> Option<Category> {
    read(|names| names.calls.get(place).map(|met| met.category))
}

/// Number of names.
pub(crate) fn count() -> usize {
    read(|names| names.calls.len())
}
