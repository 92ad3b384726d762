//! The search for CUPTI's library.
//!
//! In this order: the file that `TRACEBRAID_CUPTI` names; a library that is loaded already (PyTorch
//! has its own); those beside the runtime library that the program has loaded, since both are of one
//! toolkit; the paths of the dynamic linker; the usual places of a toolkit.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};

use super::{Path, address, path_of};

/// Names of the library, newest first.
const NAMES: [&[u8]; 8] = [
    b"libcupti.so.13",
    b"libcupti.so.12",
    b"libcupti.so.11.8",
    b"libcupti.so.11.7",
    b"libcupti.so.11.6",
    b"libcupti.so.11.5",
    b"libcupti.so.11.0",
    b"libcupti.so",
];

/// Folders of CUPTI from that of the runtime library: the same in wheels for CUDA 13 and in
/// distributions, a sibling in older wheels, and that of a toolkit.
const BESIDE_RUNTIME: [&[u8]; 4] = [
    b"/",
    b"/../../cuda_cupti/lib/",
    b"/../extras/CUPTI/lib64/",
    b"/../../../extras/CUPTI/lib64/",
];

/// Folders of CUPTI in a toolkit.
const IN_TOOLKIT: [&[u8]; 2] = [b"/extras/CUPTI/lib64/", b"/lib64/"];

type Found = Option<(*mut c_void, Path)>;

/// Opens the library.
pub(super) fn open() -> Found {
    let named = variable(c"TRACEBRAID_CUPTI");
    if let Some(named) = named {
        return load(Path::of(&[named])?, libc::RTLD_NOW);
    }
    loaded(b"libcupti.so")
        .and_then(|path| load(path, libc::RTLD_NOW | libc::RTLD_NOLOAD))
        .or_else(beside_runtime)
        .or_else(|| in_folder(b"", &[b""]))
        .or_else(|| in_folder(variable(c"CUDA_HOME")?, &IN_TOOLKIT))
        .or_else(|| in_folder(variable(c"CUDA_PATH")?, &IN_TOOLKIT))
        .or_else(|| in_folder(b"/usr/local/cuda", &IN_TOOLKIT))
}

fn beside_runtime() -> Found {
    let runtime = loaded(b"libcudart.so")?;
    let path = runtime.as_c().to_bytes();
    let end = path.iter().rposition(|byte| *byte == b'/')?;
    in_folder(path.get(..end)?, &BESIDE_RUNTIME)
}

/// The first library in folders below a folder.
fn in_folder(folder: &[u8], below: &[&[u8]]) -> Found {
    let paths = below.iter().flat_map(|below| {
        NAMES
            .iter()
            .map(move |name| Path::of(&[folder, below, name]))
    });
    paths.flatten().find_map(|path| load(path, libc::RTLD_NOW))
}

fn load(path: Path, flags: c_int) -> Found {
    // SAFETY: the path ends with NUL. Constructors of CUPTI run, as in programs that link it.
    let handle = unsafe { libc::dlopen(path.as_c().as_ptr(), flags | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return None;
    }
    // The linker may have found it elsewhere.
    // SAFETY: the library is open.
    let place = unsafe { address(handle, c"cuptiGetVersion") };
    Some((handle, place.and_then(path_of).unwrap_or(path)))
}

/// A variable of the environment; `None` if it is empty.
fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the name ends with NUL; the program must not change its environment meanwhile, as for
    // any use of getenv.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a text of the environment.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes();
    (!value.is_empty()).then_some(value)
}

/// The path of the first loaded library whose file name begins with `prefix`.
fn loaded(prefix: &'static [u8]) -> Option<Path> {
    let mut sought = Sought { prefix, path: None };
    // SAFETY: the callback gets `sought`, which lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(is_sought), (&raw mut sought).cast()) };
    sought.path
}

struct Sought {
    prefix: &'static [u8],
    path: Option<Path>,
}

unsafe extern "C" fn is_sought(
    library: *mut libc::dl_phdr_info,
    _size: usize,
    sought: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a library, and what `loaded` gave it.
    let (path, sought) = unsafe { ((*library).dlpi_name, &mut *sought.cast::<Sought>()) };
    if path.is_null() {
        return 0;
    }
    // SAFETY: paths of loaded libraries end with NUL.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next();
    if !name.is_some_and(|name| name.starts_with(sought.prefix)) {
        return 0;
    }
    sought.path = Path::of(&[path]);
    1
}
