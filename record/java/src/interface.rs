//! The functions of JNI and JVMTI that the agent uses, by their numbers in the specifications of Java
//! SE 21 ("Function Table", "Interface Function Table").
//!
//! Safety: the virtual machine passes valid interfaces, and functions have the types of the
//! specifications. References are used only within the callback that got them.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute_copy;
use core::ptr::null_mut;

/// A reference to an object, a class or a text, or an id of a method or a field.
pub(crate) type Reference = *mut c_void;
/// An interface: a pointer to a table of functions.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Interface(pub(crate) *const *const *const c_void);

// SAFETY: the tables are constant, and JVMTI's functions may be called by any thread.
unsafe impl Send for Interface {}
unsafe impl Sync for Interface {}

impl Interface {
    /// The function at an index of the table, as the type `F`.
    unsafe fn function<F: Copy>(self, index: usize) -> F {
        unsafe { transmute_copy(&*(*self.0).add(index)) }
    }
}

/// `JNIEnv` of the current thread.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Jni(Interface);

type Find = unsafe extern "C" fn(Interface, *const c_char) -> Reference;
type Member = unsafe extern "C" fn(Interface, Reference, *const c_char, *const c_char) -> Reference;
type Of<T> = unsafe extern "C" fn(Interface, Reference, Reference) -> T;
type Text = unsafe extern "C" fn(Interface, Reference, *mut u8) -> *const c_char;
type Release = unsafe extern "C" fn(Interface, Reference, *const c_char);

fn some(reference: Reference) -> Option<Reference> {
    (!reference.is_null()).then_some(reference)
}

impl Jni {
    /// Looks a name up; an exception is forgotten.
    fn looked_up(self, found: Reference) -> Option<Reference> {
        if found.is_null() {
            unsafe { self.0.function::<unsafe extern "C" fn(Interface)>(17)(self.0) };
        }
        some(found)
    }

    pub(crate) fn class(self, name: &CStr) -> Option<Reference> {
        self.looked_up(unsafe { self.0.function::<Find>(6)(self.0, name.as_ptr()) })
    }

    pub(crate) fn class_of(self, object: Reference) -> Option<Reference> {
        type ClassOf = unsafe extern "C" fn(Interface, Reference) -> Reference;
        some(unsafe { self.0.function::<ClassOf>(31)(self.0, object) })
    }

    fn member(self, index: usize, class: Reference, name: &CStr, kind: &CStr) -> Option<Reference> {
        let found = unsafe {
            self.0.function::<Member>(index)(self.0, class, name.as_ptr(), kind.as_ptr())
        };
        self.looked_up(found)
    }

    pub(crate) fn method(self, class: Reference, name: &CStr, kind: &CStr) -> Option<Reference> {
        self.member(33, class, name, kind)
    }

    pub(crate) fn field(self, class: Reference, name: &CStr, kind: &CStr) -> Option<Reference> {
        self.member(94, class, name, kind)
    }

    pub(crate) fn object(self, object: Reference, field: Reference) -> Option<Reference> {
        some(unsafe { self.0.function::<Of<Reference>>(95)(self.0, object, field) })
    }

    pub(crate) fn int(self, object: Reference, field: Reference) -> i32 {
        unsafe { self.0.function::<Of<i32>>(100)(self.0, object, field) }
    }

    pub(crate) fn long(self, object: Reference, field: Reference) -> i64 {
        unsafe { self.0.function::<Of<i64>>(101)(self.0, object, field) }
    }

    /// The value of a static field.
    pub(crate) fn static_int(self, class: Reference, name: &CStr) -> Option<i32> {
        let field = self.member(144, class, name, c"I")?;
        Some(unsafe { self.0.function::<Of<i32>>(150)(self.0, class, field) })
    }

    /// Calls a function with a text of Java.
    pub(crate) fn text(self, text: Reference, call: impl FnOnce(&CStr)) {
        unsafe {
            let bytes = self.0.function::<Text>(169)(self.0, text, null_mut());
            if !bytes.is_null() {
                call(CStr::from_ptr(bytes));
                self.0.function::<Release>(170)(self.0, text, bytes);
            }
        }
    }
}

/// `jvmtiEnv`.
pub(crate) type Jvmti = Interface;

/// Bits of `jvmtiCapabilities`.
pub(crate) mod capability {
    pub(crate) const ACCESS_LOCAL_VARIABLES: u64 = 1 << 14;
    pub(crate) const GENERATE_BREAKPOINT_EVENTS: u64 = 1 << 19;
    pub(crate) const SUPPORT_VIRTUAL_THREADS: u64 = 1 << 44;
}

/// Numbers of events.
pub(crate) mod event {
    pub(crate) const LEAST: i32 = 50;
    pub(crate) const VM_INIT: i32 = 50;
    pub(crate) const BREAKPOINT: i32 = 62;
    pub(crate) const VIRTUAL_THREAD_END: i32 = 88;
    pub(crate) const COUNT: usize = 40;
}

/// `jvmtiEventCallbacks`: by the number of the event, less [`event::LEAST`].
pub(crate) type Callbacks = [*const c_void; event::COUNT];

/// `jvmtiExtensionEventInfo`.
#[repr(C)]
struct ExtensionEvent {
    index: c_int,
    id: *const c_char,
    description: *const c_char,
    parameter_count: c_int,
    parameters: *const c_void,
}

/// The version of JVMTI in Java 21.
const VERSION: c_int = 0x3000_0000 | 21 << 16;

impl Interface {
    /// The `jvmtiEnv` of a `JavaVM`; `None` if its version is below 21.
    pub(crate) fn tool_interface(self) -> Option<Jvmti> {
        type GetEnv = unsafe extern "C" fn(Interface, *mut Interface, c_int) -> c_int;
        let mut found = Interface(core::ptr::null());
        let result = unsafe { self.function::<GetEnv>(6)(self, &mut found, VERSION) };
        (result == 0).then_some(found)
    }

    /// True if the capabilities are given.
    pub(crate) fn add_capabilities(self, wanted: u64) -> bool {
        type Add = unsafe extern "C" fn(Jvmti, *const [u64; 2]) -> c_int;
        unsafe { self.function::<Add>(141)(self, &[wanted, 0]) == 0 }
    }

    pub(crate) fn set_callbacks(self, callbacks: &Callbacks) {
        type Set = unsafe extern "C" fn(Jvmti, *const Callbacks, c_int) -> c_int;
        let bytes = size_of::<Callbacks>() as c_int;
        unsafe { self.function::<Set>(121)(self, callbacks, bytes) };
    }

    pub(crate) fn enable(self, event: c_int) {
        type Enable = unsafe extern "C" fn(Jvmti, c_int, c_int, Reference, ...) -> c_int;
        unsafe { self.function::<Enable>(1)(self, 1, event, null_mut()) };
    }

    pub(crate) fn set_breakpoint(self, method: Reference) {
        type Set = unsafe extern "C" fn(Jvmti, Reference, i64) -> c_int;
        unsafe { self.function::<Set>(37)(self, method, 0) };
    }

    /// `this` of the method that the current thread executes.
    pub(crate) fn this(self) -> Option<Reference> {
        type Local = unsafe extern "C" fn(Jvmti, Reference, c_int, *mut Reference) -> c_int;
        let mut object = null_mut();
        let result = unsafe { self.function::<Local>(154)(self, null_mut(), 0, &mut object) };
        some(object).filter(|_| result == 0)
    }

    /// Calls a function with the signature of a class, such as `Ljava/lang/Object;`.
    pub(crate) fn signature<R>(self, class: Reference, call: impl FnOnce(&CStr) -> R) -> Option<R> {
        type Signature =
            unsafe extern "C" fn(Jvmti, Reference, *mut *const c_char, *mut *const c_char) -> c_int;
        let mut text = core::ptr::null();
        unsafe {
            let result = self.function::<Signature>(47)(self, class, &mut text, null_mut());
            if result != 0 || text.is_null() {
                return None;
            }
            let called = call(CStr::from_ptr(text));
            self.free(text.cast());
            Some(called)
        }
    }

    unsafe fn free(self, memory: *const c_void) {
        type Free = unsafe extern "C" fn(Jvmti, *const c_void) -> c_int;
        unsafe { self.function::<Free>(46)(self, memory) };
    }

    /// Has a function called at the extension event with this end of its id; false without it.
    pub(crate) fn set_extension(self, id: &str, callback: *const c_void) -> bool {
        type Get = unsafe extern "C" fn(Jvmti, *mut c_int, *mut *const ExtensionEvent) -> c_int;
        type Set = unsafe extern "C" fn(Jvmti, c_int, *const c_void) -> c_int;
        let (mut count, mut events) = (0, core::ptr::null());
        unsafe {
            if self.function::<Get>(124)(self, &mut count, &mut events) != 0 {
                return false;
            }
            // A few hundred bytes, once: what the list refers to is not freed.
            let all = core::slice::from_raw_parts(events, count.max(0) as usize);
            let has_id = |event: &&ExtensionEvent| {
                CStr::from_ptr(event.id).to_bytes().ends_with(id.as_bytes())
            };
            let Some(event) = all.iter().find(has_id) else {
                return false;
            };
            let is_set = self.function::<Set>(125)(self, event.index, callback) == 0;
            self.enable(event.index);
            is_set
        }
    }
}
