//! The partial state of following each CPU alone, with the items that wait to be played in time
//! order.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Dictionaries, Texts};
use tracebraid_follow::{ByCpu, Lane, People};

use crate::call::Stretch;
use crate::item::{FileItem, FileStep};
use crate::queue::Queue;

/// State of each CPU alone after some chunks.
///
/// Apart from waiting items, its size is bounded by the number of CPUs, of threads, and of names
/// that waiting items or open calls refer to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Names and processes of threads, as far as known.
    pub people: People,
    pub(crate) lanes: ByCpu<Lane<Stretch, FileStep>>,
    /// Items that wait to be played.
    pub queue: Queue,
    /// Texts of the current chunk.
    pub(crate) texts: ChunkTexts,
    /// Texts of merged chunks.
    pub dictionaries: Dictionaries,
    /// Number of entries and exits of unknown threads.
    pub nobodys: u64,
    /// The state of the first chunk: no events are earlier.
    pub(crate) is_first: bool,
    /// Position of the last switched-to thread in `people`, for a faster lookup.
    #[serde(skip)]
    pub(crate) near: usize,
}

/// Texts of a chunk, with a tag that distinguishes them from those of other chunks.
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

    /// Moves the texts of the current chunk to those of merged chunks.
    pub fn keep_texts(&mut self) {
        let texts = std::mem::take(&mut self.texts);
        self.dictionaries.add(texts.0, self.queue.items.latest());
    }

    /// Drops texts that only items before `watermark` (nanoseconds from the origin) refer to.
    pub fn forget_texts(&mut self, watermark: i64) {
        let mut named = Vec::new();
        for (_, lane) in self.lanes.iter_mut() {
            let open = lane.now().and_then(|now| now.calls.open());
            named.extend(open.and_then(|open| open.text.some()));
        }
        self.dictionaries.retain(watermark, &named);
    }

    /// The earliest time at which a descriptor can still be looked up after all items before
    /// `watermark` were cut out: just before the beginning of the first call that is open then or
    /// ends later.
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
        // A descriptor is closed at the beginning of its call, but the call refers to the file
        // before that.
        since.saturating_sub(1)
    }
}
