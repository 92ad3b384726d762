//! Tables that come with a report whose statistics have a form of their own.

use serde::ser::{Serialize, SerializeMap, Serializer};

use tracebraid_follow::Selection;

use crate::Section;
use tracebraid_statistics::Ranges;

/// Tables that come with a report whose statistics have a form of their own: as JSON a map of lists, by
/// their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    /// The tables.
    pub sections: Vec<Section>,
    /// For a second pass; not shown.
    pub ranges: Ranges,
}

impl Lists {
    /// Those of views that are asked for.
    pub fn new(selection: &Selection, mut sections: Vec<Section>, ranges: Ranges) -> Lists {
        sections.retain(|section| selection.views.contains(&section.view));
        Lists { sections, ranges }
    }

    /// The table with that key.
    pub fn section(&self, key: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.key == key)
    }

    /// Keeps only the first rows of tables that are as long as there are threads and the like.
    pub fn truncate(&mut self, rows: usize) {
        let long = self.sections.iter_mut().filter(|section| section.is_long);
        long.for_each(|section| section.rows.truncate(rows));
    }
}

impl Serialize for Lists {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.sections.len()))?;
        for section in &self.sections {
            map.serialize_entry(section.key, section)?;
        }
        map.end()
    }
}
