//! Facts about threads in event classes, for readers that see all event records of a trace.

use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::Scope;

/// Name of the switch event in kernel tracers other than perf.
const SWITCH: &str = "sched_switch";

/// Fact about threads in the records of an event class.
#[derive(Debug)]
pub enum ThreadNews {
    /// None.
    Nothing,
    /// A CPU switches from one thread to another.
    Switch {
        /// Ids of the previous and the next thread.
        tids: [FieldRef; 2],
        /// Names of both threads.
        names: [Option<FieldRef>; 2],
    },
    /// A thread exists.
    Thread {
        /// Id of the thread.
        tid: FieldRef,
        /// Process of the thread.
        pid: Option<FieldRef>,
        /// Name of the thread.
        name: Option<FieldRef>,
    },
}

/// The name of an event class without the subsystem that perf puts in front of it.
fn without_subsystem(name: &str) -> &str {
    name.strip_prefix("sched:").unwrap_or(name)
}

/// True for names of switch events.
pub fn is_switch(name: &str) -> bool {
    without_subsystem(name) == SWITCH
}

impl ThreadNews {
    /// The fact in the records of an event class.
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
