//! Memory for tasks, teams, task groups and dependences: nodes of one type, reused by all threads,
//! and never returned to the kernel, so that a reference to a node is always to a node.
//!
//! Each LWP has a cache; caches exchange batches through a shared list, because a program may create
//! all its tasks on one thread and run them on others.
//!
//! Safety: nodes consist of atomics, for which zeroed memory is valid, and are only shared.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::mem::size_of;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// A type that consists of atomics only, of which all bytes may be 0.
///
/// # Safety
/// All fields must be atomics, since threads share items without locks.
pub(crate) unsafe trait Node: Sync + Sized + 'static {
    /// The link to the next free node.
    fn link(&self) -> &AtomicPtr<Self>;
    /// The list that caches share.
    fn shared() -> &'static Shared<Self>;
}

/// Free nodes, linked.
struct List<T: 'static> {
    first: Option<&'static T>,
    count: usize,
}

/// Free nodes that no cache has.
pub(crate) struct Shared<T: 'static>(Mutex<List<T>>);

impl<T> Shared<T> {
    pub(crate) const fn new() -> Shared<T> {
        Shared(Mutex::new(List {
            first: None,
            count: 0,
        }))
    }
}

/// Free nodes of one LWP.
pub(crate) struct Cache<T: 'static> {
    first: Cell<Option<&'static T>>,
    count: Cell<usize>,
}

/// Number of nodes that caches exchange.
const BATCH: usize = 256;
/// Bytes taken from the kernel at a time.
const CHUNK: usize = 64 << 10;

impl<T: Node> Cache<T> {
    pub(crate) const fn new() -> Cache<T> {
        Cache {
            first: Cell::new(None),
            count: Cell::new(0),
        }
    }

    /// A node with the values that it had when it was freed; `None` without memory.
    pub(crate) fn take(&self) -> Option<&'static T> {
        if self.first.get().is_none() {
            self.fill();
        }
        let node = self.first.get()?;
        self.first.set(next(node));
        self.count.set(self.count.get() - 1);
        Some(node)
    }

    pub(crate) fn free(&self, node: &'static T) {
        let first = self.first.get();
        node.link().store(pointer(first), Ordering::Relaxed);
        self.first.set(Some(node));
        self.count.set(self.count.get() + 1);
        if self.count.get() > 2 * BATCH {
            self.share(BATCH);
        }
    }

    /// Moves at most `count` nodes to the shared list.
    pub(crate) fn share(&self, count: usize) {
        let mut last = None;
        let mut moved = 0;
        let first = self.first.get();
        let mut node = first;
        while let Some(this) = node.filter(|_| moved < count) {
            last = Some(this);
            node = next(this);
            moved += 1;
        }
        let Some(last) = last else { return };
        self.first.set(node);
        self.count.set(self.count.get() - moved);
        let mut list = T::shared().0.lock().unwrap_or_else(PoisonError::into_inner);
        last.link().store(pointer(list.first), Ordering::Relaxed);
        list.first = first;
        list.count += moved;
    }

    fn fill(&self) {
        let mut list = T::shared().0.lock().unwrap_or_else(PoisonError::into_inner);
        self.first.set(list.first.take());
        self.count.set(core::mem::take(&mut list.count));
        drop(list);
        if self.first.get().is_none() {
            self.map();
        }
    }

    fn map(&self) {
        let (read_write, private) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: new memory, which the kernel has zeroed, aligned to a page.
        let memory = unsafe { libc::mmap(ptr::null_mut(), CHUNK, read_write, private, -1, 0) };
        if memory == libc::MAP_FAILED {
            return;
        }
        let nodes: *mut T = memory.cast();
        for index in 0..CHUNK / size_of::<T>() {
            // SAFETY: within the mapping, which is never unmapped; see the module.
            self.free_unshared(unsafe { &*nodes.add(index) });
        }
    }

    fn free_unshared(&self, node: &'static T) {
        node.link()
            .store(pointer(self.first.get()), Ordering::Relaxed);
        self.first.set(Some(node));
        self.count.set(self.count.get() + 1);
    }
}

fn pointer<T>(node: Option<&'static T>) -> *mut T {
    node.map_or(ptr::null_mut(), |node| ptr::from_ref(node).cast_mut())
}

fn next<T: Node>(node: &'static T) -> Option<&'static T> {
    load(node.link())
}

/// The node that a link names.
pub(crate) fn load<T: Node>(link: &AtomicPtr<T>) -> Option<&'static T> {
    // SAFETY: links contain null or pointers to nodes, which are never unmapped.
    unsafe { link.load(Ordering::Acquire).as_ref() }
}

/// Makes a link name a node.
pub(crate) fn store<T: Node>(link: &AtomicPtr<T>, node: Option<&'static T>) {
    link.store(pointer(node), Ordering::Release);
}

/// Adds a node to a list that any thread may extend, and none shortens.
pub(crate) fn push<T: Node>(head: &AtomicPtr<T>, node: &'static T, link: &AtomicPtr<T>) {
    let mut first = head.load(Ordering::Relaxed);
    loop {
        link.store(first, Ordering::Relaxed);
        let node = ptr::from_ref(node).cast_mut();
        match head.compare_exchange_weak(first, node, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// The node in a word that the runtime keeps for this library.
///
/// # Safety
/// The word is null, or has been written by [`put`] with the same type; it may be absent.
pub(crate) unsafe fn get<T: Node>(data: *const crate::abi::Data) -> Option<&'static T> {
    // SAFETY: guaranteed by the caller.
    unsafe { data.as_ref()?.pointer.cast::<T>().as_ref() }
}

/// Writes a node into a word that the runtime keeps for this library.
///
/// # Safety
/// The runtime has passed the word to a callback, which has not returned; it may be absent.
pub(crate) unsafe fn put<T: Node>(data: *mut crate::abi::Data, node: Option<&'static T>) {
    // SAFETY: guaranteed by the caller.
    if let Some(data) = unsafe { data.as_mut() } {
        data.pointer = pointer(node).cast();
    }
}
