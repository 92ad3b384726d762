//! Encodings of thread states (`prev_state`).
//!
//! | kernel | what it records | source (include/trace/events/sched.h) |
//! |---|---|---|
//! | before 4.14 | `task->state`; preempted: TASK_STATE_MAX since 3.2 | |
//! | 4.14.0 to 4.14.63 | the place of the letter of `ps`; preempted: TASK_STATE_MAX | efb40f588b43 |
//! | 4.14.64 to 4.14.101, 4.15 to 4.19.8 | 1 << place; preempted: TASK_REPORT_MAX | 3f5fe9fef5b2 |
//! | 4.14.102, 4.19.9, 4.20 and later | 1 << (place - 1); preempted: TASK_REPORT_MAX | 3054426dc68e |
//!
//! perf and ftrace show the values that the kernel records. lttng-modules computes the value:
//! `task->state` on every kernel up to 2.9.14 and 2.10.11, the last row since 2.9.15, 2.10.12 and
//! 2.11.0 on kernels from 4.14 on (its commit 27e6eda75df9). Vendors backport commits to older
//! kernels, and pre-releases of tracers carry the numbers of releases, so uncertain cases are
//! decided by the recorded states ([`StateNumbers::of`]).

use tracebraid_ctf::schema::{EnvValue, TraceClass};

/// Encoding of `prev_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateNumbers {
    /// A bit for each letter of `ps` (RSDTtXZPI) but `R`, preemption as the next bit: 0x100.
    #[default]
    Report,
    /// As above with a bit for `R`: all other bits are shifted left by one.
    Shifted,
    /// Index of the letter.
    Index,
    /// `task->state`.
    Raw(RawStates),
}

/// The bits of `task->state` that differ between kernels (include/linux/sched.h). 0 stands for a
/// state that a kernel does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawStates {
    /// TASK_DEAD.
    pub(crate) dead: i64,
    /// TASK_PARKED.
    pub(crate) parked: i64,
    /// TASK_NOLOAD.
    pub(crate) no_load: i64,
    /// TASK_RTLOCK_WAIT.
    pub(crate) lock_wait: i64,
    /// TASK_STATE_MAX.
    pub(crate) preempted: i64,
}

/// With the first release in which each applies.
const ERAS: [((u32, u32), RawStates); 7] = [
    ((0, 0), raw(0x40, 0, 0, 0, 0x200)),
    // f2530dc71cf0: TASK_PARKED.
    ((3, 9), raw(0x40, 0x200, 0, 0, 0x400)),
    // 80ed87c8a9ca: TASK_NOLOAD.
    ((4, 2), raw(0x40, 0x200, 0x400, 0, 0x800)),
    // 7dc603c9028e: TASK_NEW.
    ((4, 8), raw(0x40, 0x200, 0x400, 0, 0x1000)),
    // 8ef9925b02c2: TASK_PARKED, TASK_DEAD, TASK_WAKEKILL and TASK_WAKING get other numbers.
    ((4, 14), raw(0x80, 0x40, 0x400, 0, 0x1000)),
    // 5f220be21418: TASK_RTLOCK_WAIT.
    ((5, 15), raw(0x80, 0x40, 0x400, 0x1000, 0x2000)),
    // f5d39b020809: TASK_FREEZABLE and TASK_FROZEN.
    ((6, 1), raw(0x80, 0x40, 0x400, 0x1000, 0x10000)),
];

const fn raw(dead: i64, parked: i64, no_load: i64, lock_wait: i64, preempted: i64) -> RawStates {
    RawStates {
        dead,
        parked,
        no_load,
        lock_wait,
        preempted,
    }
}

impl RawStates {
    /// The bits from 4.14 to 5.14, the last release for which a tracer is known to record them.
    pub(crate) const LATEST: RawStates = ERAS[4].1;

    /// The bits for a release of the kernel.
    pub(crate) fn of(release: (u32, u32)) -> RawStates {
        let era = ERAS.iter().rev().find(|(since, _)| *since <= release);
        era.map_or(RawStates::LATEST, |era| era.1)
    }
}

/// Evidence in some states of a trace for their encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Number of times the idle thread, which is always runnable, leaves a CPU with state 1.
    idle_is_one: u32,
    /// The idle thread left a CPU with state 0.
    idle_is_zero: bool,
    /// A number that is not a single bit: the index of a letter.
    place: bool,
    /// 0x100 alone, which no switched thread has in `task->state`.
    report_top: bool,
    /// A state with a bit for how the thread may be woken, of 4.14 or later.
    raw: bool,
    /// A state with a bit for how the thread may be woken, before 4.14.
    old_raw: bool,
    /// TASK_STATE_MAX of 4.8 or later.
    raw_top: bool,
}

impl Evidence {
    /// Takes a state into account; `is_idle` for the CPU's idle thread.
    pub(crate) fn see(&mut self, is_idle: bool, state: i64) {
        match state {
            0 => self.idle_is_zero |= is_idle,
            1 => self.idle_is_one = self.idle_is_one.saturating_add(is_idle.into()),
            3 | 5..=7 => self.place = true,
            0x82 | 0x84 | 0x88 => self.old_raw = true,
            0x100 => self.report_top = true,
            0x102 | 0x104 | 0x108 => self.raw = true,
            0x1000 | 0x2000 | 0x1_0000 => self.raw_top = true,
            // TASK_NOLOAD, TASK_FREEZABLE.
            0x400..=0x1_0000 if state & 3 != 0 => self.raw = true,
            _ => {}
        }
    }

    fn is_shifted(&self) -> bool {
        self.idle_is_one > 0 && !self.idle_is_zero
    }

    /// True if the evidence leaves a single encoding.
    pub(crate) fn is_enough(&self) -> bool {
        let is_shifted = self.is_shifted() && self.idle_is_one > 16;
        is_shifted
            || self.place
            || self.old_raw
            || self.raw
            || (self.report_top && self.idle_is_zero)
    }
}

/// Tracer and kernel, from the trace's environment.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    release: Option<(u32, u32, u32)>,
    lttng: Option<(i128, i128, i128)>,
    /// True for tracers that show the values that the kernel records.
    is_kernels_own: bool,
}

impl Told {
    fn of(class: &TraceClass) -> Told {
        let name = class.env_str("tracer_name").unwrap_or("");
        let number = |name: &str| match class.env(name) {
            Some(EnvValue::Int(number)) => Some(*number),
            _ => None,
        };
        let lttng = || {
            let patch = number("tracer_patchlevel").unwrap_or(0);
            Some((number("tracer_major")?, number("tracer_minor")?, patch))
        };
        Told {
            release: release_of(class).and_then(release_numbers),
            lttng: name.starts_with("lttng").then(lttng).flatten(),
            is_kernels_own: matches!(name, "perf" | "ftrace"),
        }
    }

    /// The likely encoding.
    fn likely(&self, has_kernels_names: bool) -> StateNumbers {
        let raw =
            |release: (u32, u32, u32)| StateNumbers::Raw(RawStates::of((release.0, release.1)));
        let release = self.release.unwrap_or((u32::MAX, 0, 0));
        let is_old_lttng =
            |version: (i128, i128, i128)| version < (2, 9, 15) || matches!(version, (2, 10, ..12));
        let since_4_14 = match self.lttng {
            Some(version) if is_old_lttng(version) => StateNumbers::Raw(RawStates::LATEST),
            None if has_kernels_names => match release {
                (4, 14, ..64) => StateNumbers::Index,
                (4, 14, ..102) | (4, 15..=18, _) | (4, 19, ..9) => StateNumbers::Shifted,
                _ => StateNumbers::Report,
            },
            _ => StateNumbers::Report,
        };
        match release < (4, 14, 0) {
            true => raw(release),
            false => since_4_14,
        }
    }

    /// True if no kernel and tracer with these numbers is known to differ.
    fn is_certain(&self) -> bool {
        match (self.release, self.lttng) {
            (Some(release), _) if release < (4, 14, 0) => true,
            // Pre-releases have the number of the release.
            (_, Some(version)) => version >= (2, 12, 1),
            (Some(release), None) => release >= (5, 0, 0) && self.is_kernels_own,
            _ => false,
        }
    }
}

impl StateNumbers {
    /// The encoding of a trace; `sample` reads some of its states if needed. `has_kernels_names`:
    /// its switches have the kernel's field names (`prev_pid`).
    pub(crate) fn of(
        class: &TraceClass,
        has_kernels_names: bool,
        sample: impl FnOnce() -> Evidence,
    ) -> StateNumbers {
        let told = Told::of(class);
        let likely = told.likely(has_kernels_names);
        match told.is_certain() {
            true => likely,
            false => sample().decide(likely, told.release),
        }
    }
}

impl Evidence {
    fn decide(&self, likely: StateNumbers, release: Option<(u32, u32, u32)>) -> StateNumbers {
        let raw = match release {
            Some(release) => RawStates::of((release.0, release.1)),
            None if self.old_raw && !self.raw => RawStates::of((4, 8)),
            None => RawStates::LATEST,
        };
        if self.raw || self.old_raw {
            return StateNumbers::Raw(raw);
        }
        if self.place {
            return StateNumbers::Index;
        }
        if self.is_shifted() {
            return StateNumbers::Shifted;
        }
        if self.report_top {
            return match likely {
                StateNumbers::Shifted if !self.idle_is_zero => StateNumbers::Shifted,
                _ => StateNumbers::Report,
            };
        }
        match likely {
            StateNumbers::Index => StateNumbers::Index,
            _ if self.raw_top => StateNumbers::Raw(raw),
            StateNumbers::Shifted if self.idle_is_zero => StateNumbers::Report,
            likely => likely,
        }
    }
}

/// The release of the kernel, under the key of LTTng or of perf.
pub(crate) fn release_of(class: &TraceClass) -> Option<&str> {
    class.env_str("kernel_release").or(class.env_str("release"))
}

/// The first three numbers of a kernel release; the third is 0 if it is missing.
pub(crate) fn release_numbers(release: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?, number().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use tracebraid_ctf::schema::ByteOrder;
    use tracebraid_ctf::write::lttng::trace_class;

    use super::*;

    fn empty() -> TraceClass {
        let mut class = trace_class([0; 16], ByteOrder::Little);
        class.environment.clear();
        class
    }

    const LATEST: StateNumbers = StateNumbers::Raw(RawStates::LATEST);

    /// A trace's environment: tracer, its version, and the kernel's release.
    fn class(tracer: &str, version: Option<[i128; 3]>, release: Option<&str>) -> TraceClass {
        let mut class = empty();
        let mut set =
            |name: &str, value: EnvValue| class.environment.push((name.to_owned(), value));
        set("tracer_name", EnvValue::Str(tracer.to_owned()));
        for (name, number) in ["tracer_major", "tracer_minor", "tracer_patchlevel"]
            .into_iter()
            .zip(version.into_iter().flatten())
        {
            set(name, EnvValue::Int(number));
        }
        if let Some(release) = release {
            set("kernel_release", EnvValue::Str(release.to_owned()));
        }
        class
    }

    /// Encoding of a trace, given the states of its idle thread and of others.
    fn numbers(class: &TraceClass, idle: &[i64], others: &[i64]) -> StateNumbers {
        let mut evidence = Evidence::default();
        idle.iter().for_each(|&state| evidence.see(true, state));
        others.iter().for_each(|&state| evidence.see(false, state));
        StateNumbers::of(
            class,
            class.env_str("tracer_name") != Some("lttng-modules"),
            || evidence,
        )
    }

    fn lttng(version: [i128; 3], release: &str) -> TraceClass {
        class("lttng-modules", Some(version), Some(release))
    }

    fn of(release: (u32, u32)) -> StateNumbers {
        StateNumbers::Raw(RawStates::of(release))
    }

    #[test]
    fn lttng_records_states_as_they_are_up_to_2_10_11() {
        for (version, release, expected) in [
            ([2, 1, 0], "3.6.11-1-ARCH", of((3, 6))),
            ([2, 8, 0], "4.4.3-1-ARCH", of((4, 4))),
            ([2, 13, 0], "4.13.0", of((4, 13))),
            ([2, 9, 14], "4.15.0-65-generic", LATEST),
            ([2, 9, 15], "4.15.0-65-generic", StateNumbers::Report),
            ([2, 10, 11], "4.15.0-65-generic", LATEST),
            ([2, 10, 12], "4.14.1", StateNumbers::Report),
            ([2, 11, 0], "5.0.0", StateNumbers::Report),
            ([2, 13, 9], "6.1.0-56-amd64", StateNumbers::Report),
        ] {
            let class = lttng(version, release);
            assert_eq!(
                numbers(&class, &[0], &[1, 2]),
                expected,
                "{version:?} on {release}"
            );
        }
    }

    #[test]
    fn the_kernel_records_states_differently_from_4_14_to_4_19() {
        for (release, expected) in [
            ("3.10.0-327.el7", of((3, 10))),
            ("4.13.9", of((4, 13))),
            ("4.14.3", StateNumbers::Index),
            ("4.14.64", StateNumbers::Shifted),
            ("4.14.102", StateNumbers::Report),
            ("4.18.0-305.el8.x86_64", StateNumbers::Shifted),
            ("4.19.8", StateNumbers::Shifted),
            ("4.19.9", StateNumbers::Report),
            ("4.20.0", StateNumbers::Report),
            ("6.12.1", StateNumbers::Report),
            ("strange", StateNumbers::Report),
        ] {
            for tracer in ["perf", "ftrace"] {
                let class = class(tracer, None, Some(release));
                assert_eq!(
                    numbers(&class, &[], &[1, 2]),
                    expected,
                    "{tracer} on {release}"
                );
            }
        }
        assert_eq!(numbers(&empty(), &[0], &[1]), StateNumbers::Report);
    }

    #[test]
    fn states_tell_where_numbers_of_versions_mislead() {
        // A pre-release of LTTng 2.11; idle and killable.
        let early = lttng([2, 11, 0], "4.15.0-43-generic");
        for states in [&[1, 0x1000][..], &[1, 0x402], &[0x102], &[0x80, 0x1000]] {
            assert_eq!(numbers(&early, &[0], states), LATEST, "{states:x?}");
        }
        assert_eq!(
            numbers(&early, &[0], &[1, 0x100, 0x80]),
            StateNumbers::Report
        );
        // A vendor's LTTng 2.10 with the later commit.
        let patched = lttng([2, 10, 5], "4.15.0");
        assert_eq!(
            numbers(&patched, &[0], &[1, 0x100, 0x80]),
            StateNumbers::Report
        );
        // A vendor's kernel with the last commit.
        let fixed = class("perf", None, Some("4.15.0-213-generic"));
        assert_eq!(
            numbers(&fixed, &[0, 0], &[1, 2, 0x100]),
            StateNumbers::Report
        );
        assert_eq!(numbers(&fixed, &[0, 0], &[1, 2]), StateNumbers::Report);
        assert_eq!(
            numbers(&fixed, &[1, 1], &[2, 4, 0x100]),
            StateNumbers::Shifted
        );
        // Only the states are known.
        let nothing = empty();
        assert_eq!(
            numbers(&nothing, &[1, 1], &[2, 4, 0x100]),
            StateNumbers::Shifted
        );
        assert_eq!(
            numbers(&nothing, &[0], &[1, 5, 0x1000]),
            StateNumbers::Index
        );
        assert_eq!(numbers(&nothing, &[0], &[1, 0x82]), of((4, 8)));
        assert_eq!(numbers(&nothing, &[0], &[1, 0x1000]), LATEST);
    }
}
