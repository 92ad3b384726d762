//! Whether the kernel tells why it drops a packet.

use tracebraid_ctf::layout::FieldRef;
use tracebraid_ctf::layout::node::NodeKind;

use crate::field::{Body, IntField};

/// The field that tells why a packet was dropped. Since Linux 5.17 whoever drops a packet may say
/// why; what nobody says a reason of is often no loss at all, but a packet that is not needed any
/// more.
#[derive(Clone, Debug)]
pub struct DropReason {
    field: IntField,
    unspecified: i64,
}

impl DropReason {
    /// `unspecified` is the greatest number that is no reason, where the field's labels do not tell
    /// it.
    pub(crate) fn new(field: FieldRef, unspecified: i64) -> Option<DropReason> {
        let unspecified = labelled(&field).unwrap_or(unspecified);
        let field = IntField::new(field)?;
        Some(DropReason { field, unspecified })
    }

    /// True if a reason is told.
    pub fn is_told(&self, body: &mut Body<'_, '_>) -> bool {
        self.field
            .get(body)
            .is_some_and(|reason| reason > self.unspecified)
    }
}

/// The number that LTTng's labels give to what has no reason.
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

/// The greatest number that is no reason, by the release of the kernel: what stands for "not
/// dropped", "used up" and "not specified" was put before the reasons one by one. That of the
/// newest for one that is not known.
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
