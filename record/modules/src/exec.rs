//! `execve` and its relatives, which may start programs in a root where the library does not exist.
//!
//! `pivot_root`, `setns` and raw system calls change the root as well as `chroot` does, and the
//! library does not see such calls. So each function checks whether the library exists, and
//! passes an environment without it if not. The caller's environment is never changed: in a child
//! of `vfork` it is the parent's, whose root still has the library. The copy is on the stack,
//! because nothing may be allocated there. The check is one `access`: a sandbox in which the new
//! program loads must allow that call, because the loader makes it, too.
//!
//! Functions with a list of arguments (`execl`) are not interposed, because the list cannot be
//! passed on. Neither are `system` and `popen`: threads may be cancelled in them, and no frame of
//! this library may be on the stack then.
//!
//! Safety: the C library's functions are found by `dlsym` and called with the caller's arguments.
//! Environments are arrays of strings that end with a null pointer.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null;

use crate::next::Next;
use crate::preload::{PRELOAD, forget, is_there, lacks_some};
use crate::sys;

type Path = *const c_char;
type Strings = *const *const c_char;

/// Maximum length of `LD_PRELOAD` in bytes; longer lists are left unchanged.
const MOST_TEXT: usize = 1024;

static EXECVE: Next = Next::new(c"execve");
static EXECVPE: Next = Next::new(c"execvpe");
static EXECVEAT: Next = Next::new(c"execveat");
static FEXECVE: Next = Next::new(c"fexecve");
static POSIX_SPAWN: Next = Next::new(c"posix_spawn");
static POSIX_SPAWNP: Next = Next::new(c"posix_spawnp");

/// Finds all functions at load time: a child of a process with threads must not wait for locks of
/// the loader.
#[used]
#[unsafe(link_section = ".init_array")]
static FIND: extern "C" fn() = find;

extern "C" fn find() {
    for next in [
        &EXECVE,
        &EXECVPE,
        &EXECVEAT,
        &FEXECVE,
        &POSIX_SPAWN,
        &POSIX_SPAWNP,
    ] {
        next.find();
    }
}

unsafe extern "C" {
    static environ: Strings;
}

/// An environment that preloads a library of a recording that does not exist.
struct Outdated {
    environment: Strings,
    variables: usize,
    /// Index and text of `LD_PRELOAD`.
    at: usize,
    text: &'static [u8],
}

impl Outdated {
    /// # Safety
    /// The environment is null, or an array of strings that ends with a null pointer and outlives
    /// the result.
    unsafe fn find(environment: Strings) -> Option<Outdated> {
        let (mut variables, mut found) = (0, None);
        if environment.is_null() {
            return None;
        }
        loop {
            // SAFETY: guaranteed by the caller.
            let variable = unsafe { *environment.add(variables) };
            if variable.is_null() {
                break;
            }
            if found.is_none() && starts_with(variable, PRELOAD) {
                // SAFETY: guaranteed by the caller.
                found = Some((variables, unsafe { CStr::from_ptr(variable) }.to_bytes()));
            }
            variables += 1;
        }
        let (at, text) = found?;
        let list = text.get(PRELOAD.len()..)?;
        (text.len() < MOST_TEXT && lacks_some(list, is_there)).then_some(Outdated {
            environment,
            variables,
            at,
            text,
        })
    }

    /// Calls a function with a copy of the environment without the library, of at most `N`
    /// variables.
    #[inline(never)]
    fn replaced<const N: usize>(&self, then: &mut dyn FnMut(Strings) -> c_int) -> c_int {
        let mut text = [0; MOST_TEXT];
        for (to, from) in text.iter_mut().zip(self.text) {
            *to = *from;
        }
        forget(text.get_mut(PRELOAD.len()..).unwrap_or_default(), is_there);
        let mut copy = [null(); N];
        for (index, to) in copy.iter_mut().take(self.variables).enumerate() {
            *to = match index == self.at {
                true => text.as_ptr().cast(),
                // SAFETY: the index is below the number of variables.
                false => unsafe { *self.environment.add(index) },
            };
        }
        then(copy.as_ptr())
    }
}

/// True if a NUL-terminated string starts with `start`.
fn starts_with(string: *const c_char, start: &[u8]) -> bool {
    // SAFETY: nothing after the first byte that differs is read, and the NUL differs.
    (0..)
        .zip(start)
        .all(|(at, &byte)| unsafe { *string.add(at) } as u8 == byte)
}

/// Calls a function with the environment, or with a copy of it on the stack.
///
/// # Safety
/// As [`Outdated::find`].
unsafe fn with(environment: Strings, then: &mut dyn FnMut(Strings) -> c_int) -> c_int {
    let errno = sys::errno();
    // SAFETY: guaranteed by the caller.
    let outdated = unsafe { Outdated::find(environment) };
    sys::set_errno(errno);
    match outdated {
        Some(outdated) => match outdated.variables {
            // One entry is the terminating null pointer.
            0..64 => outdated.replaced::<64>(then),
            64..256 => outdated.replaced::<256>(then),
            256..1024 => outdated.replaced::<1024>(then),
            _ => then(environment),
        },
        None => then(environment),
    }
}

/// Fails with `ENOSYS`: the C library has no such function.
fn missing() -> c_int {
    sys::set_errno(libc::ENOSYS);
    -1
}

type Exec = unsafe extern "C" fn(Path, Strings, Strings) -> c_int;

/// # Safety
/// `next` has this type; the arguments are valid as the C library's function requires.
unsafe fn execute(next: &Next, path: Path, arguments: Strings, environment: Strings) -> c_int {
    let next = next.find();
    if next.is_null() {
        return missing();
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(environment, &mut |environment| {
            transmute::<*mut c_void, Exec>(next)(path, arguments, environment)
        })
    }
}

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execve(
    path: Path,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { execute(&EXECVE, path, arguments, environment) }
}

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execv(path: Path, arguments: Strings) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { execve(path, arguments, environ) }
}

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execvpe(
    file: Path,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { execute(&EXECVPE, file, arguments, environment) }
}

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execvp(file: Path, arguments: Strings) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { execvpe(file, arguments, environ) }
}

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execveat(
    directory: c_int,
    path: Path,
    arguments: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    type Function = unsafe extern "C" fn(c_int, Path, Strings, Strings, c_int) -> c_int;
    let next = EXECVEAT.find();
    // SAFETY: the C library's function and the caller's arguments. Older C libraries do not have
    // it.
    unsafe {
        with(environment, &mut |environment| match next.is_null() {
            true => libc::syscall(
                libc::SYS_execveat,
                directory,
                path,
                arguments,
                environment,
                flags,
            ) as c_int,
            false => transmute::<*mut c_void, Function>(next)(
                directory,
                path,
                arguments,
                environment,
                flags,
            ),
        })
    }
}

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fexecve(
    file: c_int,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    type Function = unsafe extern "C" fn(c_int, Strings, Strings) -> c_int;
    let next = FEXECVE.find();
    if next.is_null() {
        return missing();
    }
    // SAFETY: the C library's function and the caller's arguments.
    unsafe {
        with(environment, &mut |environment| {
            transmute::<*mut c_void, Function>(next)(file, arguments, environment)
        })
    }
}

type Spawn = unsafe extern "C" fn(
    *mut libc::pid_t,
    Path,
    *const c_void,
    *const c_void,
    Strings,
    Strings,
) -> c_int;

/// # Safety
/// `next` has this type; the arguments are valid as the C library's function requires.
unsafe fn spawn(
    next: &Next,
    process: *mut libc::pid_t,
    path: Path,
    [actions, attributes]: [*const c_void; 2],
    [arguments, environment]: [Strings; 2],
) -> c_int {
    let next = next.find();
    if next.is_null() {
        return libc::ENOSYS;
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(environment, &mut |environment| {
            transmute::<*mut c_void, Spawn>(next)(
                process,
                path,
                actions,
                attributes,
                arguments,
                environment,
            )
        })
    }
}

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_spawn(
    process: *mut libc::pid_t,
    path: Path,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: the C library's function and the caller's arguments.
    unsafe {
        spawn(
            &POSIX_SPAWN,
            process,
            path,
            [actions, attributes],
            [arguments, environment],
        )
    }
}

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_spawnp(
    process: *mut libc::pid_t,
    file: Path,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: the C library's function and the caller's arguments.
    unsafe {
        spawn(
            &POSIX_SPAWNP,
            process,
            file,
            [actions, attributes],
            [arguments, environment],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(variables: &[&CStr]) -> Vec<String> {
        let mut environment: Vec<*const c_char> =
            variables.iter().map(|variable| variable.as_ptr()).collect();
        environment.push(null());
        let before = environment.clone();
        let mut passed = Vec::new();
        let mut then = |given: Strings| {
            // SAFETY: an array of strings that ends with a null pointer.
            let all = (0..).map(|at| unsafe { *given.add(at) });
            for variable in all.take_while(|variable| !variable.is_null()) {
                // SAFETY: as above.
                let variable = unsafe { CStr::from_ptr(variable) };
                passed.push(variable.to_str().unwrap().to_owned());
            }
            7
        };
        // SAFETY: as above.
        assert_eq!(unsafe { with(environment.as_ptr(), &mut then) }, 7);
        assert_eq!(
            environment, before,
            "the caller's environment is not changed"
        );
        passed
    }

    #[test]
    fn only_a_library_that_does_not_exist_is_left_out() {
        assert_eq!(
            passed(&[
                c"A=1",
                c"LD_PRELOAD=/none/libtracebraid_modules.so:/x.so",
                c"B=2"
            ]),
            ["A=1", "LD_PRELOAD=/x.so", "B=2"]
        );
        assert_eq!(
            passed(&[c"LD_PRELOAD=/none/libtracebraid_modules.so"]),
            ["LD_PRELOAD="]
        );
        for kept in [
            c"LD_PRELOAD=/none/other.so",
            c"LD_PRELOADS=/none/libtracebraid_modules.so",
        ] {
            assert_eq!(passed(&[c"A", kept]), ["A", kept.to_str().unwrap()]);
        }
        assert!(passed(&[]).is_empty());
        // SAFETY: no environment.
        assert_eq!(
            unsafe { with(null(), &mut |given| c_int::from(given.is_null())) },
            1
        );
    }

    #[test]
    fn environments_of_any_size_are_passed_whole() {
        for others in [62, 63, 64, 254, 255, 256, 1022, 1023, 5000] {
            let mut variables = vec![c"A=1"; others];
            variables.push(c"LD_PRELOAD=/none/libtracebraid_modules.so");
            let passed = passed(&variables);
            assert_eq!(passed.len(), others + 1);
            assert_eq!(passed[others] == "LD_PRELOAD=", others < 1023, "{others}");
        }
    }
}
