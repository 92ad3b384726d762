//! Names of system calls that traces have and the table of all architectures' common calls lacks:
//! `arm_fadvise64_64`, `riscv_flush_icache`, those of newer kernels, and those that have a number
//! only.
//!
//! The names last as long as the program, like those of the table, so that a system call stays a
//! number that is copied: here its place among these names. They come from the metadata of the
//! traces that are opened, which bounds them, and the caller bounds their number.

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
    /// Places in that list.
    by_name: HashMap<&'static str, usize>,
}

static NAMES: LazyLock<RwLock<Names>> = LazyLock::new(RwLock::default);

fn read<T>(of: impl FnOnce(&Names) -> T) -> T {
    of(&NAMES.read().unwrap_or_else(PoisonError::into_inner))
}

/// The place of that name, if a trace had one.
pub(crate) fn by_name(name: &str) -> Option<usize> {
    read(|names| names.by_name.get(name).copied())
}

/// The place of that name, new or not; `None` if there are `most` already. A new one is of that
/// category.
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

/// The name at that place.
pub(crate) fn name(place: usize) -> Option<&'static str> {
    read(|names| names.calls.get(place).map(|met| met.name))
}

/// The category of the call whose name is at that place.
pub(crate) fn category(place: usize) -> Option<Category> {
    read(|names| names.calls.get(place).map(|met| met.category))
}

/// How many there are.
pub(crate) fn count() -> usize {
    read(|names| names.calls.len())
}
