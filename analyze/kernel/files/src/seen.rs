//! The partial state of following each CPU alone, with the items that wait to be played in the
//! order of time.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Dictionaries, Texts};
use tracebraid_follow::{ByCpu, Lane, People};

use crate::call::Stretch;
use crate::item::{FileItem, FileStep};
use crate::queue::Queue;

/// State after some chunks, of each CPU alone.
///
/// Beside what waits to be played its size is bounded by the number of CPUs, of threads, and of
/// names that items which wait or open calls refer to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Threads, as far as they have been seen.
    pub people: People,
    pub(crate) lanes: ByCpu<Lane<Stretch, FileStep>>,
    /// Items that wait to be played.
    pub queue: Queue,
    /// Texts of the chunk that is being read.
    pub(crate) texts: ChunkTexts,
    /// Texts of chunks that were merged.
    pub dictionaries: Dictionaries,
    /// Number of entries and exits of unknown threads.
    pub nobodys: u64,
    /// Nothing came before.
    pub(crate) is_first: bool,
    /// Where the thread that was switched to last is among the people.
    #[serde(skip)]
    pub(crate) near: usize,
}

/// Texts of a chunk, told apart from those of others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChunkTexts(pub(crate) Texts);

impl Default for ChunkTexts {
    fn default() -> Self {
        ChunkTexts(Texts::tagged())
    }
}

impl Seen {
    /// The state before the first chunk.
    pub fn first() -> Seen {
        Seen {
            is_first: true,
            ..Seen::default()
        }
    }

    /// Texts of the chunk that was read last become those of a merged one.
    pub fn keep_texts(&mut self) {
        let texts = std::mem::take(&mut self.texts);
        self.dictionaries.add(texts.0, self.queue.items.latest());
    }

    /// Forgets texts that only items earlier than that time refer to (nanoseconds from the origin).
    pub fn forget_texts(&mut self, watermark: i64) {
        let mut named = Vec::new();
        for (_, lane) in self.lanes.iter_mut() {
            let open = lane.now().and_then(|now| now.calls.open());
            named.extend(open.and_then(|open| open.text.some()));
        }
        self.dictionaries.retain(watermark, &named);
    }

    /// The earliest time of which the state of a descriptor can still be asked for, when all items
    /// up to `watermark` were cut out: just before the first call began that is open then or ends
    /// later.
    pub fn asked_since(&mut self, watermark: i64) -> i64 {
        let mut since = watermark;
        for (_, lane) in self.lanes.iter_mut() {
            let open = lane.now().and_then(|now| now.calls.open());
            since = open.map_or(since, |open| since.min(open.open.time));
        }
        for mut items in self.queue.items.by_cpu() {
            let first = items.find_map(|item| match item {
                FileItem::Call(call) => Some(call.begin),
                FileItem::Made(made) => Some(made.entered.open.time),
                FileItem::Leaves(_, entered) => Some(entered.open.time),
                _ => None,
            });
            since = first.map_or(since, |first| since.min(first));
        }
        // A descriptor is closed when its call begins, but is what it closes.
        since.saturating_sub(1)
    }
}
