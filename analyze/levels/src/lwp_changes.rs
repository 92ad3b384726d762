//! Changes of the user-level thread on an LWP that no step of its runtime records: the LWP ends, or
//! its records are lost.

use std::ops::RangeInclusive;

use crate::replay::{CpuMoment, Current, NO_CPU, NONE, Placed, UNKNOWN, act_of};
use crate::states::States;
use crate::survey::UltKey;
use crate::vocabulary::Step;
use crate::window::{Note, Window};

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LwpChange {
    /// The kernel records the end of the LWP.
    Exit(u32),
    /// Records of an LWP may be lost from here on, until this time.
    Lose(u32, i64),
    /// The user-level thread on an LWP from here on; earlier records of the LWP were lost.
    Learn(u32, Current),
}

/// The ends of LWPs and their contents around losses, in the order of time.
pub(crate) fn lwp_changes(
    states: &States,
    window: &Window,
    (number, span): (u32, (i64, i64)),
    placed: &[Placed],
) -> Vec<(CpuMoment, LwpChange)> {
    let mut all = Vec::new();
    for (&cpu, of_cpu) in &window.cpus {
        for (after, record) in (1u32..).zip(&of_cpu.records) {
            if let Note::Exit(tid) = record.note
                && let Some(&lwp) = states.lwp_of_tid.get(&tid)
            {
                let time = record.time;
                all.push((CpuMoment { time, cpu, after }, LwpChange::Exit(lwp)));
            }
        }
    }
    let losses = &states.lwp_losses;
    for (index, &(tid, from, to)) in losses.iter().enumerate() {
        let Some(&lwp) = states.lwp_of_tid.get(&tid) else {
            continue;
        };
        let at = |time| CpuMoment {
            time,
            cpu: NO_CPU,
            after: 0,
        };
        if span.0 <= from && from < span.1 {
            all.push((at(from), LwpChange::Lose(lwp, to)));
        }
        if span.0 <= to && to < span.1 {
            let later = losses.get(index + 1).filter(|later| later.0 == tid);
            let until = later.map_or(i64::MAX, |later| later.1);
            let found = first_content(states, window, placed, (tid, to..=until));
            // The next switch may be in a later window.
            let lwp_of = states.lwps.get(lwp as usize).filter(|_| until >= span.1);
            let content = found.or_else(|| {
                let key = lwp_of?.runs.at(number + 1)?;
                Some(current(states, key))
            });
            all.push((at(to), LwpChange::Learn(lwp, content.unwrap_or(UNKNOWN))));
        }
    }
    all.sort_by_key(|(at, event)| (at.time, event.turn()));
    all
}

impl LwpChange {
    /// Learned contents hold before the records of their time, ends and losses after them.
    pub(crate) fn turn(self) -> u8 {
        match self {
            LwpChange::Learn(..) => 0,
            LwpChange::Exit(_) => 1,
            LwpChange::Lose(..) => 2,
        }
    }
}

/// Content of an LWP before its first switch within these times; `None` without a switch.
fn first_content(
    states: &States,
    window: &Window,
    placed: &[Placed],
    (tid, times): (i32, RangeInclusive<i64>),
) -> Option<Current> {
    let first = placed.partition_point(|own| own.time < *times.start());
    let steps = placed.get(first..).unwrap_or_default().iter();
    let mut own = steps
        .take_while(|own| times.contains(&own.time))
        .filter_map(|own| Some((window.users.get(own.record as usize)?, act_of(window, own)?)))
        .filter(|(record, _)| record.tid == Some(tid));
    let key = own.find_map(|(record, act)| match act.step {
        Step::Switch => Some((record.pid, act.ult)),
        Step::LwpBegin => Some((record.pid, 0)),
        _ => None,
    })?;
    Some(current(states, key))
}

fn current(states: &States, key: UltKey) -> Current {
    match key {
        (_, 0) => NONE,
        key => states.ult(key).unwrap_or(UNKNOWN),
    }
}
