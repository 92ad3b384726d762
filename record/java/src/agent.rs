//! The agent: its start, and the callbacks of the virtual machine.
//!
//! Safety: the virtual machine calls the exported functions and the callbacks, with the arguments of
//! the specification. Callbacks of extension events are declared variadic; their arguments are
//! passed in the same registers as those of other functions (System V ABI).

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use crate::interface::{Callbacks, Interface, Jni, Jvmti, Reference, capability, event};
use crate::{reasons, threads};

/// Fields and methods of `java.lang.VirtualThread` and `java.lang.Thread`.
struct Known {
    jvmti: Jvmti,
    id: Reference,
    name: Reference,
    state: Reference,
    blocker: Reference,
    start: Reference,
    /// By the value of `state`, reasons of waits; `park` if the blocker has a better one.
    waits: Vec<(i32, &'static str)>,
}

// SAFETY: ids of fields and methods are valid in all threads.
unsafe impl Send for Known {}
unsafe impl Sync for Known {}

static JVMTI: OnceLock<Jvmti> = OnceLock::new();
static KNOWN: OnceLock<Known> = OnceLock::new();

/// Called by the virtual machine that loads the agent. It starts without the agent's work if nothing
/// is recorded, or if it has no virtual threads.
///
/// # Safety
/// Only for virtual machines.
#[unsafe(no_mangle)]
unsafe extern "C" fn Agent_OnLoad(vm: Interface, options: *const c_char, _: *mut c_void) -> c_int {
    // SAFETY: null, or a text of the command line.
    let has_wakes = !options.is_null() && unsafe { CStr::from_ptr(options) } == c"wakes";
    RECORDS_WAKES.store(has_wakes, Ordering::Relaxed);
    if tracebraid_probe::has_session() {
        prepare(vm);
    }
    0
}

/// True if wake-ups are recorded where they happen: the option `wakes`.
static RECORDS_WAKES: AtomicBool = AtomicBool::new(false);

fn prepare(vm: Interface) -> Option<()> {
    let jvmti = vm.tool_interface()?;
    let wanted = capability::SUPPORT_VIRTUAL_THREADS
        | capability::GENERATE_BREAKPOINT_EVENTS
        | capability::ACCESS_LOCAL_VARIABLES;
    jvmti.add_capabilities(wanted).then_some(())?;
    let mut callbacks: Callbacks = [core::ptr::null(); event::COUNT];
    let mut set = |event: i32, callback| callbacks[(event - event::LEAST) as usize] = callback;
    set(event::VM_INIT, vm_init as *const c_void);
    set(event::BREAKPOINT, breakpoint as *const c_void);
    set(
        event::VIRTUAL_THREAD_END,
        virtual_thread_end as *const c_void,
    );
    jvmti.set_callbacks(&callbacks);
    JVMTI.set(jvmti).ok()?;
    jvmti.enable(event::VM_INIT);
    Some(())
}

extern "C" fn vm_init(_: Jvmti, jni: Jni, _: Reference) {
    begin(jni);
}

/// Begins to record, when classes can be looked up.
fn begin(jni: Jni) -> Option<()> {
    let jvmti = *JVMTI.get()?;
    let thread = jni.class(c"java/lang/Thread")?;
    let class = jni.class(c"java/lang/VirtualThread")?;
    // States by name, since their values differ by version.
    let waits = [
        (c"PARKING", "park"),
        (c"TIMED_PARKING", "sleep"),
        (c"BLOCKING", "monitor"),
        (c"WAITING", "wait"),
        (c"TIMED_WAITING", "wait"),
    ];
    let value = |(name, reason): (&CStr, _)| Some((jni.static_int(class, name)?, reason));
    let start = jni.method(class, c"start", c"(Ljdk/internal/vm/ThreadContainer;)V")?;
    let known = Known {
        jvmti,
        id: jni.field(thread, c"tid", c"J")?,
        name: jni.field(thread, c"name", c"Ljava/lang/String;")?,
        state: jni.field(class, c"state", c"I")?,
        blocker: jni.field(thread, c"parkBlocker", c"Ljava/lang/Object;")?,
        start,
        waits: waits.into_iter().filter_map(value).collect(),
    };
    let wakes = [c"unpark", c"unblock"].map(|name| jni.method(class, name, c"()V"));
    let wakes = wakes
        .into_iter()
        .flatten()
        .filter(|_| RECORDS_WAKES.load(Ordering::Relaxed));
    KNOWN.set(known).ok()?;
    jvmti
        .set_extension(".VirtualThreadMount", mount as *const c_void)
        .then_some(())?;
    jvmti.set_extension(".VirtualThreadUnmount", unmount as *const c_void);
    jvmti.set_breakpoint(start);
    wakes.for_each(|method| jvmti.set_breakpoint(method));
    jvmti.enable(event::BREAKPOINT);
    jvmti.enable(event::VIRTUAL_THREAD_END);
    Some(())
}

extern "C" fn breakpoint(jvmti: Jvmti, jni: Jni, _: Reference, method: Reference, _: i64) {
    let (Some(known), Some(thread)) = (KNOWN.get(), jvmti.this()) else {
        return;
    };
    let id = jni.long(thread, known.id) as u64;
    if method != known.start {
        let state = jni.int(thread, known.state);
        threads::wake(id, known.waits.iter().any(|(value, _)| *value == state));
        return;
    }
    match jni.object(thread, known.name) {
        Some(name) => jni.text(name, |name| threads::create(id, &name.to_string_lossy())),
        None => threads::create(id, ""),
    }
}

extern "C" fn mount(_: Jvmti, jni: Jni, thread: Reference) {
    if let Some(known) = KNOWN.get() {
        threads::mount(jni.long(thread, known.id) as u64);
    }
}

extern "C" fn unmount(_: Jvmti, jni: Jni, thread: Reference) {
    if let Some(known) = KNOWN.get() {
        let reason = reason(known, jni, thread);
        threads::unmount(jni.long(thread, known.id) as u64, reason);
    }
}

/// The reason for which a thread leaves its carrier; `None` if it gives way, or ends.
fn reason(known: &Known, jni: Jni, thread: Reference) -> Option<&'static str> {
    let state = jni.int(thread, known.state);
    let (_, reason) = *known.waits.iter().find(|(value, _)| *value == state)?;
    if !matches!(reason, "park" | "sleep") {
        return Some(reason);
    }
    let blocker = jni
        .object(thread, known.blocker)
        .and_then(|object| jni.class_of(object));
    let of_class = blocker.and_then(|class| {
        (known.jvmti).signature(class, |signature| reasons::of(&signature.to_string_lossy()))
    });
    Some(of_class.unwrap_or(reason))
}

extern "C" fn virtual_thread_end(_: Jvmti, jni: Jni, thread: Reference) {
    if let Some(known) = KNOWN.get() {
        threads::end(jni.long(thread, known.id) as u64);
    }
}
