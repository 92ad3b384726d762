//! Names of threads, as far as the records up to now tell them.

use std::collections::HashMap;
use std::sync::Arc;

/// Names by thread.
#[derive(Debug, Default)]
pub(crate) struct Threads(HashMap<i32, Arc<[u8]>>);

impl Threads {
    /// A thread has got a name.
    pub(crate) fn name(&mut self, tid: i32, name: &[u8]) {
        self.0.insert(tid, name.into());
    }

    /// A thread begins, with the name of the one that made it.
    pub(crate) fn fork(&mut self, tid: i32, parent: i32) {
        if let Some(name) = self.0.get(&parent).cloned()
            && tid != parent
        {
            self.0.insert(tid, name);
        }
    }

    /// Its name; empty if nobody knows. The idle threads have one that perf gives them.
    pub(crate) fn of(&self, tid: i32) -> Arc<[u8]> {
        match (self.0.get(&tid), tid) {
            (_, 0) => b"swapper"[..].into(),
            (Some(name), _) => name.clone(),
            (None, _) => Arc::default(),
        }
    }
}
