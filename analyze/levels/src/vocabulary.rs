//! The vocabulary of user-level scheduling: the event classes that every source records
//! (`docs/reference/probe.md`), and their fields.

use tracebraid_ctf::bits::Cursor;
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::Scope;
use tracebraid_kernel_model::UserWake;

/// Id of a user-level thread that stands for "unknown".
pub(crate) const UNKNOWN_ULT: u64 = u64::MAX;

/// Prefix of the classes.
const PROVIDER: &str = "tracebraid:";

/// A step of user-level scheduling that the running LWP records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Create,
    Switch,
    Block,
    Wake,
    Exit,
    Name,
    State,
    LwpBegin,
    LwpEnd,
}

const STEPS: [(&str, Step); 9] = [
    ("ult_create", Step::Create),
    ("ult_switch", Step::Switch),
    ("ult_block", Step::Block),
    ("ult_wake", Step::Wake),
    ("ult_exit", Step::Exit),
    ("ult_name", Step::Name),
    ("ult_state", Step::State),
    ("lwp_begin", Step::LwpBegin),
    ("lwp_end", Step::LwpEnd),
];

/// State of a thread in `ult_state`.
pub(crate) mod snapshot {
    pub(crate) const RUNNING: u64 = 1;
    pub(crate) const BLOCKED: u64 = 2;
    pub(crate) const IN_CALL: u64 = 3;
}

/// An event class of the vocabulary.
#[derive(Clone, Debug)]
pub(crate) struct StepClass {
    pub(crate) step: Step,
    /// The user-level thread, or the previous one of a switch.
    ult: Option<FieldRef>,
    next: Option<FieldRef>,
    lwp: Option<FieldRef>,
    state: Option<FieldRef>,
    name: Option<FieldRef>,
    reason: Option<FieldRef>,
}

/// The values of an event record of the vocabulary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepValues<'a> {
    pub(crate) step: Step,
    pub(crate) ult: u64,
    pub(crate) next: u64,
    pub(crate) lwp: i32,
    pub(crate) state: u64,
    /// Name of the thread; of the runtime for `lwp_begin`.
    pub(crate) name: &'a [u8],
    pub(crate) reason: &'a [u8],
}

impl StepClass {
    /// The class with this index, if it belongs to the vocabulary and has its fields.
    pub(crate) fn new(layout: &StreamLayout, class: usize) -> Option<StepClass> {
        let name = &*layout.events.get(class)?.name;
        let name = name.strip_prefix(PROVIDER)?;
        let (_, step) = STEPS.iter().find(|(own, _)| *own == name)?;
        let field = |name: &str| {
            let find = |name: &str| layout.field(class, Scope::Payload, &[name]);
            find(name).or_else(|| find(&format!("_{name}")))
        };
        let found = StepClass {
            step: *step,
            ult: field(if *step == Step::Switch {
                "prev_ult"
            } else {
                "ult"
            }),
            next: field("next_ult"),
            lwp: field("lwp"),
            state: field("state"),
            name: field(if *step == Step::LwpBegin {
                "runtime"
            } else {
                "name"
            }),
            reason: field("reason"),
        };
        let needs_ult = !matches!(step, Step::LwpBegin | Step::LwpEnd);
        let lacks =
            needs_ult && found.ult.is_none() || *step == Step::Switch && found.next.is_none();
        (!lacks).then_some(found)
    }

    /// The values of a record; `body` is after its header.
    pub(crate) fn values<'a>(&self, body: Cursor<'a>, slots: &mut [u64]) -> StepValues<'a> {
        let mut int = |field: &Option<FieldRef>| {
            let field = field.as_ref();
            field.and_then(|field| field.integer(body, slots).ok())
        };
        let (ult, next) = (int(&self.ult), int(&self.next));
        let (lwp, state) = (int(&self.lwp), int(&self.state));
        let mut text = |field: &Option<FieldRef>| {
            let field = field.as_ref();
            field.and_then(|field| field.bytes(body, slots).ok())
        };
        StepValues {
            step: self.step,
            ult: ult.unwrap_or(UNKNOWN_ULT),
            next: next.unwrap_or(UNKNOWN_ULT),
            lwp: lwp.map_or(-1, |lwp| lwp as i32),
            state: state.unwrap_or(0),
            name: text(&self.name).unwrap_or_default(),
            reason: text(&self.reason).unwrap_or_default(),
        }
    }
}

/// A word of a runtime as part of an event class's name: lower case, `_` for all but letters and
/// digits.
pub(crate) fn reason_word(reason: &[u8]) -> String {
    let letter = |&byte: &u8| match byte.to_ascii_lowercase() {
        letter @ (b'a'..=b'z' | b'0'..=b'9') => char::from(letter),
        _ => '_',
    };
    let word: String = reason.iter().take(MOST_WORD).map(letter).collect();
    if word.is_empty() {
        "unknown".into()
    } else {
        word
    }
}

/// Longest reason in the name of an event class.
const MOST_WORD: usize = 48;

/// Cause of the end of a wait for this reason.
pub(crate) fn user_wake(word: &str) -> UserWake {
    match word {
        "sleep" | "timer" | "timeout" | "deadline" => UserWake::Timer,
        "network" | "net" | "netpoll" | "io_wait" | "poll" | "io" | "epoll" => UserWake::Network,
        "disk" | "disk_io" | "file" | "device" => UserWake::Device,
        _ => UserWake::Thread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_become_words() {
        assert_eq!(reason_word(b"Mutex"), "mutex");
        assert_eq!(reason_word(b"chan receive (nil)"), "chan_receive__nil_");
        assert_eq!(reason_word(b""), "unknown");
        assert_eq!(user_wake("sleep").level(), 2);
        assert_eq!(user_wake("network").level(), 3);
        assert_eq!(user_wake("unknown").level(), 1);
    }
}
