//! What event classes tell of threads, for readers that see all event records of a trace.

use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::Scope;

/// The name of the event of a switch, as kernel tracers other than perf write it.
const SWITCH: &str = "sched_switch";

/// What an event class tells of threads.
#[derive(Debug)]
pub enum ThreadNews {
    /// Nothing.
    Nothing,
    /// A CPU goes from one thread to another.
    Switch {
        /// Who ran, and who runs.
        tids: [FieldRef; 2],
        /// Their names.
        names: [Option<FieldRef>; 2],
    },
    /// There is a thread.
    Thread {
        /// Its id.
        tid: FieldRef,
        /// Its process.
        pid: Option<FieldRef>,
        /// Its name.
        name: Option<FieldRef>,
    },
}

/// The name of an event class without its subsystem, which perf puts before it.
fn without_subsystem(name: &str) -> &str {
    name.strip_prefix("sched:").unwrap_or(name)
}

/// True for the name of the events at which CPUs go from one thread to another.
pub fn is_switch(name: &str) -> bool {
    without_subsystem(name) == SWITCH
}

impl ThreadNews {
    /// Of an event class of a stream.
    pub fn of(stream: &StreamLayout, event: usize) -> ThreadNews {
        let name = stream.events.get(event).map_or("", |event| &event.name);
        let field = |name: &str| stream.field(event, Scope::Payload, &[name]);
        // perf and ftrace call a thread's id `pid`.
        let news = match without_subsystem(name) {
            SWITCH => field("prev_tid")
                .or_else(|| field("prev_pid"))
                .zip(field("next_tid").or_else(|| field("next_pid")))
                .map(|(prev, next)| ThreadNews::Switch {
                    tids: [prev, next],
                    names: [field("prev_comm"), field("next_comm")],
                }),
            "sched_process_fork" => {
                let (lttng, other) = (field("child_tid"), field("child_pid"));
                let pid = lttng.is_some().then(|| other.clone()).flatten();
                lttng.or(other).map(|tid| ThreadNews::Thread {
                    tid,
                    pid,
                    name: field("child_comm"),
                })
            }
            "lttng_statedump_process_state" => field("tid").map(|tid| ThreadNews::Thread {
                tid,
                pid: field("pid"),
                name: field("name"),
            }),
            _ => None,
        };
        news.unwrap_or(ThreadNews::Nothing)
    }
}
