//! The process's trace: its state, its event classes, its buffers; `trace_directory` creates its
//! files.
//!
//! Safety: all state is in private pages of zeros, which are zero again in a forked child: zeros
//! represent a process that has not begun. When a process [leaves](Process::leave) its trace, new
//! pages replace them. `shared` is accessed under the lock with signals blocked, except for the
//! values that [`Process::config`], [`Process::directory`] and [`Process::uuid`] return, which do
//! not change once the process has begun. The pages are never unmapped.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::class::Class;
use crate::clock::{Clock, Line};
use crate::config::{Config, Mode, Rules};
use crate::control::file::{self as control_file, ControlMap, MOST_CLASSES};
use crate::description::Description;
use crate::futex::{Futex, Held};
use crate::sys::{self, Errno, Path, below};
use crate::thread_state::ThreadState;
use crate::trace_directory::{
    make_directory, make_losses, program_name, read_config, report_unrecorded, session,
};
use crate::{metadata, restart, tls};

const BEGUN: u32 = 1;
const OFF: u32 = 2;
/// Status: there is no trace, and all events are counted as lost in the trace of the process from
/// which this process was forked.
const LOSING: u32 = 3;

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());
/// Number of traces begun in this program's memory; a forked child continues the count.
static EPOCHS: AtomicU32 = AtomicU32::new(0);
/// Loss counter and control file of the last process that began, also visible in its forked
/// children.
static LAST_LOST: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
static LAST_CONTROL: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// The epoch that this process has left to start a new trace, and its number of classes at that
/// time.
static LEFT: AtomicU64 = AtomicU64::new(0);
/// Number of times this process has left a trace.
static LEAVES: AtomicU32 = AtomicU32::new(0);
/// Limit for programs that change their user again and again.
const MOST_LEAVES: u32 = 16;
/// Key of the thread-exit handler, plus 1.
static EXIT_KEY: AtomicU32 = AtomicU32::new(0);
/// The C library stores values of the first keys in the thread itself, and allocates memory for
/// those of later keys.
const MOST_KEY: u32 = 32;

pub(crate) struct Process {
    lock: Futex,
    status: AtomicU32,
    epoch: AtomicU32,
    lost: AtomicPtr<AtomicU64>,
    /// Address of the [`ControlMap`].
    control: AtomicPtr<u8>,
    /// The state of threads without a buffer.
    nowhere: ThreadState,
    shared: UnsafeCell<Shared>,
}

// SAFETY: see the module documentation.
unsafe impl Sync for Process {}

struct Shared {
    config: Config,
    directory: Path,
    uuid: [u8; 16],
    clock: Clock,
    control: Option<ControlMap>,
    hashes: *mut u64,
    classes: u16,
    /// The class that is being registered; here, since stacks of user-level threads are small.
    description: Description,
    declaration: metadata::Piece,
    free: *mut ThreadState,
    all: *mut ThreadState,
    owned: u32,
    scan_at: u32,
    buffers: u64,
    taken: u64,
}

/// The process; begins its trace if there is a session. Signals must be blocked.
pub(crate) fn current() -> Option<&'static Process> {
    let mut process = PROCESS.load(Ordering::Acquire);
    if process.is_null() {
        let bytes = size_of::<Process>().next_multiple_of(4096);
        let made: *mut Process = sys::private(bytes).ok()?.cast();
        let null = core::ptr::null_mut();
        process = match PROCESS.compare_exchange(null, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                sys::unmap(made.cast(), bytes);
                other
            }
        };
    }
    // SAFETY: zeroed pages are a process that has not begun; they are never unmapped.
    let process = unsafe { &*process };
    if process.status.load(Ordering::Acquire) == 0 {
        let held = process.lock.lock();
        if process.status.load(Ordering::Acquire) == 0 {
            let begun = process.begin(&held);
            let status = begun.map_or_else(|error| process.fail(&held, error), |()| BEGUN);
            process.status.store(status, Ordering::Release);
        }
    }
    (process.status.load(Ordering::Acquire) != OFF).then_some(process)
}

/// True if no class can be enabled any more: the recording is over, or its start failed. False
/// before the first attempt. Takes no lock.
#[doc(hidden)]
pub fn has_ended() -> bool {
    // SAFETY: the pages are never unmapped.
    let Some(process) = (unsafe { PROCESS.load(Ordering::Acquire).as_ref() }) else {
        return false;
    };
    match process.status.load(Ordering::Acquire) {
        BEGUN | LOSING => process.has_ended(),
        OFF => true,
        _ => false,
    }
}

/// Resets the state in a forked child if the kernel does not wipe pages.
pub(crate) fn forget() {
    PROCESS.store(core::ptr::null_mut(), Ordering::Release);
}

impl Process {
    #[allow(clippy::mut_from_ref)]
    fn shared(&self, _: &Held<'_>) -> &mut Shared {
        // SAFETY: the lock is held.
        unsafe { &mut *self.shared.get() }
    }

    pub(crate) fn config(&self) -> &Config {
        // SAFETY: does not change after the process has begun.
        unsafe { &(*self.shared.get()).config }
    }

    pub(crate) fn directory(&self) -> &Path {
        // SAFETY: as above.
        unsafe { &(*self.shared.get()).directory }
    }

    pub(crate) fn uuid(&self) -> [u8; 16] {
        // SAFETY: as above.
        unsafe { (*self.shared.get()).uuid }
    }

    fn has_ended(&self) -> bool {
        ControlMap::at(self.control.load(Ordering::Acquire)).is_some_and(|map| map.has_ended())
    }

    /// True if the process has no trace, and its events are counted as lost while the recording
    /// continues.
    fn is_losing(&self) -> bool {
        self.status.load(Ordering::Acquire) == LOSING
    }

    /// Differs from the epoch of every process from which this process was forked; above 0.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Counter of events lost without a buffer.
    pub(crate) fn lost_counter(&self) -> *mut AtomicU64 {
        self.lost.load(Ordering::Acquire)
    }

    /// The current line of the clock.
    pub(crate) fn clock(&self) -> Line {
        let held = self.lock.lock();
        let shared = self.shared(&held);
        shared.clock.renew();
        shared.clock.line
    }

    /// Reserves part of the bytes that the process may write: `wanted`, or the remainder if it is
    /// at least `least`.
    pub(crate) fn take_room(&self, wanted: u64, least: u64) -> Option<u64> {
        let held = self.lock.lock();
        let shared = self.shared(&held);
        let left = (shared.config.limit.saturating_sub(shared.taken)) & !4095;
        let granted = if left >= wanted { wanted } else { left };
        (granted >= least).then(|| shared.taken += granted)?;
        Some(granted)
    }

    /// Returns reserved bytes that were not written.
    pub(crate) fn give_back(&self, bytes: u64) {
        let held = self.lock.lock();
        let shared = self.shared(&held);
        shared.taken = shared.taken.saturating_sub(bytes);
    }
}

// The beginning.
impl Process {
    #[cold]
    #[inline(never)]
    fn begin(&self, held: &Held<'_>) -> Result<(), Errno> {
        let shared = self.shared(held);
        // SAFETY: plain data without destructors; until here, zeros may be invalid for some of its
        // types.
        unsafe { core::ptr::write(&mut shared.config, Config::new()) };
        let session = session().ok_or(libc::ECANCELED)?;
        shared.config = read_config(&session)?;
        if shared.config.ended {
            return Err(libc::ECANCELED);
        }
        shared.uuid = sys::random();
        let mut name = [0; 32];
        let name = program_name(&mut name);
        let (hidden, directory) = make_directory(&session, name)?;
        let about = metadata::About {
            uuid: shared.uuid,
            name,
            pid: sys::process_id(),
            offset: shared
                .config
                .clock_offset
                .unwrap_or_else(metadata::measured_offset),
            cost: shared.config.cost,
        };
        metadata::write_preamble(&below(&hidden, b"/metadata"), &about)?;
        let mut rules = Rules::new();
        shared.config.all_rules(&mut rules);
        let control =
            control_file::create(&below(&hidden, b"/.control"), about.pid, rules.bytes())?;
        self.control.store(control.address(), Ordering::Release);
        shared.hashes = sys::private(MOST_CLASSES * 8)?.cast();
        shared.control = Some(control);
        let lost = make_losses(&below(&hidden, b"/stream_losses"), shared.uuid)?;
        sys::rename(&hidden, &directory)?;
        shared.directory = directory;
        shared.renew_rules(&session, &rules)?;
        shared.clock = Clock::begin(shared.config.cycles);
        restart::begin();
        shared.scan_at = 64;
        // Classes registered in the trace that the process left keep their ids.
        shared.classes = LEFT.load(Ordering::Relaxed) as u16;
        LAST_LOST.store(lost, Ordering::Release);
        LAST_CONTROL.store(self.control.load(Ordering::Relaxed), Ordering::Release);
        self.count_from(lost);
        make_exit_key();
        Ok(())
    }

    /// Assigns an epoch, and a counter for events lost without a buffer.
    fn count_from(&self, lost: *mut AtomicU64) {
        let epoch = EPOCHS
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1)
            .max(1);
        self.lost.store(lost, Ordering::Release);
        self.nowhere.without_buffer(epoch, lost);
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Handles a failed start: events are counted as lost in the trace of the process from which
    /// this process was forked or, without one, the failure is reported. Returns the status.
    fn fail(&self, _: &Held<'_>, error: Errno) -> u32 {
        let lost = LAST_LOST.load(Ordering::Acquire);
        if error == libc::ECANCELED {
            return OFF;
        }
        if !lost.is_null() {
            self.control
                .store(LAST_CONTROL.load(Ordering::Acquire), Ordering::Release);
            self.count_from(lost);
            return LOSING;
        }
        // If the directory does not exist, the user has forgotten to create it, and
        // `libtracebraid_modules` reports that.
        if error != libc::ENOENT
            && let Some(session) = session()
        {
            report_unrecorded(&session, error);
        }
        OFF
    }

    /// Called after a write failed because the process changed its user: starts a new trace as that
    /// user. Returns whether it did.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave(&self, error: Errno) -> bool {
        let held = self.lock.lock();
        if !matches!(error, libc::EACCES | libc::EPERM)
            || LEAVES.load(Ordering::Relaxed) >= MOST_LEAVES
        {
            return false;
        }
        let classes = self.shared(&held).classes;
        let left = u64::from(self.epoch()) << 32 | u64::from(classes);
        let (this, null) = (core::ptr::from_ref(self).cast_mut(), core::ptr::null_mut());
        if PROCESS.load(Ordering::Acquire) == this {
            LEFT.store(left, Ordering::Relaxed);
            LEAVES.fetch_add(1, Ordering::Relaxed);
            PROCESS.store(null, Ordering::Release);
        }
        true
    }

    /// True if the process has no trace and no longer needs to count losses.
    pub(crate) fn is_over(&self) -> bool {
        self.is_losing() && self.has_ended()
    }

    /// True if the process has not been left.
    pub(crate) fn is_current(&self) -> bool {
        core::ptr::eq(PROCESS.load(Ordering::Acquire), self)
    }
}

fn make_exit_key() {
    if EXIT_KEY.load(Ordering::Relaxed) != 0 {
        return;
    }
    let mut key = 0;
    // SAFETY: the handler stays mapped, since the library is never unloaded.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_exits)) } == 0 && key < MOST_KEY {
        EXIT_KEY.store(key + 1, Ordering::Relaxed);
    }
}

// Event classes.
impl Process {
    /// Assigns an id and a control byte to a class; disables the class if that fails. False if the
    /// process has been left instead.
    pub(crate) fn register(&self, class: &Class) -> bool {
        if self.is_losing() {
            self.register_as_lost(class);
            return true;
        }
        let registered = {
            let held = self.lock.lock();
            self.shared(&held).register(class)
        };
        match registered {
            Ok((enabled, id)) => class.registered(enabled, id, self.epoch()),
            Err(error) if self.leave(error) => return false,
            Err(_) => class.switch_off(),
        }
        true
    }

    /// Keeps the state that a class had in the process from which this process was forked.
    fn register_as_lost(&self, class: &Class) {
        let control = ControlMap::at(self.control.load(Ordering::Acquire));
        let is_on = control.is_some_and(|map| !map.has_ended() && map.decide(class.name()));
        if is_on {
            class.registered_as_lost(self.epoch());
        } else {
            class.switch_off();
        }
    }
}

impl Shared {
    /// Reads the session's rules again: rules added while the directory was hidden have not been
    /// written to this control file.
    fn renew_rules(&self, session: &Path, old: &Rules) -> Result<(), Errno> {
        let mut has_ended = false;
        let now = || {
            let config = read_config(session).ok()?;
            has_ended = config.ended;
            let mut now = Rules::new();
            config.all_rules(&mut now);
            (now.bytes() != old.bytes()).then_some(now)
        };
        let control = self.control.as_ref().ok_or(libc::ENOENT)?;
        control.renew(&below(&self.directory, b"/.control"), now)?;
        if has_ended {
            Err(libc::ECANCELED)
        } else {
            Ok(())
        }
    }

    #[inline(never)]
    fn register(&mut self, class: &Class) -> Result<(*mut u8, u16), Errno> {
        self.description.text.clear();
        class.fields(&mut self.description);
        let (name, fields) = (class.name(), &self.description.text);
        if fields.overflowed() {
            return Err(libc::E2BIG);
        }
        let hash = hash(name, fields.bytes());
        let control = self.control.as_ref().ok_or(libc::ENOENT)?;
        if control.has_ended() {
            return Err(libc::ECANCELED);
        }
        // SAFETY: the array has `MOST_CLASSES` elements.
        let hashes = unsafe { core::slice::from_raw_parts_mut(self.hashes, MOST_CLASSES) };
        if let Some(at) = hashes
            .iter()
            .take(self.classes.into())
            .position(|&known| known == hash)
        {
            return Ok((control.byte(at), at as u16 + FIRST_ID));
        }
        let kept = class
            .id_of(LEFT.load(Ordering::Relaxed) >> 32)
            .map(usize::from);
        let at = kept
            .and_then(|id| id.checked_sub(FIRST_ID.into()))
            .filter(|&at| at < self.classes.into() && hashes.get(at) == Some(&0))
            .unwrap_or(self.classes.into());
        let place = hashes.get_mut(at).ok_or(libc::E2BIG)?;
        let id = at as u16 + FIRST_ID;
        let metadata = below(&self.directory, b"/metadata");
        metadata::append(&metadata, &mut self.declaration, id, name, fields.bytes())?;
        // From here on the id is taken, even if a later step fails.
        self.classes = self.classes.max(at as u16 + 1);
        *place = hash;
        control.add(&below(&self.directory, b"/.control"), at, name)?;
        Ok((control.byte(at), id))
    }
}

/// Smaller ids belong to the preamble.
const FIRST_ID: u16 = 2;

/// FNV-1a over both.
fn hash(name: &[u8], fields: &[u8]) -> u64 {
    let bytes = name.iter().chain(&[0]).chain(fields);
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

// Buffers.
impl Process {
    /// Attaches a buffer to this thread; without one, returns the state in which all events are
    /// counted as lost.
    pub(crate) fn attach(&'static self) -> &'static ThreadState {
        let state = self.take_buffer().unwrap_or(&self.nowhere);
        ThreadState::set_current(state);
        if core::ptr::eq(state, &self.nowhere) {
            self.nowhere
                .without_buffer(self.epoch(), self.lost_counter());
        } else {
            watch_exit();
        }
        state
    }

    /// True for the state without a buffer.
    pub(crate) fn is_nowhere(&self, state: &ThreadState) -> bool {
        core::ptr::eq(state, &self.nowhere)
    }

    fn take_buffer(&self) -> Option<&'static ThreadState> {
        if self.is_losing() {
            return None;
        }
        let held = self.lock.lock();
        let shared = self.shared(&held);
        let tid = sys::thread_id();
        if shared.free.is_null() && shared.owned >= shared.scan_at {
            shared.reclaim(tid);
        }
        let mut state = shared.free;
        if state.is_null() {
            let bytes = size_of::<ThreadState>().next_multiple_of(4096);
            state = sys::private(bytes).ok()?.cast();
            // SAFETY: zeroed pages are an empty state; the lock is held.
            let buffer = unsafe { (*state).slow() };
            buffer.number = shared.buffers;
            buffer.next_all = shared.all;
            shared.all = state;
            shared.buffers += 1;
        } else {
            // SAFETY: states are never unmapped; a free state is accessed under the lock.
            shared.free = unsafe { (*state).slow() }.next_free;
        }
        shared.owned += 1;
        // SAFETY: as above; from here on the state belongs to this thread.
        let state = unsafe { &*state };
        unsafe { state.slow() }.owner = tid;
        state.set_watched(restart::is_watched() && shared.clock.line.span != 0);
        state.epoch.store(self.epoch(), Ordering::Relaxed);
        Some(state)
    }

    /// Takes a thread's buffer back.
    fn detach(&self, state: &ThreadState) {
        let held = self.lock.lock();
        self.shared(&held).release(state);
    }
}

impl Shared {
    fn release(&mut self, state: &ThreadState) {
        state.note_open();
        // SAFETY: its owner has ended, or is this thread with signals blocked.
        let buffer = unsafe { state.slow() };
        buffer.owner = 0;
        self.owned = self.owned.saturating_sub(1);
        // A full buffer of fixed size cannot be reused.
        if self.config.mode == Mode::Discard && state.is_full() {
            return;
        }
        state.shut();
        buffer.next_free = self.free;
        self.free = core::ptr::from_ref(state).cast_mut();
    }

    /// Takes back the buffers of threads that have ended without running their exit handlers: the
    /// handlers do not run for threads made by `clone`, and are unavailable in programs with many
    /// keys.
    fn reclaim(&mut self, own: u32) {
        let mut state = self.all;
        while !state.is_null() {
            // SAFETY: states are never unmapped; an ended thread uses none.
            let owned = unsafe { &*state };
            let buffer = unsafe { owned.slow() };
            let next = buffer.next_all;
            let owner = buffer.owner;
            if owner != 0 && (owner == own || !sys::is_thread_alive(owner)) {
                self.release(owned);
            }
            state = next;
        }
        self.scan_at = (2 * self.owned).max(64);
    }
}

fn watch_exit() {
    if let Some(key) = EXIT_KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: a key of this library; values of the first keys need no allocation.
        unsafe {
            libc::pthread_setspecific(key, PROCESS.load(Ordering::Relaxed).cast());
        }
    }
}

unsafe extern "C" fn thread_exits(_: *mut libc::c_void) {
    let _quiet = sys::Quiet::enter();
    let state = ThreadState::current();
    ThreadState::set_current(core::ptr::null());
    tls::set_mapping(0, 0);
    let process = PROCESS.load(Ordering::Acquire);
    if state.is_null() || process.is_null() {
        return;
    }
    // SAFETY: neither is ever unmapped.
    let (state, process) = unsafe { (&*state, &*process) };
    let epoch = state.epoch.load(Ordering::Relaxed);
    if epoch != 0 && epoch == process.epoch() && !process.is_nowhere(state) {
        process.detach(state);
    }
}
