//! The functions that are called after these: those of the loader or of the next layer.

#![allow(unsafe_code)]

use core::mem::transmute_copy;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use crate::functions::{NAMES, clGetPlatformIDs};
use crate::libraries;

/// Number of loaders that may use the layer in one process: each passes a table of its own.
pub(crate) const LOADERS: usize = 2;

/// The dispatch table of the next layer, for each loader.
static TABLES: [AtomicPtr<usize>; LOADERS] = [const { AtomicPtr::new(ptr::null_mut()) }; LOADERS];

/// Addresses of the loader's functions by number, once they are known.
static ADDRESSES: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

/// How calls are recorded.
static ROUTE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
/// By the layer: exported functions only pass calls on.
const BY_LAYER: u8 = 1;
/// By exported functions.
const BY_EXPORTS: u8 = 2;

/// Takes the table of the next layer; `None` if too many loaders use the layer.
///
/// # Safety
/// The table has a function.
pub(crate) unsafe fn take_table(table: *const usize) -> Option<usize> {
    // Programs may unload the loader, and load it again. This library keeps its addresses.
    libraries::keep(table as usize);
    // SAFETY: as required of the caller.
    libraries::keep(unsafe { *table });
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

/// Threads that prepare the loader; 0: none.
static PREPARERS: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
static PREPARING: AtomicUsize = AtomicUsize::new(0);

/// True within the call of this library, and not of the program, that prepares the loader.
#[inline(always)]
pub(crate) fn is_preparing() -> bool {
    PREPARING.load(Ordering::Relaxed) != 0 && {
        // SAFETY: has no preconditions.
        let thread = unsafe { libc::pthread_self() } as usize;
        PREPARERS
            .iter()
            .any(|place| place.load(Ordering::Relaxed) == thread)
    }
}

/// Makes the loader load its layers, among which may be this library. Otherwise the first call would
/// be recorded twice. The loader makes other threads wait meanwhile: so each thread whose call comes
/// before the route is known prepares it.
#[cold]
fn prepare() -> bool {
    // SAFETY: the number is that function's.
    let first: Option<clGetPlatformIDs::Function> = unsafe { in_library(clGetPlatformIDs::NUMBER) };
    if let Some(first) = first
        && !prepare_by(first)
    {
        return false;
    }
    let (from, to) = (UNKNOWN, BY_EXPORTS);
    let _ = ROUTE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    ROUTE.load(Ordering::Acquire) == BY_EXPORTS
}

/// Calls the loader's first function. False if this is a call within that one, or too many threads
/// call it.
fn prepare_by(first: clGetPlatformIDs::Function) -> bool {
    if is_preparing() {
        return false;
    }
    // SAFETY: has no preconditions.
    let thread = unsafe { libc::pthread_self() } as usize;
    let Some(place) = PREPARERS.iter().find(|place| {
        let taken = place.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    }) else {
        return false;
    };
    PREPARING.fetch_add(1, Ordering::Relaxed);
    let mut count = 0_u32;
    // SAFETY: a query for the number of platforms.
    unsafe { first(0, 0, &raw mut count as usize) };
    place.store(0, Ordering::Release);
    PREPARING.fetch_sub(1, Ordering::Relaxed);
    true
}

/// Searches for the loader's function: after this library, or else in a loader that a library has
/// loaded for itself only, as extension modules of Python do.
#[cold]
fn find(number: usize) -> Option<usize> {
    let name = NAMES.get(number)?;
    // SAFETY: the name ends with NUL.
    let mut address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if address.is_null() {
        let loader = libraries::loader()?;
        // SAFETY: the handle is open, and the name ends with NUL.
        address = unsafe { libc::dlsym(loader.as_ptr(), name.as_ptr()) };
    }
    if address.is_null() {
        return None;
    }
    libraries::keep(address as usize);
    ADDRESSES[number].store(address as usize, Ordering::Relaxed);
    Some(address as usize)
}
