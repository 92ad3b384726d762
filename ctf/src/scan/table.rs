//! What to scan for.

use super::fast::Fast;
use crate::layout::StreamLayout;

/// What to scan for in streams of one class.
#[derive(Debug)]
pub struct ScanTable {
    /// The fast way, where headers allow it.
    pub(super) fast: Option<Fast>,
    /// By class index: chosen.
    pub(super) chosen: Vec<bool>,
}

impl ScanTable {
    /// A table for a stream class; `choose` tells by class index what is a hit.
    pub fn new(layout: &StreamLayout, choose: impl Fn(usize) -> bool) -> Self {
        let chosen: Vec<bool> = (0..layout.events.len()).map(choose).collect();
        ScanTable {
            fast: Fast::new(layout, &chosen),
            chosen,
        }
    }
}
