//! Quiet before the program becomes another.
//!
//! The kernel removes our events at exec, but a switch that happens in the system call before that still sends its
//! signal, to a program that has no handler: it would be killed. So the functions that become another program are
//! defined here: they switch the events off first, and on again if there is no other program after all. A child
//! of `vfork` has no events of its own and must not touch its parent's; it is told by its process id.
//!
//! Safety: they are called as the C library's, whose functions they call. `execl` and its like take as many arguments
//! as there are, which a function in Rust cannot: some lines of assembly put those of registers beside those on the
//! stack.

#![allow(unsafe_code)]

use core::ffi::{c_char, c_int};
use core::mem::transmute;

use crate::chain::Next;
use crate::{process, sys};

type Text = *const c_char;
type List = *const Text;

/// Arguments that `execl` and its like can have.
const MOST_ARGUMENTS: usize = 2048;

unsafe fn with_quiet(run: impl FnOnce() -> c_int) -> c_int {
    let was_on = process::switch(false);
    let result = run();
    if was_on {
        let errno = sys::errno();
        process::switch(true);
        sys::set_errno(errno);
    }
    result
}

macro_rules! quiet {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// Finds the C library's functions. Whether all are there.
        pub(crate) fn begin() -> bool {
            $(let $name = !next::$name.find().is_null();)*
            $($name)&&*
        }

        #[allow(non_upper_case_globals)]
        mod next {
            use super::Next;
            $(pub(super) static $name: Next = Next::new(match core::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            });)*
        }

        $(
            /// # Safety
            /// As the C library's.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                let next = next::$name.find();
                if next.is_null() {
                    sys::set_errno(libc::ENOSYS);
                    return -1;
                }
                // SAFETY: the caller's.
                unsafe {
                    let next: unsafe extern "C" fn($($type),*) -> c_int = transmute(next);
                    with_quiet(|| next($($argument),*))
                }
            }
        )*
    };
}

quiet! {
    execve(path: Text, arguments: List, environment: List);
    execv(path: Text, arguments: List);
    execvp(file: Text, arguments: List);
    execvpe(file: Text, arguments: List, environment: List);
    fexecve(descriptor: c_int, arguments: List, environment: List);
    execveat(directory: c_int, path: Text, arguments: List, environment: List, flags: c_int);
}

/// Defines a function with arguments of any number: five in registers behind the first, the others on the stack.
macro_rules! variadic {
    ($($name:ident => $to:ident;)*) => {$(
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() -> c_int {
            core::arch::naked_asm!(
                "sub rsp, 56",
                "mov [rsp], rsi",
                "mov [rsp + 8], rdx",
                "mov [rsp + 16], rcx",
                "mov [rsp + 24], r8",
                "mov [rsp + 32], r9",
                "mov rsi, rsp",
                "lea rdx, [rsp + 64]",
                "call {to}",
                "add rsp, 56",
                "ret",
                to = sym $to,
            )
        }
    )*};
}

variadic! {
    execl => list;
    execlp => list_of_file;
    execle => list_and_environment;
}

/// Gathers the arguments up to the null at their end; then what stands behind it, if `and_next`.
unsafe fn gather(registers: List, stack: List, into: &mut [Text], and_next: bool) -> Option<Text> {
    // SAFETY: the caller of `execl` ends its arguments with a null.
    let at = |index: usize| unsafe {
        if index < 5 {
            *registers.add(index)
        } else {
            *stack.add(index - 5)
        }
    };
    for (index, place) in into.iter_mut().enumerate() {
        *place = at(index);
        if place.is_null() {
            return Some(if and_next {
                at(index + 1)
            } else {
                core::ptr::null()
            });
        }
    }
    sys::set_errno(libc::E2BIG);
    None
}

unsafe extern "C" fn list(path: Text, registers: List, stack: List) -> c_int {
    let mut arguments = [core::ptr::null(); MOST_ARGUMENTS];
    // SAFETY: the caller's.
    unsafe {
        let gathered = gather(registers, stack, &mut arguments, false);
        gathered.map_or(-1, |_| execv(path, arguments.as_ptr()))
    }
}

unsafe extern "C" fn list_of_file(file: Text, registers: List, stack: List) -> c_int {
    let mut arguments = [core::ptr::null(); MOST_ARGUMENTS];
    // SAFETY: the caller's.
    unsafe {
        let gathered = gather(registers, stack, &mut arguments, false);
        gathered.map_or(-1, |_| execvp(file, arguments.as_ptr()))
    }
}

unsafe extern "C" fn list_and_environment(path: Text, registers: List, stack: List) -> c_int {
    let mut arguments = [core::ptr::null(); MOST_ARGUMENTS];
    // SAFETY: the caller's.
    unsafe {
        let gathered = gather(registers, stack, &mut arguments, true);
        gathered.map_or(-1, |environment| {
            execve(path, arguments.as_ptr(), environment.cast())
        })
    }
}
