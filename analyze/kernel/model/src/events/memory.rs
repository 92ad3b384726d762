//! Memory: pages, objects, faults, the page cache, writing back, reclaiming.

use crate::events::Edge;
use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// What happens to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageStep {
    /// They are taken.
    Alloc,
    /// They are given back.
    Free,
    /// They are given back with others; always one.
    FreeBatched,
}

/// Pages are taken or given back.
#[derive(Clone, Debug)]
pub struct Page {
    /// Which of these.
    pub step: PageStep,
    /// Number of the first page frame, or the address of its structure.
    pub page: Option<IntField>,
    /// Their number is two to the power of this; one page if there is no such field.
    pub order: Option<IntField>,
}

impl Page {
    pub(crate) fn find(finder: &Finder<'_>, step: PageStep) -> Option<Page> {
        Some(Page {
            step,
            page: Some(finder.int(&["pfn", "page"])?),
            order: finder.int(&["order"]),
        })
    }
}

/// An object of the kernel is taken or given back.
#[derive(Clone, Debug)]
pub struct Slab {
    /// Taken (begin) or given back (end).
    pub edge: Edge,
    /// True if from a cache of equal objects.
    pub is_cache: bool,
    /// Its address.
    pub pointer: IntField,
    /// Bytes that were asked for.
    pub requested: Option<IntField>,
    /// Bytes that were taken.
    pub allocated: Option<IntField>,
}

impl Slab {
    pub(crate) fn find(finder: &Finder<'_>, edge: Edge, is_cache: bool) -> Option<Box<Slab>> {
        Some(Box::new(Slab {
            edge,
            is_cache,
            pointer: finder.int(&["ptr"])?,
            requested: finder.int(&["bytes_req"]),
            allocated: finder.int(&["bytes_alloc"]),
        }))
    }
}

/// A page that is not there, or not for this.
#[derive(Clone, Debug)]
pub struct PageFault {
    /// True if a program ran, false if the kernel did; `None` if the tracer does not say.
    pub user: Option<bool>,
    /// Beginning; end with older lttng-modules only.
    pub edge: Edge,
    /// What was to be reached.
    pub address: Option<IntField>,
    /// The instruction.
    pub instruction: Option<IntField>,
    /// The processor's bits: 1 protection, 2 write, 4 user, 16 fetch of an instruction.
    pub error: Option<IntField>,
}

impl PageFault {
    pub(crate) fn find(
        finder: &Finder<'_>,
        user: Option<bool>,
        edge: Edge,
    ) -> Option<Box<PageFault>> {
        Some(Box::new(PageFault {
            user,
            edge,
            address: finder.int(&["address"]),
            instruction: finder.int(&["ip"]),
            error: finder.int(&["error_code", "flags"]),
        }))
    }
}

/// A page enters the page cache or leaves it.
#[derive(Clone, Debug)]
pub struct PageCache {
    /// Enters (begin) or leaves (end).
    pub edge: Edge,
    /// Device of the file.
    pub device: Option<IntField>,
    /// The file.
    pub inode: Option<IntField>,
    /// Which of its pages, or its place in bytes.
    pub index: Option<IntField>,
}

impl PageCache {
    pub(crate) fn find(finder: &Finder<'_>, edge: Edge) -> Option<PageCache> {
        Some(PageCache {
            edge,
            device: finder.int(&["s_dev"]),
            inode: Some(finder.int(&["i_ino"])?),
            index: finder.int(&["index"]),
        })
    }
}

/// What happens in writing back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WritebackStep {
    /// A page becomes dirty.
    DirtyPage,
    /// A file becomes dirty.
    DirtyInode,
    /// Work is asked for.
    Queue,
    /// Work begins.
    Start,
    /// Work goes on.
    Written,
    /// A file's pages are being written.
    SingleInode,
    /// A thread that makes pages dirty is slowed down.
    BalanceDirtyPages,
    /// Waits for a congested device.
    Wait,
}

/// Dirty pages are written back.
#[derive(Clone, Debug)]
pub struct Writeback {
    /// What happens.
    pub step: WritebackStep,
    /// Name of the device.
    pub device: Option<TextField>,
    /// The file.
    pub inode: Option<IntField>,
    /// Number of pages.
    pub pages: Option<IntField>,
    /// How long the thread sleeps, in milliseconds.
    pub pause: Option<IntField>,
}

impl Writeback {
    pub(crate) fn find(finder: &Finder<'_>, step: WritebackStep) -> Option<Box<Writeback>> {
        Some(Box::new(Writeback {
            step,
            device: finder.text(&["name", "bdi"]),
            inode: finder.int(&["ino"]),
            pages: finder.int(&["nr_pages", "pages", "wrote"]),
            pause: finder.int(&["pause"]),
        }))
    }
}

/// What happens in reclaiming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReclaimStep {
    /// A thread that wants memory begins to reclaim some itself, or has done so.
    Direct(Edge),
    /// The thread for it wakes, or sleeps.
    Kswapd(Edge),
    /// Pages are moved together, begin and end.
    Compaction(Edge),
    /// A process is killed for its memory.
    Kill,
}

/// Memory is reclaimed.
#[derive(Clone, Debug)]
pub struct Reclaim {
    /// What happens.
    pub step: ReclaimStep,
    /// Two to the power of this is the number of pages that are wanted.
    pub order: Option<IntField>,
    /// Number of pages that were reclaimed.
    pub reclaimed: Option<IntField>,
    /// Process that is killed.
    pub pid: Option<IntField>,
}

impl Reclaim {
    pub(crate) fn find(finder: &Finder<'_>, step: ReclaimStep) -> Option<Box<Reclaim>> {
        Some(Box::new(Reclaim {
            step,
            order: finder.int(&["order"]),
            reclaimed: finder.int(&["nr_reclaimed"]),
            pid: finder.int(&["pid"]),
        }))
    }
}
