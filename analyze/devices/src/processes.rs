//! Processes of traces.
//!
//! A trace of tracebraid is of one process, which it names. LTTng, and so THAPI, may write several
//! into one trace, with the process id in each event record.

use tracebraid_ctf::schema::EnvValue;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_follow::Thread;

/// Numbers of processes: the index of the trace in the lower bits and, in traces of several
/// processes, the process id above.
#[derive(Debug)]
pub(crate) struct Processes {
    /// By trace; those of several processes have no id.
    of_trace: Vec<Thread>,
    /// Bits of the index of the trace.
    bits: u32,
}

/// Process ids of Linux are below 2^22.
const PID_BITS: u32 = 22;

impl Processes {
    pub(crate) fn new(set: &TraceSet) -> Processes {
        let traces = (0..).zip(&set.traces);
        Processes {
            of_trace: traces.map(|(at, trace)| of_trace(at, trace)).collect(),
            bits: usize::BITS - set.traces.len().leading_zeros(),
        }
    }

    /// True if the event records of a trace may be of several processes. Those of more traces than
    /// numbers have room for count as one process each.
    pub(crate) fn are_several(&self, trace: u32) -> bool {
        let process = self.of_trace.get(trace as usize);
        self.bits + PID_BITS <= u32::BITS && process.is_none_or(|of| of.pid.is_none())
    }

    /// Number of the process with an id in a trace of several.
    pub(crate) fn number(&self, trace: u32, pid: i128) -> u32 {
        match u32::try_from(pid) {
            Ok(pid) if pid < 1 << PID_BITS => pid << self.bits | trace,
            _ => trace,
        }
    }

    /// Index of the trace of a process.
    pub(crate) fn trace(&self, process: u32) -> u32 {
        process & !(u32::MAX << self.bits)
    }

    /// A process as that of a thread, which is not named.
    pub(crate) fn get(&self, process: u32) -> Thread {
        let of_trace = self.of_trace.get(self.trace(process) as usize);
        let thread = of_trace.cloned().unwrap_or_default();
        match process >> self.bits {
            0 => thread,
            pid => Thread {
                pid: Some(pid as i32),
                ..thread
            },
        }
    }
}

fn of_trace(trace: u32, content: &Trace) -> Thread {
    let class = &content.layout.class;
    let pid = match class.env("vpid") {
        Some(EnvValue::Int(pid)) => i32::try_from(*pid).ok(),
        _ => None,
    };
    Thread {
        trace,
        tid: None,
        pid,
        name: class.env_str("procname").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_processes_have_their_trace_and_id() {
        let thread = |trace, pid| Thread {
            trace,
            pid,
            ..Thread::default()
        };
        let processes = Processes {
            of_trace: vec![thread(0, Some(7)), thread(1, None)],
            bits: 2,
        };
        assert!(!processes.are_several(0));
        assert!(processes.are_several(1));
        for (number, trace, pid) in [
            (0, 0, Some(7)),
            (processes.number(1, 42), 1, Some(42)),
            (processes.number(1, (1 << 22) - 1), 1, Some((1 << 22) - 1)),
            (processes.number(1, -1), 1, None),
            (processes.number(1, 1 << 22), 1, None),
        ] {
            assert_eq!(processes.trace(number), trace);
            assert_eq!(processes.get(number), thread(trace, pid));
        }
    }
}
