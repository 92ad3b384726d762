//! Items that wait to be played.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::Act;

use crate::item::FileItem;
use tracebraid_follow::{CpuKey, Items, Table, ThreadKey};

/// Something that decides which thread has which table; nothing: that cannot be said.
pub type TableAct = (i32, Option<Act>);

/// Items that wait to be played in the order of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Queue {
    /// All of them.
    pub items: Items<FileItem>,
    /// Of these, what decides which thread has which table, in the same order.
    acts: Items<TableAct>,
    /// Threads that may have changed what is in tables.
    #[serde(skip)]
    touched: Table<bool>,
}

impl Queue {
    /// Something happens on a CPU.
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

    /// Adds what comes later on each CPU.
    pub(crate) fn append(&mut self, later: Queue) {
        self.acts.hold(&self.items);
        self.acts.append(later.acts);
        self.items.append(later.items);
    }

    /// Takes out what happens before a time.
    pub fn cut(&mut self, until: i64) -> (Items<FileItem>, Items<TableAct>) {
        (self.items.cut(until), self.acts.cut(until))
    }

    /// Nobody looks ahead.
    pub(crate) fn forget_acts(&mut self) {
        self.acts = Items::default();
    }
}
