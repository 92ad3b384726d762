//! Fields that are not shown, because they concern the reader of the trace and not its user.
//!
//! These are integers that have a role or are mapped to a clock, unless a length or a selector
//! refers to them, and fields that contain only such integers.

use tracebraid_ctf::layout::TraceLayout;
use tracebraid_ctf::layout::node::{Node, NodeId, NodeKind};
use tracebraid_ctf::layout::tree::{Part, Tree};
use tracebraid_ctf::schema::Roles;

#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// Indexed by the node's number.
    nodes: Box<[bool]>,
}

impl Hidden {
    pub(crate) fn of(layout: &TraceLayout) -> Self {
        let mut nodes = vec![false; layout.nodes as usize];
        for stream in &layout.streams {
            mark(&stream.packet_context, &mut nodes);
            mark(&stream.common_context, &mut nodes);
            for event in &stream.events {
                mark(&event.specific_context, &mut nodes);
                mark(&event.payload, &mut nodes);
            }
        }
        Hidden {
            nodes: nodes.into(),
        }
    }

    /// Hides a further field, which has no parts.
    pub(crate) fn hide(&mut self, field: NodeId) {
        if let Some(place) = self.nodes.get_mut(field.0 as usize) {
            *place = true;
        }
    }

    /// Whether the field is hidden. (Headers are never shown.)
    pub(crate) fn hides(&self, node: &Node) -> bool {
        is_marked(&self.nodes, node.id)
    }
}

fn is_marked(nodes: &[bool], id: NodeId) -> bool {
    nodes.get(id.0 as usize).copied().unwrap_or(false)
}

/// Marks the hidden fields of a scope. Parts come before the fields that contain them.
fn mark(scope: &Tree, nodes: &mut [bool]) {
    for part in scope.all().rev() {
        let is_hidden = is_hidden(part, nodes);
        if let Some(place) = nodes.get_mut(part.id.0 as usize) {
            *place = is_hidden;
        }
    }
}

fn is_hidden(part: Part<'_>, nodes: &[bool]) -> bool {
    let is_uuid = part.roles.contains(Roles::METADATA_UUID);
    let all_parts = || part.parts().all(|part| is_marked(nodes, part.id));
    match &part.kind {
        NodeKind::Struct(_) | NodeKind::Variant(_) => !part.inside().is_empty() && all_parts(),
        NodeKind::Array(_) => is_uuid || all_parts(),
        NodeKind::Blob(_) => is_uuid,
        NodeKind::Int(_, class) | NodeKind::VarInt(class) | NodeKind::WideInt(class) => {
            (class.clock.is_some() || !class.roles.is_empty()) && part.saves.is_empty()
        }
        _ => false,
    }
}
