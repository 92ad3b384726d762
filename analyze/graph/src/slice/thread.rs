//! A thread within a slice of time.

use tracebraid_follow::ThreadKey;
use tracebraid_kernel_model::Comm;
use tracebraid_threads::{CellNews, SliceCell, ThreadDirectory};

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, State, Stretch, Work};
use crate::slice::born::Born;
use crate::slice::piece::LinePiece;

/// A thread of a slice.
#[derive(Clone, Debug)]
pub(crate) struct SliceThread {
    is_met: bool,
    pub(crate) cell: SliceCell<Wake>,
    /// Local number, if assigned.
    pub(crate) actor: Option<ActorId>,
    pub(crate) line: LinePiece,
    called: Comm,
    names: Vec<(i64, Comm)>,
    pid: Option<i32>,
    works: Vec<Work>,
    /// Set if the thread was created in the slice, and no step has added its state yet.
    pub(crate) born: Option<Born>,
}

/// State of a thread in a slice, for composing.
#[derive(Debug)]
pub(crate) struct ThreadNews {
    pub(crate) cell: Option<CellNews<Wake>>,
    pub(crate) line: LinePiece,
    pub(crate) names: Vec<(i64, Comm)>,
    pub(crate) pid: Option<i32>,
    pub(crate) works: Vec<Work>,
}

impl ThreadNews {
    /// True if the thread belongs into the graph.
    pub(crate) fn is_of_graph(&self) -> bool {
        let others = [
            self.names.is_empty(),
            self.works.is_empty(),
            self.line.is_empty(),
        ];
        self.pid.is_some() || others != [true; 3]
    }
}

impl SliceThread {
    /// Initializes the thread on first use; `begin`: no item of the slice is earlier, in
    /// nanoseconds from the origin.
    #[inline(always)]
    pub(crate) fn meet(&mut self, key: ThreadKey, begin: i64, directory: &ThreadDirectory) {
        if !self.is_met {
            let facts = directory.get(key);
            self.cell = SliceCell::new(begin, !facts.is_active);
            self.is_met = true;
        }
    }

    /// Moves a new thread, except its work, to its entry in the graph. Later changes follow that
    /// entry.
    pub(crate) fn settle(&mut self, actor: &mut Actor, spare: &mut Vec<Vec<Stretch>>) {
        actor.line = self.line.take_whole(spare);
        actor.names = std::mem::take(&mut self.names);
        actor.names.shrink_to_fit();
        actor.called = self.called;
        actor.pid = self.pid.take();
    }

    /// Takes the work that no step contains yet.
    pub(crate) fn take_works(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.works)
    }

    /// The id belongs to another thread from now on; composing assigns its number.
    pub(crate) fn is_another(&mut self, time: i64, now: Option<State>) {
        self.actor = None;
        self.called = Comm::default();
        self.line = LinePiece::after(time, now);
    }

    /// See [`Actor::is_called`](crate::graph::Actor::is_called).
    #[inline]
    pub(crate) fn is_called(&mut self, time: i64, name: Comm) {
        if self.called != name && name != Comm::default() {
            self.called = name;
            // Usually it is the only name.
            if self.names.is_empty() {
                self.names.reserve_exact(1);
            }
            self.names.push((time, name));
        }
    }

    /// The same for a name that composing adds.
    pub(crate) fn was_called(&mut self, name: Comm) {
        if name != Comm::default() {
            self.called = name;
        }
    }

    pub(crate) fn belongs(&mut self, pid: i32) {
        self.pid = Some(pid);
    }

    pub(crate) fn works(&mut self, work: Work) {
        self.works.push(work);
    }

    fn has_news(&self) -> bool {
        let others = [
            self.names.is_empty(),
            self.works.is_empty(),
            self.line.is_empty(),
        ];
        self.pid.is_some() || others != [true; 3]
    }

    /// Changes since the last call, if any.
    pub(crate) fn news(&mut self) -> Option<ThreadNews> {
        let cell = self.cell.news();
        (cell.is_some() || self.has_news()).then(|| ThreadNews {
            cell,
            line: self.line.take(),
            names: std::mem::take(&mut self.names),
            pid: self.pid.take(),
            works: std::mem::take(&mut self.works),
        })
    }

    /// The same at the end of the slice.
    pub(crate) fn into_news(self) -> Option<ThreadNews> {
        let has_news = self.has_news();
        let cell = self.cell.into_news();
        (cell.is_some() || has_news).then_some(ThreadNews {
            cell,
            line: self.line,
            names: self.names,
            pid: self.pid,
            works: self.works,
        })
    }
}

impl Default for SliceThread {
    fn default() -> Self {
        SliceThread {
            is_met: false,
            cell: SliceCell::new(i64::MIN, false),
            actor: None,
            line: LinePiece::default(),
            called: Comm::default(),
            names: Vec::new(),
            pid: None,
            works: Vec::new(),
            born: None,
        }
    }
}
