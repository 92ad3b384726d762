//! Items that wait to be played.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::Act;

use crate::item::FileItem;
use tracebraid_follow::{CpuKey, Items, Table, ThreadKey};

/// Thread and act that decides its table; `None` if the act is unknown.
pub type TableAct = (i32, Option<Act>);

/// Items that wait to be played in time order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Queue {
    /// All items.
    pub items: Items<FileItem>,
    /// The acts of the items that decide the tables of threads, in the same order.
    acts: Items<TableAct>,
    /// Threads that may have changed the content of their tables.
    #[serde(skip)]
    touched: Table<bool>,
}

impl Queue {
    /// Adds an item of a CPU.
    #[inline(always)]
    pub(crate) fn push(&mut self, cpu: CpuKey, time: i64, item: FileItem) {
        if !matches!(item, FileItem::Call(_) | FileItem::Enters(_)) {
            self.look_ahead(cpu, time, &item);
        }
        self.items.push(cpu, time, item);
    }

    fn look_ahead(&mut self, cpu: CpuKey, time: i64, item: &FileItem) {
        let trace = cpu.trace;
        let mut is_first = |tid: &i32| {
            let tid = *tid;
            !std::mem::replace(self.touched.get(ThreadKey { trace, tid }), true)
        };
        let touch = item.touches().filter(&mut is_first);
        let touch = touch.map(|tid| (tid, Some(Act::Touch)));
        let acts = touch.into_iter().chain(item.ahead());
        for act in acts {
            let time = self.items.held(cpu, time);
            self.acts.push(cpu, time, act);
        }
    }

    /// Appends the later items of each CPU.
    pub(crate) fn append(&mut self, later: Queue) {
        self.acts.hold(&self.items);
        self.acts.append(later.acts);
        self.items.append(later.items);
    }

    /// Takes out the items before `until`.
    pub fn cut(&mut self, until: i64) -> (Items<FileItem>, Items<TableAct>) {
        (self.items.cut(until), self.acts.cut(until))
    }

    /// Drops the acts, for analyses that do not look ahead.
    pub(crate) fn forget_acts(&mut self) {
        self.acts = Items::default();
    }
}
