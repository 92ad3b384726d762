//! The modules of the program, and whether they have been recorded.
//!
//! The list is made from the dynamic loader's list (`_r_debug`, as debuggers read it), which can be
//! walked in a signal handler: without the loader's lock, reading only memory that the kernel finds
//! readable, and using the result only if the loader's state is consistent before and after. An
//! address outside all modules of the list indicates a new module.
//!
//! Safety: published lists are never changed. A reader is counted in `READERS` before it loads the
//! list and until it has finished; a replaced list is unmapped at the next replacement if no other
//! reader was counted at that time, else never. `SCANNING` admits one writer; a thread that does
//! not get in leaves the work to the next one (`STALE`).

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use tracebraid_probe::probe;

use crate::elf::Headers;
use crate::{memory, sys};

const MOST_MODULES: usize = 4096;

/// A module in memory.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    /// First address, and the address after the last.
    pub(crate) range: [u64; 2],
    /// Identity: the bias and the address of the dynamic section.
    identity: [u64; 2],
    /// True once an event has recorded the module.
    announced: bool,
}

pub(crate) struct List {
    count: usize,
    modules: [Module; MOST_MODULES],
}

impl List {
    fn modules(&self) -> &[Module] {
        self.modules.get(..self.count).unwrap_or_default()
    }

    /// The module that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Module> {
        let modules = self.modules();
        let behind = modules.partition_point(|module| module.range[0] <= address);
        modules
            .get(behind.checked_sub(1)?)
            .filter(|module| address < module.range[1])
    }

    fn known(&self, identity: [u64; 2]) -> Option<&Module> {
        self.modules()
            .iter()
            .find(|module| module.identity == identity)
    }

    fn insert(&mut self, module: Module) -> Option<()> {
        let at = self
            .modules()
            .partition_point(|other| other.range[0] < module.range[0]);
        let end = self.count;
        self.modules.get_mut(at..=end)?.rotate_right(1);
        *self.modules.get_mut(at)? = module;
        self.count += 1;
        Some(())
    }
}

static LIST: AtomicPtr<List> = AtomicPtr::new(core::ptr::null_mut());
static RETIRED: AtomicPtr<List> = AtomicPtr::new(core::ptr::null_mut());
static READERS: AtomicU32 = AtomicU32::new(0);
static SCANNING: AtomicBool = AtomicBool::new(false);
static STALE: AtomicBool = AtomicBool::new(false);
static ANNOUNCED: AtomicBool = AtomicBool::new(false);
/// Set in a forked child: the modules recorded so far are not in this process's trace.
static UNTOLD: AtomicBool = AtomicBool::new(false);
/// `_r_debug` of the loader, and the program's own headers.
static RENDEZVOUS: AtomicU64 = AtomicU64::new(0);
static PROGRAM: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Regions without a module, each with the time of the search in milliseconds.
static NOWHERE: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// Ranges of recorded modules whose functions were called recently.
static MET: [[AtomicU64; 2]; 8] = [const { [const { AtomicU64::new(0) }; 2] }; 8];
static NEXT_MET: AtomicU32 = AtomicU32::new(0);

/// A use of the list; one for each signal.
pub(crate) struct Reader(());

impl Reader {
    pub(crate) fn enter() -> Reader {
        READERS.fetch_add(1, Ordering::SeqCst);
        Reader(())
    }

    /// The list; `None` before the first scan.
    pub(crate) fn list(&self) -> Option<&List> {
        // SAFETY: see the module documentation.
        unsafe { LIST.load(Ordering::SeqCst).as_ref() }
    }

    /// Searches for new modules if an earlier scan failed, or no module has been recorded yet. May
    /// replace the list.
    pub(crate) fn refresh(&mut self) {
        let is_new = !ANNOUNCED.swap(true, Ordering::Relaxed);
        if is_new || STALE.load(Ordering::Relaxed) {
            scan(true, 1);
        }
    }

    /// Searches for a module at an address outside the list, unless the same search failed within
    /// the last second. May replace the list.
    fn look_at(&mut self, address: u64, now: u64) {
        let region = (address >> 16) & 0xFFFF_FFFF;
        let Some(slot) = NOWHERE.get((region % 64) as usize) else {
            return;
        };
        let known = slot.load(Ordering::Relaxed);
        let is_in_vain = known >> 32 == region && (now as u32).wrapping_sub(known as u32) < 1000;
        if is_in_vain {
            return;
        }
        scan(true, 1);
        if self.list().is_some_and(|list| list.find(address).is_none()) {
            slot.store(region << 32 | (now & 0xFFFF_FFFF), Ordering::Relaxed);
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        READERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Finds the loader's list and makes the first list.
pub(crate) fn begin() {
    // SAFETY: a name with a NUL.
    let rendezvous = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_r_debug".as_ptr()) };
    RENDEZVOUS.store(rendezvous as u64, Ordering::Relaxed);
    // SAFETY: takes and returns numbers.
    let values = unsafe {
        [
            libc::getauxval(libc::AT_PHDR),
            libc::getauxval(libc::AT_PHNUM),
        ]
    };
    for (place, value) in PROGRAM.iter().zip(values) {
        place.store(value, Ordering::Relaxed);
    }
    scan(false, 0);
}

/// Records the module of a function whose address is about to be recorded.
pub(crate) fn meet(address: u64) {
    let is_met = |[first, end]: &[AtomicU64; 2]| {
        (first.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&address)
    };
    if !MET.iter().any(is_met) {
        meet_first(address);
    }
}

#[cold]
fn meet_first(address: u64) {
    let mut reader = Reader::enter();
    reader.refresh();
    if reader
        .list()
        .is_none_or(|list| list.find(address).is_none())
    {
        reader.look_at(address, sys::clock(libc::CLOCK_MONOTONIC) / 1_000_000);
    }
    let Some(module) = reader.list().and_then(|list| list.find(address)) else {
        return;
    };
    let at = NEXT_MET.fetch_add(1, Ordering::Relaxed) as usize % MET.len();
    if let Some([first, end]) = MET.get(at) {
        // Empty in between, for concurrent readers.
        end.store(0, Ordering::Relaxed);
        first.store(module.range[0], Ordering::Release);
        end.store(module.range[1], Ordering::Release);
    }
}

/// Clears the cache: modules were unmapped, or the trace is a new one.
fn forget_met() {
    MET.iter()
        .for_each(|[_, end]| end.store(0, Ordering::Relaxed));
}

/// Resets the state in a forked child, which has one thread and a trace without modules.
pub(crate) extern "C" fn forked() {
    forget_met();
    READERS.store(0, Ordering::Relaxed);
    SCANNING.store(false, Ordering::Relaxed);
    ANNOUNCED.store(false, Ordering::Relaxed);
    UNTOLD.store(true, Ordering::Relaxed);
}

/// Marks the list as outdated: modules may have been unmapped.
pub(crate) fn closed() {
    if !scan(false, 0) {
        STALE.store(true, Ordering::Relaxed);
    }
}

/// An entry of the loader's list (`struct link_map`).
struct Link {
    bias: u64,
    name: u64,
    dynamic: u64,
    next: u64,
}

impl Link {
    fn read(at: u64) -> Option<Link> {
        let mut bytes = [0; 32];
        memory::scan(at, &mut bytes).then_some(())?;
        let word = |index: usize| {
            Some(u64::from_ne_bytes(
                bytes.get(index * 8..index * 8 + 8)?.try_into().ok()?,
            ))
        };
        Some(Link {
            bias: word(0)?,
            name: word(1)?,
            dynamic: word(2)?,
            next: word(3)?,
        })
    }

    fn headers(&self, is_program: bool) -> Option<Headers> {
        if !is_program {
            return Headers::of_library(self.bias);
        }
        let [address, count] = &PROGRAM;
        Some(Headers::of_program(
            self.bias,
            address.load(Ordering::Relaxed),
            count.load(Ordering::Relaxed),
        ))
    }

    fn module(&self, is_program: bool) -> Option<Module> {
        let headers = self.headers(is_program)?;
        Some(Module {
            range: headers.range()?,
            identity: [self.bias, self.dynamic],
            announced: false,
        })
    }

    /// Copies the module's path into the buffer and returns its length.
    fn path(&self, is_program: bool, buffer: &mut [u8]) -> usize {
        if is_program {
            return sys::program(buffer);
        }
        // The path of a library may be relative to the working directory.
        let mut first = [0];
        let is_relative = memory::scan(self.name, &mut first) && first == *b".";
        let mut length = if is_relative {
            sys::directory(buffer)
        } else {
            0
        };
        for (index, place) in buffer.iter_mut().skip(length).enumerate() {
            let mut byte = [0];
            if !memory::scan(self.name + index as u64, &mut byte) || byte == [0] {
                break;
            }
            *place = byte[0];
            length += 1;
        }
        length
    }

    fn announce(&self, module: &Module, is_program: bool) {
        let mut path = [0; 512];
        let length = self.path(is_program, &mut path);
        let path = core::str::from_utf8(path.get(..length).unwrap_or_default()).unwrap_or("");
        let id = self
            .headers(is_program)
            .map(Headers::build_id)
            .unwrap_or_default();
        record_load(module.range, path, id.bytes());
    }
}

fn record_load([first, end]: [u64; 2], path: &str, build_id: &[u8]) {
    probe!(
        lttng_ust_lib,
        load,
        baddr: u64 = first,
        memsz: u64 = end.wrapping_sub(first),
        path: &str = path,
        has_build_id: bool = !build_id.is_empty(),
        has_debug_link: bool = false,
    );
    if !build_id.is_empty() {
        probe!(lttng_ust_lib, build_id, baddr: u64 = first, build_id: &[u8] = build_id);
    }
}

fn is_consistent(rendezvous: u64) -> bool {
    memory::word(rendezvous + 24).is_some_and(|state| state as u32 == 0)
}

/// Rebuilds the list, recording new modules if `announce` is set. `readers` is the number of uses
/// that the caller itself holds. Returns whether the list was rebuilt.
fn scan(announce: bool, readers: u32) -> bool {
    if SCANNING.swap(true, Ordering::Acquire) {
        STALE.store(true, Ordering::Relaxed);
        return false;
    }
    STALE.store(false, Ordering::Relaxed);
    let made = make(announce);
    if let Some(new) = made {
        let old = LIST.swap(new, Ordering::SeqCst);
        let before = RETIRED.swap(old, Ordering::SeqCst);
        if READERS.load(Ordering::SeqCst) == readers && !before.is_null() {
            // SAFETY: see the module documentation.
            unsafe { sys::unmap(before.cast(), size_of::<List>()) };
        }
    } else {
        STALE.store(true, Ordering::Relaxed);
    }
    SCANNING.store(false, Ordering::Release);
    made.is_some()
}

fn make(announce: bool) -> Option<*mut List> {
    memory::begin_scan();
    let rendezvous = RENDEZVOUS.load(Ordering::Relaxed);
    (rendezvous != 0 && is_consistent(rendezvous)).then_some(())?;
    let new: *mut List = sys::map(size_of::<List>())?.cast();
    // SAFETY: zeros are an empty list, which is not shared yet; only one list is built at a time.
    let (list, old) = unsafe { (&mut *new, LIST.load(Ordering::SeqCst).as_ref()) };
    let filled = fill(list, old, memory::word(rendezvous + 8)?, announce);
    if filled.is_none() || !is_consistent(rendezvous) {
        // SAFETY: as above.
        unsafe { sys::unmap(new.cast(), size_of::<List>()) };
        return None;
    }
    let old = old.map_or(&[][..], List::modules);
    let mut has_lost = false;
    for gone in old
        .iter()
        .filter(|module| list.known(module.identity).is_none())
    {
        has_lost = true;
        if gone.announced {
            probe!(lttng_ust_lib, unload, baddr: u64 = gone.range[0]);
        }
    }
    if has_lost {
        forget_met();
    }
    Some(new)
}

fn fill(list: &mut List, old: Option<&List>, first: u64, announce: bool) -> Option<()> {
    let (mut at, mut is_program) = (first, true);
    let is_untold = UNTOLD.swap(false, Ordering::Relaxed);
    while at != 0 {
        let link = Link::read(at)?;
        let known = old
            .and_then(|old| old.known([link.bias, link.dynamic]))
            .copied();
        if let Some(mut module) = known.or_else(|| link.module(is_program)) {
            module.announced &= !is_untold;
            if announce && !module.announced {
                link.announce(&module, is_program);
                module.announced = true;
            }
            list.insert(module)?;
        }
        (at, is_program) = (link.next, false);
    }
    Some(())
}
