//! Stacks in execution traces of Go, imported or in a super-trace.
//!
//! A stack is a number, which `go:stack_frames` defines once for the whole trace, with names instead
//! of addresses. `go:cpu_sample` is a sample of CPU time, `go:wait_stack` a wait that ends. All other
//! events with stacks (`go:stack`) show where the goroutine was at that moment: they have no
//! duration, but the functions that they share with the next stack were active in between.

use std::collections::HashMap;

use crate::Process;
use crate::events::{EventOrigin, EventRole, Sample, StackSource};
use crate::fields::Fields;
use crate::naming::{NameId, Naming};

/// CPU time between two samples, in nanoseconds. The trace does not contain it; Go's profiler always
/// takes 100 samples per second (`runtime/pprof`, `StartCPUProfile`).
const PERIOD_NS: u64 = 10_000_000;

/// A stack by its names.
#[derive(Debug, Default)]
struct Described {
    process: Process,
    /// Functions, the outermost first, separated by semicolons.
    frames: String,
    /// The innermost first, once they are known.
    functions: Option<Vec<NameId>>,
}

/// The stacks of the programs in Go in a trace.
#[derive(Debug, Default)]
pub(crate) struct GoStacks {
    stacks: HashMap<u64, Described>,
}

impl GoStacks {
    fn sample(
        &mut self,
        fields: &Fields,
        (wait_ns, period_ns): (Option<u64>, u64),
        naming: &mut Naming<'_>,
    ) -> Option<Sample> {
        let stack = self.stacks.get_mut(&fields.integer("stack")?)?;
        let frames = &stack.frames;
        let functions = stack.functions.get_or_insert_with(|| {
            let names = frames.split(';').rev();
            names.map(|name| naming.id(name.to_owned())).collect()
        });
        Some(Sample {
            // In a super-trace, that of the goroutine.
            tid: fields.integer("tid").map(|tid| i64::from(tid as i32)),
            process: stack.process.clone(),
            functions: functions.clone(),
            kernel: 0,
            wait_ns,
            period_ns,
            shape: None,
        })
    }
}

impl StackSource for GoStacks {
    fn learn(&mut self, kind: EventRole, fields: &Fields) -> Option<()> {
        if kind == EventRole::GoFrames {
            let text = |name: &str| String::from_utf8_lossy(fields.text(name)).into_owned();
            let pid = fields.integer("pid").map(|pid| i64::from(pid as i32));
            let described = Described {
                process: Process {
                    pid: pid.filter(|&pid| pid > 0),
                    name: text("process"),
                    ..Process::default()
                },
                frames: text("frames"),
                functions: None,
            };
            self.stacks.insert(fields.integer("stack")?, described);
        }
        Some(())
    }

    fn event(
        &mut self,
        _: &EventOrigin,
        kind: EventRole,
        fields: &Fields,
        naming: &mut Naming<'_>,
    ) -> Option<Sample> {
        let times = match kind {
            EventRole::GoSample => (None, PERIOD_NS),
            EventRole::GoWait => (fields.integer("wait_ns"), 0),
            EventRole::GoMoment => (Some(0), 0),
            _ => return None,
        };
        self.sample(fields, times, naming)
    }
}
