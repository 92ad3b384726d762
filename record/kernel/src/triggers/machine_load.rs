//! The load of the machine, from `/proc`.

use std::fs;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct MachineLoad {
    looked: Instant,
    /// Used time and total time of all CPUs at the last sample, in ticks.
    ticks: Option<(u64, u64)>,
}

/// Period of sampling.
const LOOK: Duration = Duration::from_secs(1);

impl MachineLoad {
    pub(super) fn new() -> MachineLoad {
        MachineLoad {
            looked: Instant::now(),
            ticks: ticks(),
        }
    }

    /// Load average, number of runnable threads, and percentage of used CPU time; at most once a
    /// second.
    pub(super) fn look(&mut self) -> Option<[f64; 3]> {
        if self.looked.elapsed() < LOOK {
            return None;
        }
        self.looked = Instant::now();
        let (before, now) = (self.ticks?, ticks()?);
        self.ticks = Some(now);
        let all = now.1.saturating_sub(before.1).max(1);
        let used = now.0.saturating_sub(before.0) as f64 * 100.0 / all as f64;
        let load = fs::read_to_string("/proc/loadavg").ok()?;
        let mut words = load.split_whitespace();
        let average = words.next()?.parse().ok()?;
        let runnable = words.nth(2)?.split('/').next()?.parse().ok()?;
        Some([average, runnable, used])
    }
}

/// Used and total time of all CPUs from `/proc/stat`: user, nice, system, idle, iowait, irq,
/// softirq, steal.
fn ticks() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let words = stat.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = words.map(|word| word.parse().unwrap_or(0)).collect();
    let all: u64 = ticks.iter().sum();
    let unused = ticks.get(3)? + ticks.get(4)?;
    Some((all - unused, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_load() {
        let mut machine = MachineLoad::new();
        machine.looked -= LOOK;
        let [load, runnable, cpu] = machine.look().unwrap();
        assert!(load >= 0.0 && runnable >= 1.0 && (0.0..=100.0).contains(&cpu));
        assert_eq!(machine.look(), None);
    }
}
