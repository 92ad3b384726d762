//! Beginning: when the program is loaded, and again in each forked child.
//!
//! Safety: constructors and handlers of fork run in the program's thread; nothing of ours is in use then, except in a
//! forked child what other threads left in the middle, which is set back.

#![allow(unsafe_code)]

use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::handler::{self, SETTING};
use crate::options::{self, Options, Waits};
use crate::perf::{self, Event};
use crate::record::State;
use crate::{chain, ground, local, modules, register, sys};

const NOT_ASKED_FOR: i32 = -1;

/// Perf events of this process, to be given back in a child: descriptor and id.
static EVENTS: [(AtomicI32, AtomicU64); 2] = [const { (AtomicI32::new(-1), AtomicU64::new(0)) }; 2];
/// The options, for children.
static PERIOD: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicI32 = AtomicI32::new(0);
/// The process that has the events.
static OWNER: AtomicI32 = AtomicI32::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// The environment variable with the session's directory.
const SESSION: &CStr = c"TRACEBRAID_SESSION";

/// That with the options, and bytes of it that are handed on where some were not understood.
const OPTIONS: &CStr = c"TRACEBRAID_STACKS";
const MOST_OPTIONS: usize = 512;

/// Whether there is a session. Says so if its directory is not there: who has forgotten to make it would wonder why nothing
/// is recorded. What this program starts says nothing more.
fn has_session() -> bool {
    let Some(session) = variable(SESSION).filter(|session| !session.is_empty()) else {
        return false;
    };
    if sys::exists(session) {
        return true;
    }
    sys::say(b"libtracebraid_stacks: nothing is recorded: there is no directory ");
    sys::say(session.to_bytes());
    sys::say(b"\n");
    // SAFETY: constructors run before the program has threads.
    unsafe { libc::unsetenv(SESSION.as_ptr()) };
    tracebraid_probe::forget_session();
    false
}

/// Says which options are not understood, and takes them out of the environment: what this program starts says nothing more.
fn tell_of_options() {
    let text = variable(OPTIONS).map_or(&[][..], CStr::to_bytes);
    let mut wrong = options::sorted(text, false).peekable();
    if wrong.peek().is_none() {
        return;
    }
    sys::say(b"libtracebraid_stacks: not understood, and passed over, in TRACEBRAID_STACKS:");
    for item in wrong {
        sys::say(b" ");
        sys::say(item);
    }
    sys::say(b"\n");
    let mut right = [0; MOST_OPTIONS];
    let mut room = right.get_mut(..MOST_OPTIONS - 1).unwrap_or_default().iter_mut();
    for item in options::sorted(text, true) {
        item.iter()
            .chain(b",")
            .zip(&mut room)
            .for_each(|(&byte, place)| *place = byte);
    }
    // SAFETY: constructors run before the program has threads; the text ends with a NUL.
    unsafe { libc::setenv(OPTIONS.as_ptr(), right.as_ptr().cast(), 1) };
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: constructors run before the program can change its environment.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

extern "C" fn begin() {
    if is_debugged() || !has_session() {
        return;
    }
    let options = Options::parse(variable(OPTIONS).map_or(&[], CStr::to_bytes));
    tell_of_options();
    // A program in Go takes SIGTRAP without asking the C library, and ends itself when it gets one.
    let is_go = modules::begin().is_none_or(|headers| headers.is_go());
    if is_go || !ground::begin() || !chain::begin(handler::on_trap) {
        return;
    }
    tracebraid_probe::functions::tell_first(modules::meet);
    // SAFETY: the function stays: this library is never unloaded.
    unsafe { pthread_atfork(None, None, Some(in_child)) };
    PERIOD.store(options.period_ns, Ordering::Relaxed);
    WAITS.store(options.waits as i32, Ordering::Relaxed);
    let state = start(&options);
    let is_asked = [state.cpu_error, state.wait_error] != [NOT_ASKED_FOR; 2];
    if is_asked && state.cpu_error != 0 && state.wait_error != 0 {
        SETTING.tell();
    }
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

/// Whether a debugger runs the program: it would stop at each of our signals.
fn is_debugged() -> bool {
    let mut status = [0; 4096];
    let count = sys::read_file(c"/proc/self/status", &mut status);
    let status = status.get(..count).unwrap_or_default();
    let mut lines = status.split(|&byte| byte == b'\n');
    let tracer = lines.find_map(|line| line.strip_prefix(b"TracerPid:"));
    tracer.is_some_and(|pid| pid.trim_ascii() != b"0")
}

/// Opens the events for this thread and those that it will start. The handler must be there.
fn start(options: &Options) -> State {
    handler::look_at_time();
    OWNER.store(sys::process_id(), Ordering::Relaxed);
    let mut state = State {
        period_ns: options.period_ns,
        threshold_ns: options.threshold_ns,
        depth: options.depth as u32,
        cpu_error: NOT_ASKED_FOR,
        wait_error: NOT_ASKED_FOR,
        kernel_time: false,
    };
    let is_told = register::register(options);
    let uses_perf = options.waits == Waits::Perf || options.waits == Waits::Auto && !is_told;
    SETTING.tell_later(state, uses_perf);
    let [clock, switches] = &EVENTS;
    if uses_perf {
        state.wait_error = keep(switches, perf::context_switches(handler::WAIT));
    } else if options.waits != Waits::Off {
        state.wait_error = if is_told { 0 } else { libc::ENOTSUP };
    }
    if options.period_ns != 0 {
        let opened = perf::task_clock(options.period_ns, handler::CPU);
        state.kernel_time = opened.is_ok_and(|(_, kernel_time)| kernel_time);
        state.cpu_error = keep(clock, opened.map(|(event, _)| event));
    }
    SETTING.tell_later(state, uses_perf && state.wait_error == 0);
    state
}

fn keep(place: &(AtomicI32, AtomicU64), event: Result<Event, sys::Errno>) -> i32 {
    match event {
        Ok(event) => {
            place.0.store(event.descriptor, Ordering::Relaxed);
            place.1.store(event.id, Ordering::Relaxed);
            0
        }
        Err(error) => {
            place.0.store(-1, Ordering::Relaxed);
            error
        }
    }
}

/// Switches the events of this process, in all its threads; those of another one are left alone. Whether there are any.
/// Signals that are under way come before this returns.
pub(crate) fn switch(on: bool) -> bool {
    if OWNER.load(Ordering::Relaxed) != sys::process_id() {
        return false;
    }
    let mut has_any = false;
    for (descriptor, id) in &EVENTS {
        let event = Event {
            descriptor: descriptor.load(Ordering::Relaxed),
            id: id.load(Ordering::Relaxed),
        };
        if event.descriptor >= 0 {
            has_any |= perf::switch(event, on);
        }
    }
    has_any
}

/// A forked child has no events: it takes some of its own. It writes nothing before it has a stack to tell of: most
/// children soon become other programs.
extern "C" fn in_child() {
    let errno = sys::errno();
    for (descriptor, id) in &EVENTS {
        let event = Event {
            descriptor: descriptor.swap(-1, Ordering::Relaxed),
            id: id.load(Ordering::Relaxed),
        };
        if event.descriptor >= 0 {
            perf::close_inherited(event);
        }
    }
    modules::forked();
    ground::forked();
    // SAFETY: the child has this thread only, and no signals yet.
    unsafe { local::local().stack = [0; 2] };
    let waits = [Waits::Auto, Waits::Perf, Waits::Kernel, Waits::Off];
    let options = Options {
        period_ns: PERIOD.load(Ordering::Relaxed),
        threshold_ns: SETTING.threshold_ns.load(Ordering::Relaxed),
        depth: SETTING.depth.load(Ordering::Relaxed),
        waits: waits
            .into_iter()
            .find(|&waits| waits as i32 == WAITS.load(Ordering::Relaxed))
            .unwrap_or(Waits::Off),
    };
    start(&options);
    sys::set_errno(errno);
}
