//! System calls as compact numbers: all of Linux, and others that traces name.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::action::{Action, SyscallSpec, TABLE};
use crate::calls::{CALLS, Call};
use crate::category::{CATEGORIES, Category, IoClass};
use crate::met_calls;

/// A system call. Calls with an effect on files come first, in the order of their table; then all
/// calls by name; then calls that only traces name. Numbers of the former two are stable within a
/// version of the program, numbers of the last while the program runs. The order of calls does not
/// depend on the traces that were opened before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Syscall(pub u16);

impl Ord for Syscall {
    fn cmp(&self, other: &Self) -> Ordering {
        let is_met =
            |call: &Syscall| usize::from(call.0) >= *KNOWN_CALLS && *call != Syscall::OTHER;
        match is_met(self) && is_met(other) {
            true => self.name().cmp(other.name()),
            false => self.0.cmp(&other.0),
        }
    }
}

impl PartialOrd for Syscall {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Table of system call numbers of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// x86-64.
    X86_64,
    /// i386, and 32-bit programs on x86-64.
    I386,
    /// AArch64, RISC-V, LoongArch and other machines with the generic table.
    Generic,
    /// 32-bit ARM (EABI), and 32-bit programs on AArch64.
    Arm,
    /// Machines with tables of their own (POWER, s390, MIPS, SPARC): numbers are unknown.
    Other,
}

impl Abi {
    /// Table for the name of a machine as in `uname -m`; x86-64 without a name.
    pub fn of_machine(machine: Option<&str>) -> Abi {
        let is = |prefixes: &[&str]| {
            machine.is_some_and(|machine| prefixes.iter().any(|prefix| machine.starts_with(prefix)))
        };
        if is(&["aarch64", "arm64", "riscv", "loongarch"]) {
            Abi::Generic
        } else if is(&["i386", "i486", "i586", "i686"]) {
            Abi::I386
        } else if is(&["arm"]) {
            Abi::Arm
        } else if machine.is_none() || is(&["x86", "amd64"]) {
            Abi::X86_64
        } else {
            Abi::Other
        }
    }

    /// Table of the machine's 32-bit programs.
    pub fn compat(self) -> Abi {
        match self {
            Abi::X86_64 | Abi::I386 => Abi::I386,
            Abi::Generic | Abi::Arm => Abi::Arm,
            Abi::Other => Abi::Other,
        }
    }
}

/// Table row and category of a call.
struct Known {
    row: &'static Call,
    category: Category,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let categories: HashMap<&str, Category> = CATEGORIES
        .iter()
        .flat_map(|(category, names)| names.split_whitespace().map(|name| (name, *category)))
        .collect();
    let known = |row: &'static Call| Known {
        row,
        category: categories.get(row.0).copied().unwrap_or(Category::System),
    };
    let of_files = TABLE.iter().filter_map(|spec| {
        let at = CALLS.binary_search_by_key(&spec.name, |row| row.0).ok()?;
        CALLS.get(at)
    });
    of_files.chain(CALLS).map(known).collect()
});

/// Upper bound of the numbers of calls.
const MOST: usize = 0x8000;

/// Prefixes that architectures and tracers add to names of common calls.
const PREFIXES: [&str; 10] = [
    "arm_", "arm64_", "ppc_", "riscv_", "s390_", "s390x_", "sparc_", "sys32_", "old_", "_",
];

/// The category of a call that only traces name: that of the common call with this name.
fn category_of_met(name: &str) -> Category {
    if name.starts_with(Syscall::USER_WAIT) {
        return Category::UserLevel;
    }
    let common = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let common = common.and_then(Syscall::of_table);
    common.map_or(Category::System, Syscall::category)
}

/// Number of calls in the table.
static KNOWN_CALLS: LazyLock<usize> = LazyLock::new(|| KNOWN.len());

static BY_NAME: LazyLock<HashMap<&str, Syscall>> = LazyLock::new(|| {
    let names = KNOWN.iter().map(|known| known.row.0).enumerate();
    // If a name occurs twice, the first number applies.
    let names = names.rev().map(|(at, name)| (name, Syscall(at as u16)));
    names.collect()
});

/// Names of arguments that are descriptors.
const DESCRIPTORS: [&str; 5] = ["fd", "in_fd", "fd_in", "fdin", "oldfd"];

impl Syscall {
    /// A system call whose name and number are unknown.
    pub const OTHER: Syscall = Syscall(u16::MAX);

    /// Beginning of the names of waits of user-level threads, which count as calls; the reason
    /// follows.
    pub const USER_WAIT: &str = "ult_wait_";
    /// Beginning of the names of event classes with which user-level threads begin to wait; the
    /// reason follows.
    pub const USER_WAIT_ENTRY: &str = "ult_wait_entry_";
    /// As [`Syscall::USER_WAIT_ENTRY`], for the end of the wait.
    pub const USER_WAIT_EXIT: &str = "ult_wait_exit_";

    /// The wait of user-level threads that the event class `name` with the prefix `prefix` begins
    /// or ends.
    pub(crate) fn of_user_wait(name: &str, prefix: &str) -> Option<Syscall> {
        let reason = name.strip_prefix(prefix)?;
        Some(Syscall::named(&format!("{}{reason}", Syscall::USER_WAIT)))
    }

    /// True for a wait of user-level threads, which counts as a call.
    pub fn is_user_wait(self) -> bool {
        self.name().starts_with(Syscall::USER_WAIT)
    }

    /// The call with this name of the kernel's function, without prefix: `newstat`, not `stat`.
    /// Includes calls named by traces that were opened.
    pub fn by_name(name: &str) -> Option<Syscall> {
        Syscall::of_table(name).or_else(|| Syscall::met_at(met_calls::by_name(name)?))
    }

    /// The call with this name in the table.
    pub(crate) fn of_table(name: &str) -> Option<Syscall> {
        BY_NAME.get(name).copied()
    }

    /// The call with any name: every name in a trace is a call.
    pub(crate) fn named(name: &str) -> Syscall {
        Syscall::of_table(name).unwrap_or_else(|| {
            let most = MOST - KNOWN.len();
            let place = met_calls::add(name, most, || category_of_met(name));
            place.and_then(Syscall::met_at).unwrap_or(Syscall::OTHER)
        })
    }

    /// The call at an index in the list of names that only traces have.
    fn met_at(place: usize) -> Option<Syscall> {
        let number = u16::try_from(*KNOWN_CALLS + place);
        number.ok().map(Syscall)
    }

    /// Index in the list of names that only traces have.
    fn place_met(self) -> Option<usize> {
        usize::from(self.0).checked_sub(*KNOWN_CALLS)
    }

    /// The call with this number; slow.
    pub fn by_number(abi: Abi, number: i64) -> Option<Syscall> {
        let has = |row: &Call| {
            row.1
                .get(abi as usize)
                .is_some_and(|own| i64::from(*own) == number)
        };
        let at = CALLS.iter().position(has);
        at.filter(|_| number >= 0)
            .and_then(|at| Syscall::of_table(CALLS.get(at)?.0))
    }

    /// Upper bound of all numbers. Grows as traces are opened.
    pub fn count() -> u16 {
        (KNOWN.len() + met_calls::count()) as u16
    }

    /// All calls of the table, each once, in the order of numbers.
    pub(crate) fn table() -> impl Iterator<Item = Syscall> {
        (0..KNOWN.len() as u16)
            .map(Syscall)
            .filter(|call| Syscall::of_table(call.name()) == Some(*call))
    }

    /// All calls of the table and of the traces that were opened, each once.
    pub fn all() -> impl Iterator<Item = Syscall> {
        Syscall::table().chain((KNOWN.len() as u16..Syscall::count()).map(Syscall))
    }

    /// Number of the call, if the machine has it.
    pub fn number(self, abi: Abi) -> Option<u16> {
        let known = KNOWN.get(usize::from(self.0))?;
        u16::try_from(*known.row.1.get(abi as usize)?).ok()
    }

    /// Effect on files; `None` without an effect.
    #[inline(always)]
    pub fn spec(self) -> Option<&'static SyscallSpec> {
        TABLE.get(usize::from(self.0))
    }

    /// Number of arguments of its [`Action`].
    #[inline(always)]
    pub fn arguments(self) -> usize {
        self.spec().map_or(0, |spec| spec.arguments.len())
    }

    /// Index of the descriptor among the arguments of its [`Action`]; of two descriptors, the
    /// source.
    pub fn descriptor(self) -> Option<usize> {
        let mut arguments = self.spec()?.arguments.iter();
        arguments.position(|(names, _)| names.iter().any(|name| DESCRIPTORS.contains(name)))
    }

    /// Name of the kernel's function, without prefix.
    pub fn name(self) -> &'static str {
        match self.spec() {
            Some(spec) => spec.name,
            None => match KNOWN.get(usize::from(self.0)) {
                Some(known) => known.row.0,
                None => self
                    .place_met()
                    .and_then(met_calls::name)
                    .unwrap_or("other"),
            },
        }
    }

    /// Name in programs and manuals: `stat` for `newstat`.
    pub fn user_name(self) -> &'static str {
        match self.name() {
            "newstat" => "stat",
            "newfstat" => "fstat",
            "newlstat" => "lstat",
            "newuname" => "uname",
            "sendfile64" => "sendfile",
            "umount" => "umount2",
            "oldumount" => "umount",
            "mmap_pgoff" => "mmap2",
            name => {
                let suffixes = ["_time32", "_time64"];
                let base = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
                base.unwrap_or(name)
            }
        }
    }

    /// Effect on files.
    #[inline(always)]
    pub fn action(self) -> Action {
        self.spec().map_or(Action::Other, |spec| spec.action)
    }

    /// Subject of the call; [`Category::System`] for an unknown call.
    #[inline]
    pub fn category(self) -> Category {
        match KNOWN.get(usize::from(self.0)) {
            Some(known) => known.category,
            None => {
                let category = self.place_met().and_then(met_calls::category);
                category.unwrap_or(Category::System)
            }
        }
    }

    /// Class of I/O latency, if the call has one.
    pub fn io_class(self) -> Option<IoClass> {
        IoClass::of(self.action(), self.category())
    }

    /// Names of the arguments in order, each with its alternative names.
    pub fn argument_names(self) -> impl Iterator<Item = impl Iterator<Item = &'static str>> {
        let row = KNOWN
            .get(usize::from(self.0))
            .map_or("", |known| known.row.2);
        row.split_whitespace().map(|names| names.split('|'))
    }

    /// Index of an argument by any of its names, and all its names.
    pub(crate) fn argument(self, name: &str) -> Option<(usize, Vec<&'static str>)> {
        let mut all = self.argument_names().map(|names| names.collect::<Vec<_>>());
        let at = all.position(|names| names.contains(&name))?;
        Some((at, self.argument_names().nth(at)?.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_unique() {
        assert!(CALLS.is_sorted_by(|one, other| one.0 < other.0));
        for abi in [Abi::X86_64, Abi::I386, Abi::Generic, Abi::Arm] {
            let mut numbers: Vec<_> = Syscall::table()
                .filter_map(|call| call.number(abi))
                .collect();
            let count = numbers.len();
            assert!(count > 300, "{abi:?}: {count}");
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "{abi:?}");
        }
        assert_eq!(Syscall::table().count(), CALLS.len());
        assert_eq!(
            KNOWN.len(),
            TABLE.len() + CALLS.len(),
            "the table of files has unknown names"
        );
    }

    #[test]
    fn the_calls_of_files_come_first() {
        for (at, spec) in TABLE.iter().enumerate() {
            assert_eq!(Syscall::by_name(spec.name), Some(Syscall(at as u16)));
            assert_eq!(Syscall(at as u16).name(), spec.name);
        }
        let nanosleep = Syscall::by_name("nanosleep").unwrap();
        assert_eq!(
            (nanosleep.action(), nanosleep.arguments()),
            (Action::Other, 0)
        );
        assert_eq!(nanosleep.name(), "nanosleep");
    }

    #[test]
    fn known_numbers() {
        let number = |name, abi| Syscall::by_name(name).unwrap().number(abi);
        for (name, numbers) in [
            ("read", [0, 3, 63, 3]),
            ("openat", [257, 295, 56, 322]),
            ("futex", [202, 240, 98, 240]),
            ("clone3", [435, 435, 435, 435]),
            ("newuname", [63, 122, 160, 122]),
            ("setuid", [105, 213, 146, 213]),
        ] {
            for (abi, expected) in [Abi::X86_64, Abi::I386, Abi::Generic, Abi::Arm]
                .into_iter()
                .zip(numbers)
            {
                assert_eq!(number(name, abi), Some(expected), "{name} {abi:?}");
                assert_eq!(
                    Syscall::by_number(abi, i64::from(expected)),
                    Syscall::by_name(name)
                );
            }
        }
        assert_eq!(number("fork", Abi::Generic), None);
        assert_eq!(Syscall::by_number(Abi::X86_64, -1), None);
    }

    #[test]
    fn arguments_have_places_and_names() {
        let argument = |call: &str, name| {
            Syscall::by_name(call)
                .unwrap()
                .argument(name)
                .map(|(at, _)| at)
        };
        assert_eq!(argument("futex", "uaddr"), Some(0));
        assert_eq!(argument("futex", "val3"), Some(5));
        assert_eq!(argument("openat", "flags"), Some(2));
        assert_eq!(argument("clone", "flags"), Some(0));
        assert_eq!(argument("poll", "timeout_msecs"), Some(2));
        assert_eq!(argument("read", "nothing"), None);
        // The table of calls on files agrees.
        for spec in TABLE {
            for (names, at) in spec.arguments {
                let call = Syscall::by_name(spec.name).unwrap();
                let Some(found) = names.iter().find_map(|name| call.argument(name)) else {
                    assert!(
                        call.argument_names().next().is_none(),
                        "{}: {names:?}",
                        spec.name
                    );
                    continue;
                };
                assert_eq!(found.0, usize::from(*at), "{} {names:?}", spec.name);
            }
        }
    }

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
        assert_eq!(
            Syscall::named("read"),
            Syscall::by_name("read").expect("a call")
        );
    }

    #[test]
    fn the_order_is_that_of_names_whichever_was_met_first() {
        let (second, first) = (Syscall::named("zz_second"), Syscall::named("zz_first"));
        assert!(first < second);
        assert!(Syscall::of_table("writev").expect("a call") < first);
        assert!(second < Syscall::OTHER);
    }
}
