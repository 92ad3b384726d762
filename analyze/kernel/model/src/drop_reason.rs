//! Reasons for which the kernel drops packets.

use tracebraid_ctf::layout::FieldRef;
use tracebraid_ctf::layout::node::NodeKind;

use crate::field::{Body, IntField};

/// The field with the reason of a drop. Since Linux 5.17, code that drops a packet may give a
/// reason. A drop without a reason is often not a loss, but the end of a packet that is no longer
/// needed.
#[derive(Clone, Debug)]
pub struct DropReason {
    field: IntField,
    unspecified: i64,
}

impl DropReason {
    /// `unspecified` is the greatest number that is not a reason, used if the field's labels do not
    /// contain it.
    pub(crate) fn new(field: FieldRef, unspecified: i64) -> Option<DropReason> {
        let unspecified = labelled(&field).unwrap_or(unspecified);
        let field = IntField::new(field)?;
        Some(DropReason { field, unspecified })
    }

    /// True if the record contains a reason.
    pub fn is_told(&self, body: &mut Body<'_, '_>) -> bool {
        self.field
            .get(body)
            .is_some_and(|reason| reason > self.unspecified)
    }
}

/// The number that LTTng's labels assign to drops without a reason.
fn labelled(field: &FieldRef) -> Option<i64> {
    let NodeKind::Int(_, class) = field.kind() else {
        return None;
    };
    let label = class
        .mappings
        .iter()
        .find(|mapping| mapping.label == "NOT_SPECIFIED")?;
    i64::try_from(label.ranges.first()?.upper).ok()
}

/// The greatest number that is not a reason, by the release of the kernel: the numbers for "not
/// dropped", "consumed" and "not specified" were inserted in different releases. An unknown release
/// counts as the newest.
pub(crate) fn unspecified(release: Option<(u32, u32)>) -> i64 {
    match release {
        Some(release) if release < (5, 18) => 0,
        Some(release) if release < (6, 3) => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::unspecified;

    #[test]
    fn reasons_begin_behind_what_is_none() {
        assert_eq!(unspecified(Some((5, 17))), 0);
        assert_eq!(unspecified(Some((5, 18))), 1);
        assert_eq!(unspecified(Some((6, 2))), 1);
        assert_eq!(unspecified(Some((6, 12))), 2);
        assert_eq!(unspecified(None), 2);
    }
}
