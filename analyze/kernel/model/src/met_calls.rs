//! System calls that traces name and the table of all architectures' common calls lacks:
//! `arm_fadvise64_64`, `riscv_flush_icache`, those of newer kernels, and those that have a number only.
//!
//! The names last as long as the program, like those of the table, so that a [`Syscall`] stays a
//! number that is copied. They come from the metadata of the traces that are opened, which bounds
//! them, and there are at most [`MOST`].

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::category::Category;
use crate::syscall::{KNOWN_CALLS, Syscall};

/// Numbers of all calls are below this one.
pub(crate) const MOST: usize = 0x8000;

/// Prefixes that architectures and tracers put on names of common calls.
const PREFIXES: [&str; 10] = [
    "arm_", "arm64_", "ppc_", "riscv_", "s390_", "s390x_", "sparc_", "sys32_", "old_", "_",
];

#[derive(Debug)]
struct Met {
    name: &'static str,
    category: Category,
}

#[derive(Debug, Default)]
struct Names {
    /// By number behind those of the table.
    calls: Vec<Met>,
    by_name: HashMap<&'static str, Syscall>,
}

static NAMES: LazyLock<RwLock<Names>> = LazyLock::new(RwLock::default);

fn read<T>(of: impl FnOnce(&Names) -> T) -> T {
    of(&NAMES.read().unwrap_or_else(PoisonError::into_inner))
}

fn met<T>(call: Syscall, of: impl FnOnce(&Met) -> T) -> Option<T> {
    let at = usize::from(call.0).checked_sub(*KNOWN_CALLS)?;
    read(|names| names.calls.get(at).map(of))
}

/// The call of that name, if a trace had one.
pub(crate) fn by_name(name: &str) -> Option<Syscall> {
    read(|names| names.by_name.get(name).copied())
}

/// The call of that name, new or not.
pub(crate) fn add(name: &str) -> Syscall {
    if let Some(call) = by_name(name) {
        return call;
    }
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(call) = names.by_name.get(name) {
        return *call;
    }
    let number = *KNOWN_CALLS + names.calls.len();
    let Some(number) = u16::try_from(number).ok().filter(|_| number < MOST) else {
        return Syscall::OTHER;
    };
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let category = category_of(name);
    names.calls.push(Met { name, category });
    names.by_name.insert(name, Syscall(number));
    Syscall(number)
}

/// The common call with that name.
fn category_of(name: &str) -> Category {
    let common = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let common = common.and_then(Syscall::of_table);
    common.map_or(Category::System, Syscall::category)
}

pub(crate) fn name(call: Syscall) -> Option<&'static str> {
    met(call, |met| met.name)
}

pub(crate) fn category(call: Syscall) -> Option<Category> {
    met(call, |met| met.category)
}

/// How many there are.
pub(crate) fn count() -> usize {
    read(|names| names.calls.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_call() {
        let call = Syscall::named("arm_fadvise64_64");
        assert_eq!(call, Syscall::named("arm_fadvise64_64"));
        assert_eq!(Syscall::by_name("arm_fadvise64_64"), Some(call));
        assert_eq!(
            (call.name(), call.user_name()),
            ("arm_fadvise64_64", "arm_fadvise64_64")
        );
        assert_eq!(call.category(), Syscall::named("fadvise64_64").category());
        assert_eq!((call.spec().is_none(), call.arguments()), (true, 0));
        assert!(call.0 < Syscall::count() && Syscall::all().any(|one| one == call));
        assert_ne!(call, Syscall::named("cacheflush"));
        assert_eq!(Syscall::named("read"), Syscall::by_name("read").expect("a call"));
    }

    #[test]
    fn the_order_is_that_of_names_whichever_was_met_first() {
        let (second, first) = (Syscall::named("zz_second"), Syscall::named("zz_first"));
        assert!(first < second);
        assert!(Syscall::of_table("writev").expect("a call") < first);
        assert!(second < Syscall::OTHER);
    }
}
