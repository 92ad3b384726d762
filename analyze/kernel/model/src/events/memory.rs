//! Memory: pages, kernel objects, faults, the page cache, writeback, reclaim.

use crate::events::Edge;
use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// Step of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageStep {
    /// The pages are allocated.
    Alloc,
    /// The pages are freed.
    Free,
    /// A single page is freed in a batch.
    FreeBatched,
}

/// Pages are allocated or freed.
#[derive(Clone, Debug)]
pub struct Page {
    /// Step of the pages.
    pub step: PageStep,
    /// Number of the first page frame, or the address of its structure.
    pub page: Option<IntField>,
    /// The number of pages is two to the power of this; one page if there is no such field.
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

/// A kernel object is allocated or freed.
#[derive(Clone, Debug)]
pub struct Slab {
    /// Allocated (begin) or freed (end).
    pub edge: Edge,
    /// True if the object is from a cache of objects of one size.
    pub is_cache: bool,
    /// Address of the object.
    pub pointer: IntField,
    /// Requested size in bytes.
    pub requested: Option<IntField>,
    /// Allocated size in bytes.
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

/// A page fault: the page is absent, or the access is not permitted.
#[derive(Clone, Debug)]
pub struct PageFault {
    /// True in user space, false in the kernel; `None` if the tracer does not record it.
    pub user: Option<bool>,
    /// Begin; end only with older lttng-modules.
    pub edge: Edge,
    /// Address of the access.
    pub address: Option<IntField>,
    /// Address of the instruction.
    pub instruction: Option<IntField>,
    /// Error code of the processor: 1 protection, 2 write, 4 user, 16 instruction fetch.
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
    /// Device number of the file.
    pub device: Option<IntField>,
    /// Inode number of the file.
    pub inode: Option<IntField>,
    /// Index of the page in the file, or its offset in bytes.
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

/// Step of writeback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WritebackStep {
    /// A page becomes dirty.
    DirtyPage,
    /// A file becomes dirty.
    DirtyInode,
    /// Work is queued.
    Queue,
    /// Work begins.
    Start,
    /// Work continues.
    Written,
    /// The pages of a file are being written.
    SingleInode,
    /// A thread that dirties pages is throttled.
    BalanceDirtyPages,
    /// A wait for a congested device.
    Wait,
}

/// Dirty pages are written back.
#[derive(Clone, Debug)]
pub struct Writeback {
    /// Step of writeback.
    pub step: WritebackStep,
    /// Name of the device.
    pub device: Option<TextField>,
    /// Inode number of the file.
    pub inode: Option<IntField>,
    /// Number of pages.
    pub pages: Option<IntField>,
    /// Time for which the thread is throttled, in milliseconds.
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

/// Step of memory reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReclaimStep {
    /// A thread that allocates memory begins or ends reclaiming memory itself.
    Direct(Edge),
    /// The reclaim thread (kswapd) wakes or sleeps.
    Kswapd(Edge),
    /// Memory compaction begins or ends.
    Compaction(Edge),
    /// A process is killed to free its memory.
    Kill,
}

/// Memory is reclaimed.
#[derive(Clone, Debug)]
pub struct Reclaim {
    /// Step of reclaim.
    pub step: ReclaimStep,
    /// The number of requested pages is two to the power of this.
    pub order: Option<IntField>,
    /// Number of reclaimed pages.
    pub reclaimed: Option<IntField>,
    /// Id of the killed process.
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
