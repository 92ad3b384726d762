//! Time: CLOCK_MONOTONIC in nanoseconds, derived from the cycle counter where possible.
//!
//! The kernel steers CLOCK_MONOTONIC by up to 500 ppm, so a constant frequency in the metadata
//! would be wrong by milliseconds after some seconds. Instead the probe converts cycles by a line
//! that all threads of the process use for an interval of time: `ns = base_ns + (cycles -
//! base_cycles) * factor / 2^32`. The first interval lasts a millisecond, and each further interval
//! twice as long as its predecessor, up to half a second. At its end ([`Clock::renew`]) the next
//! line starts at the end point of the previous line and aims at the value that CLOCK_MONOTONIC is
//! expected to have at the end of the next interval, so time neither jumps nor runs backwards and
//! errors do not add up. A process that was silent for longer than an interval restarts at the
//! current time.
//!
//! Error: the change of the counter's rate within an interval, and the time between reading both
//! clocks. Measured: below 100 ns, and 300 ns in the first millisecond. Event records
//! `tracebraid:clock_correlation` document the error.

#![allow(unsafe_code)]

use crate::sys;

/// Cycles and nanoseconds at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pair {
    pub(crate) cycles: u64,
    pub(crate) ns: u64,
}

/// The line for an interval. A span of 0 marks systems without a usable counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    pub(crate) base: Pair,
    /// Nanoseconds per cycle, times 2^32.
    pub(crate) factor: u64,
    /// Cycles for which the line holds; the product with the factor is below 2^64.
    pub(crate) span: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) line: Line,
    anchor: Pair,
    stretch_ns: u64,
}

/// Duration of the calibration before the first event, in nanoseconds.
const FIRST_NS: u64 = 100_000;
const LEAST_STRETCH_NS: u64 = 1_000_000;
const MOST_STRETCH_NS: u64 = 500_000_000;

#[inline(always)]
pub(crate) fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction; a process for which it is forbidden
    // (prctl PR_SET_TSC) has no session with that clock.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

#[inline]
pub(crate) fn monotonic() -> u64 {
    sys::clock(libc::CLOCK_MONOTONIC)
}

/// True if the kernel trusts the cycle counter: synchronized over all CPUs, with a constant rate.
pub(crate) fn is_counter_usable() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        let has_leaf = __cpuid(0x8000_0000).eax >= 0x8000_0007;
        has_leaf && __cpuid(0x8000_0007).edx & (1 << 8) != 0 && is_clock_source()
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(target_arch = "x86_64")]
fn is_clock_source() -> bool {
    let mut path = sys::Path::new();
    path.push(b"/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let mut name = [0; 32];
    let Ok(count) = sys::open(&path, libc::O_RDONLY).and_then(|file| sys::read(&file, &mut name))
    else {
        return false;
    };
    let name = name.get(..count).unwrap_or_default().trim_ascii();
    name == b"tsc" || name == b"kvm-clock" || name.starts_with(b"hyperv")
}

/// Reads both clocks at one moment: the fastest of several attempts.
pub(crate) fn pair() -> Pair {
    let mut best = Pair::default();
    let mut shortest = u64::MAX;
    for _ in 0..5 {
        let before = cycles();
        let ns = monotonic();
        let took = cycles().wrapping_sub(before);
        if took < shortest {
            shortest = took;
            best = Pair {
                cycles: before.wrapping_add(took / 2),
                ns,
            };
        }
    }
    best
}

impl Line {
    /// Nanoseconds at a counter value, which must not precede the base.
    #[inline(always)]
    pub(crate) fn at(&self, cycles: u64) -> u64 {
        let passed = u128::from(cycles.wrapping_sub(self.base.cycles)) * u128::from(self.factor);
        self.base.ns.wrapping_add((passed >> 32) as u64)
    }

    fn new(base: Pair, factor: u64, span: u64) -> Line {
        Line {
            base,
            factor,
            span: span.min(u64::MAX / factor.max(1)),
        }
    }
}

fn factor(from: Pair, to: Pair) -> u64 {
    let cycles = u128::from(to.cycles.wrapping_sub(from.cycles)).max(1);
    let factor = (u128::from(to.ns.wrapping_sub(from.ns)) << 32) / cycles;
    u64::try_from(factor).unwrap_or(u64::MAX).max(1)
}

fn span(ns: u64, factor: u64) -> u64 {
    u64::try_from((u128::from(ns) << 32) / u128::from(factor)).unwrap_or(u64::MAX)
}

impl Clock {
    /// Calibrates the clock; with a usable counter this takes [`FIRST_NS`].
    pub(crate) fn begin(use_counter: bool) -> Clock {
        if !use_counter || !is_counter_usable() {
            return Clock::default();
        }
        let first = pair();
        let mut now = pair();
        while now.ns.wrapping_sub(first.ns) < FIRST_NS {
            now = pair();
        }
        let factor = factor(first, now);
        Clock {
            line: Line::new(now, factor, span(LEAST_STRETCH_NS, factor)),
            anchor: first,
            stretch_ns: LEAST_STRETCH_NS,
        }
    }

    /// Starts the next interval if the current one is over.
    pub(crate) fn renew(&mut self) {
        if self.line.span != 0 && cycles().wrapping_sub(self.line.base.cycles) >= self.line.span {
            self.renew_at(pair());
        }
    }

    fn renew_at(&mut self, now: Pair) {
        let over = Pair {
            cycles: self.line.base.cycles.wrapping_add(self.line.span),
            ns: self
                .line
                .at(self.line.base.cycles.wrapping_add(self.line.span)),
        };
        let rate = factor(self.anchor, now);
        self.anchor = now;
        let late = now.ns.wrapping_sub(over.ns);
        let is_silent = late > self.stretch_ns && late < i64::MAX as u64;
        self.stretch_ns = (self.stretch_ns * 2).min(MOST_STRETCH_NS);
        let base = if is_silent { now } else { over };
        let span = span(self.stretch_ns, rate);
        let end = Pair {
            cycles: base.cycles.wrapping_add(span),
            ns: now.ns.wrapping_add_signed(scaled(
                base.cycles.wrapping_add(span).wrapping_sub(now.cycles) as i64,
                rate,
            )),
        };
        // If the clock goes back, contrary to its definition, the line is nearly level.
        let ns = end.ns.max(base.ns.wrapping_add(1));
        self.line = Line::new(base, factor(base, Pair { ns, ..end }), span);
    }
}

fn scaled(cycles: i64, rate: u64) -> i64 {
    ((i128::from(cycles) * i128::from(rate)) >> 32) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 2 GHz whose clock is steered by `ppm`, read with an error of up to 30 ns.
    fn clocks(cycles: u64, ppm: i64, noise: u64) -> Pair {
        let ns = cycles / 2;
        let ns = ns.wrapping_add_signed(ns as i64 * ppm / 1_000_000) + noise % 30;
        Pair { cycles, ns }
    }

    #[test]
    fn follows_a_steered_clock_without_jumps() {
        for ppm in [-400, -10, 0, 25, 400] {
            let first = clocks(1_000_000, ppm, 7);
            let second = clocks(1_200_000, ppm, 22);
            let rate = factor(first, second);
            let mut clock = Clock {
                line: Line {
                    base: second,
                    factor: rate,
                    span: span(LEAST_STRETCH_NS, rate),
                },
                anchor: first,
                stretch_ns: LEAST_STRETCH_NS,
            };
            for round in 0..40 {
                let over = clock.line.base.cycles + clock.line.span;
                let before = clock.line.at(over);
                clock.renew_at(clocks(over + 700 * round, ppm, round * 13));
                assert!(
                    clock.line.at(over).abs_diff(before) <= 1,
                    "jumps at {round}"
                );
                let error = clock.line.at(over).abs_diff(clocks(over, ppm, 0).ns);
                assert!(
                    error < if round < 3 { 500 } else { 100 },
                    "{error} ns off in round {round}, {ppm} ppm"
                );
            }
        }
    }

    #[test]
    fn begins_anew_after_silence() {
        let rate = 1 << 31;
        let mut clock = Clock {
            line: Line {
                base: clocks(0, 0, 0),
                factor: rate,
                span: span(LEAST_STRETCH_NS, rate),
            },
            anchor: clocks(0, 0, 0),
            stretch_ns: LEAST_STRETCH_NS,
        };
        let now = clocks(3_000_000_000_000, 300, 0);
        clock.renew_at(now);
        assert_eq!(clock.line.at(now.cycles), now.ns);
    }

    #[test]
    fn the_real_counter_agrees_with_the_clock() {
        let mut clock = Clock::begin(true);
        if clock.line.span == 0 {
            eprintln!("the cycle counter of this machine is not usable: nothing to compare");
            return;
        }
        let begin = monotonic();
        let mut errors = Vec::new();
        // Another process may occupy the CPU for that whole time.
        while errors.len() < 1000 || monotonic() - begin < 300_000_000 {
            clock.renew();
            let now = pair();
            errors.push(clock.line.at(now.cycles).abs_diff(now.ns));
        }
        errors.sort_unstable();
        let median = errors[errors.len() / 2];
        println!(
            "median {median} ns, 99 %: {} ns",
            errors[errors.len() / 100 * 99]
        );
        assert!(median < 1000, "{median} ns off");
    }
}
