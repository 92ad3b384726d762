//! The functions that are called after these: those of the loader or of the next layer.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute_copy;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use crate::functions::{NAMES, clGetPlatformIDs};

/// Number of loaders that may use the layer in one process: each passes a table of its own.
pub(crate) const LOADERS: usize = 2;

/// The dispatch table of the next layer, for each loader.
static TABLES: [AtomicPtr<usize>; LOADERS] = [const { AtomicPtr::new(ptr::null_mut()) }; LOADERS];

/// Addresses of the loader's functions by number, once they are known.
static ADDRESSES: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

/// How calls are recorded.
static ROUTE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
/// The loader is being prepared.
const PREPARING: u8 = 1;
/// By the layer: exported functions only pass calls on.
const BY_LAYER: u8 = 2;
/// By exported functions.
const BY_EXPORTS: u8 = 3;

/// Takes the table of the next layer; `None` if too many loaders use the layer.
pub(crate) fn take_table(table: *const usize) -> Option<usize> {
    let place = TABLES.iter().position(|place| {
        let free = ptr::null_mut();
        place
            .compare_exchange(free, table.cast_mut(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
    ROUTE.store(BY_LAYER, Ordering::Release);
    place
}

/// The function with an index in the table of a loader.
///
/// # Safety
/// `F` is the type of that function, and the table has it.
#[inline(always)]
pub(crate) unsafe fn in_table<F: Copy>(loader: usize, index: usize) -> F {
    let table = TABLES[loader].load(Ordering::Relaxed);
    // SAFETY: wrappers are entered only if the table has their function.
    unsafe { transmute_copy(&*table.add(index)) }
}

/// The loader's function with a number; `None` if there is no loader.
///
/// # Safety
/// `F` is the type of that function.
#[inline(always)]
pub(crate) unsafe fn in_library<F: Copy>(number: usize) -> Option<F> {
    let address = match ADDRESSES[number].load(Ordering::Relaxed) {
        0 => find(number)?,
        address => address,
    };
    // SAFETY: functions of that name have that type.
    Some(unsafe { transmute_copy(&address) })
}

/// A function of OpenCL for use by this library; `None` if no loader has it.
///
/// # Safety
/// `F` is the type of the function with that index and number.
pub(crate) unsafe fn for_library<F: Copy>(index: usize, number: usize) -> Option<F> {
    for table in &TABLES {
        let table = table.load(Ordering::Acquire);
        // SAFETY: tables have entries for all functions up to OpenCL 3.0; an entry may be null.
        if !table.is_null() && unsafe { *table.add(index) } != 0 {
            // SAFETY: as above.
            return Some(unsafe { transmute_copy(&*table.add(index)) });
        }
    }
    // SAFETY: as required of the caller.
    unsafe { in_library(number) }
}

/// A function of OpenCL for use by this library, by its module; `None` if no loader has it.
macro_rules! own {
    ($function:ident) => {
        // SAFETY: type, index and number are those of the function.
        unsafe {
            $crate::next::for_library::<$crate::functions::$function::Function>(
                $crate::functions::$function::INDEX,
                $crate::functions::$function::NUMBER,
            )
        }
    };
}
pub(crate) use own;

/// True if exported functions record: no layer does.
#[inline(always)]
pub(crate) fn is_recorded_by_exports() -> bool {
    match ROUTE.load(Ordering::Acquire) {
        BY_EXPORTS => true,
        UNKNOWN => prepare(),
        _ => false,
    }
}

/// The thread that prepares the loader.
static PREPARER: AtomicUsize = AtomicUsize::new(0);

/// True within the call of this library, and not of the program, that prepares the loader.
#[inline(always)]
pub(crate) fn is_preparing() -> bool {
    match PREPARER.load(Ordering::Relaxed) {
        0 => false,
        // SAFETY: has no preconditions.
        preparer => preparer == unsafe { libc::pthread_self() } as usize,
    }
}

/// Makes the loader load its layers, among which may be this library. Otherwise the first call would
/// be recorded twice.
#[cold]
fn prepare() -> bool {
    let begun = ROUTE.compare_exchange(UNKNOWN, PREPARING, Ordering::AcqRel, Ordering::Acquire);
    if begun.is_err() {
        return ROUTE.load(Ordering::Acquire) == BY_EXPORTS;
    }
    // SAFETY: the number is that function's.
    let first: Option<clGetPlatformIDs::Function> = unsafe { in_library(clGetPlatformIDs::NUMBER) };
    if is_layer()
        && let Some(first) = first
    {
        let mut count = 0_u32;
        // SAFETY: a query for the number of platforms.
        unsafe {
            PREPARER.store(libc::pthread_self() as usize, Ordering::Relaxed);
            first(0, 0, &raw mut count as usize);
        }
        PREPARER.store(0, Ordering::Relaxed);
    }
    let (from, to) = (PREPARING, BY_EXPORTS);
    let by_exports = ROUTE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    by_exports.is_ok()
}

/// True if the environment has this library as a layer.
fn is_layer() -> bool {
    // SAFETY: the name ends with NUL; the program must not change its environment meanwhile, as for
    // any use of getenv.
    let layers = unsafe { libc::getenv(c"OPENCL_LAYERS".as_ptr()) };
    // SAFETY: a text of the environment.
    !layers.is_null()
        && unsafe { CStr::from_ptr(layers) }
            .to_bytes()
            .windows(OWN_FILE.len())
            .any(|part| part == OWN_FILE)
}

/// Common to the file names of the libraries that contain the layer.
const OWN_FILE: &[u8] = b"libtracebraid_";

/// Searches for the loader's function: after this library, or else in a loader that a library has
/// loaded for itself only, as extension modules of Python do.
#[cold]
fn find(number: usize) -> Option<usize> {
    let name = NAMES.get(number)?;
    // SAFETY: the name ends with NUL.
    let mut address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if address.is_null() {
        let mut loader = Loader {
            handle: ptr::null_mut(),
        };
        // SAFETY: the callback gets `loader`, which lives until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(is_loader), (&raw mut loader).cast()) };
        if loader.handle.is_null() {
            return None;
        }
        // SAFETY: the handle is open, and the name ends with NUL.
        address = unsafe { libc::dlsym(loader.handle, name.as_ptr()) };
    }
    if address.is_null() {
        return None;
    }
    ADDRESSES[number].store(address as usize, Ordering::Relaxed);
    Some(address as usize)
}

struct Loader {
    handle: *mut c_void,
}

/// Opens the first library whose file name begins with `libOpenCL`.
unsafe extern "C" fn is_loader(
    library: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a library, and what `find` gave it.
    let (path, found) = unsafe { ((*library).dlpi_name, &mut *found.cast::<Loader>()) };
    if !is_of_loader(path) {
        return 0;
    }
    // SAFETY: the path ends with NUL; the library is loaded already.
    found.handle = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    c_int::from(!found.handle.is_null())
}

/// True if a path is that of a loader of OpenCL.
pub(crate) fn is_of_loader(path: *const c_char) -> bool {
    if path.is_null() {
        return false;
    }
    // SAFETY: paths of loaded libraries end with NUL.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| name.starts_with(b"libOpenCL"))
}
