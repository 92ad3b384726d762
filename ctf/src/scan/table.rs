//! The table that controls a scan.

use super::fast::Fast;
use crate::layout::StreamLayout;

/// Selects the event classes to scan for in the streams of a class.
#[derive(Debug)]
pub struct ScanTable {
    /// Tables of the fast path, if headers allow it.
    pub(super) fast: Option<Fast>,
    /// Whether each class is chosen, by class index.
    pub(super) chosen: Vec<bool>,
}

impl ScanTable {
    /// A table for a stream class; `choose` decides by class index whether event records are hits.
    pub fn new(layout: &StreamLayout, choose: impl Fn(usize) -> bool) -> Self {
        let chosen: Vec<bool> = (0..layout.events.len()).map(choose).collect();
        ScanTable {
            fast: Fast::new(layout, &chosen),
            chosen,
        }
    }
}
