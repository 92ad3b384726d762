//! Properties of the machine and its clock in the trace's metadata.

use nix::sys::utsname::uname;
use nix::time::{ClockId, clock_gettime};
use tracebraid_ctf::schema::{ClockOrigin, EnvValue, TraceClass, Uuid};

use crate::bpf::failed;
use crate::end_mark;
use crate::error::RecordError;

/// The time of CLOCK_MONOTONIC in nanoseconds, the clock of all events.
pub(crate) fn now() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).map_or((0, 0), |time| (time.tv_sec(), time.tv_nsec()));
    time.0 as u64 * 1_000_000_000 + time.1 as u64
}

/// Nanoseconds from the Epoch to the zero of CLOCK_MONOTONIC: of several attempts the one with the
/// shortest time between the readings of both clocks. The error is at most half of that time.
pub fn clock_offset() -> u64 {
    let try_once = |_| {
        let before = now();
        let wall = nanoseconds(ClockId::CLOCK_REALTIME);
        let after = now();
        (
            after - before,
            wall.saturating_sub(before + (after - before) / 2),
        )
    };
    (0..10).map(try_once).min().map_or(0, |(_, offset)| offset)
}

/// Number of CPUs up to the last present CPU; the number of possible CPUs can be much larger.
pub(crate) fn cpus() -> Result<usize, RecordError> {
    let present = std::fs::read_to_string("/sys/devices/system/cpu/present");
    match present.ok().and_then(|list| cpus_of(&list)) {
        Some(cpus) => Ok(cpus),
        None => libbpf_rs::num_possible_cpus().map_err(failed),
    }
}

/// One more than the greatest number in a list such as `0-3,8`.
fn cpus_of(list: &str) -> Option<usize> {
    let last = list.trim().rsplit([',', '-']).next()?;
    last.parse::<usize>().ok()?.checked_add(1)
}

/// A UUID from `/proc/sys/kernel/random`.
fn random(name: &str) -> Option<Uuid> {
    let digits = kernel_text(name)?.replace('-', "");
    Some(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes())
}

fn kernel_text(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/sys/kernel/random/{name}")).ok()?;
    Some(text.trim().to_owned())
}

/// Adds the properties of machine, tracer and clock to the schema of a trace that begins now.
///
/// The tracer's name is lttng-modules, since the trace has its names and layouts: by that name,
/// other tools know how to read it.
pub(crate) fn describe(class: &mut TraceClass, options: &crate::Options, own_process: u32) {
    let text = |text: &str| EnvValue::Str(text.to_owned());
    let number = |number: i128| EnvValue::Int(number);
    let mut environment = vec![("domain", text("kernel"))];
    if let Ok(machine) = uname() {
        let of = |value: &std::ffi::OsStr| text(&value.to_string_lossy());
        environment.extend([
            ("hostname", of(machine.nodename())),
            ("sysname", of(machine.sysname())),
            ("kernel_release", of(machine.release())),
            ("kernel_version", of(machine.version())),
            ("machine", of(machine.machine())),
        ]);
    }
    environment.extend([
        ("tracer_name", text("lttng-modules")),
        ("tracer_major", number(2)),
        ("tracer_minor", number(13)),
        ("tracer_patchlevel", number(0)),
        ("trace_buffering_scheme", text("global")),
        ("trace_name", text(&options.name)),
        ("trace_creation_datetime", text(&options.creation)),
        ("tracebraid_version", text(env!("CARGO_PKG_VERSION"))),
        // In the initial PID namespace, as in event records: filters use it to leave out the cost
        // of recording.
        ("tracebraid_pid", number(i128::from(own_process))),
        (end_mark::EXPECTED, number(1)),
    ]);
    let conditions = options.triggering.any.iter();
    let conditions: Vec<&str> = conditions.map(|condition| &*condition.text).collect();
    if !conditions.is_empty() {
        // Readers look for events `tracebraid_trigger` only if this key exists.
        environment.push(("tracebraid_when", text(&conditions.join("; "))));
    }
    class.environment = environment
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    class.uuid = random("uuid");
    let offset = options.clock_offset.unwrap_or_else(clock_offset);
    for clock in &mut class.clocks {
        clock.origin = ClockOrigin::UnixEpoch;
        // All recordings since boot share the same clock.
        clock.uuid = random("boot_id");
        clock.uid = kernel_text("boot_id");
        clock.offset_seconds = (offset / 1_000_000_000) as i64;
        clock.offset_cycles = (offset % 1_000_000_000) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_up_to_the_last_one() {
        assert_eq!(cpus_of("0-1\n"), Some(2));
        assert_eq!(cpus_of("0,2-3,7\n"), Some(8));
        assert_eq!(cpus_of("0\n"), Some(1));
        assert_eq!(cpus_of(""), None);
    }
}
