//! Fields that are not shown: they tell the reader of the trace, not its user.
//!
//! These are the integers with a role or mapped to a clock, unless a length or a selector refers
//! to them, and what consists of nothing else.

use std::collections::HashSet;
use std::rc::Rc;

use tracebraid_ctf::layout::node::{Node, NodeId, NodeKind};
use tracebraid_ctf::layout::{StreamLayout, TraceLayout};
use tracebraid_ctf::schema::{EventClass, FieldClass, FieldLocation, Roles, Scope, StreamClass};

/// Knows which fields of a trace are not shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hidden {
    /// Those that would be hidden if nothing referred to them.
    kept: Rc<HashSet<NodeId>>,
}

impl Hidden {
    /// For that trace.
    pub(crate) fn of(layout: &TraceLayout) -> Self {
        let mut kept = HashSet::new();
        for (stream, class) in layout.streams.iter().zip(&layout.class.streams) {
            let mut finder = Finder {
                stream,
                event: None,
                kept: &mut kept,
            };
            finder.stream(class);
            for (index, event) in class.events.iter().enumerate() {
                finder.event = Some(index);
                finder.event(event);
            }
        }
        Hidden { kept: Rc::new(kept) }
    }

    /// Whether the field is not shown.
    pub(crate) fn hides(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Struct(members) => {
                !members.is_empty() && members.iter().all(|member| self.hides(member))
            }
            NodeKind::Variant(_, options) => {
                !options.is_empty() && options.iter().all(|option| self.hides(option))
            }
            NodeKind::Array(_, element) => node.roles.contains(Roles::METADATA_UUID) || self.hides(element),
            NodeKind::Blob(_) => node.roles.contains(Roles::METADATA_UUID),
            _ => is_technical(node) && !self.kept.contains(&node.id),
        }
    }
}

fn is_technical(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Int(_, class) | NodeKind::VarInt(class) | NodeKind::WideInt(class) => {
            class.clock.is_some() || !class.roles.is_empty()
        }
        _ => false,
    }
}

/// Finds what lengths and selectors refer to.
struct Finder<'a> {
    stream: &'a StreamLayout,
    event: Option<usize>,
    kept: &'a mut HashSet<NodeId>,
}

impl Finder<'_> {
    fn stream(&mut self, class: &StreamClass) {
        let own = [&class.packet_context, &class.event_header, &class.common_context];
        own.into_iter().flatten().for_each(|class| self.field(class));
    }

    fn event(&mut self, class: &EventClass) {
        let own = [&class.specific_context, &class.payload];
        own.into_iter().flatten().for_each(|class| self.field(class));
    }

    fn field(&mut self, class: &FieldClass) {
        for location in class.all().filter_map(FieldClass::location) {
            self.keep(location);
        }
    }

    fn keep(&mut self, location: &FieldLocation) {
        let event = self.event.and_then(|event| self.stream.events.get(event));
        let root = match location.scope {
            Scope::PacketContext => self.stream.packet_context.as_ref(),
            Scope::CommonContext => self.stream.common_context.as_ref(),
            Scope::SpecificContext => event.and_then(|event| event.specific_context.as_ref()),
            Scope::Payload => event.and_then(|event| event.payload.as_ref()),
            // Headers are not shown at all.
            Scope::PacketHeader | Scope::EventHeader => None,
        };
        let Some(root) = root else { return };
        let nodes = location.paths.iter().filter_map(|path| descend(root, path));
        self.kept
            .extend(nodes.filter(|node| is_technical(node)).map(|node| node.id));
    }
}

/// The field at the end of the path.
fn descend<'n>(root: &'n Node, path: &[u32]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, &step| match &node.kind {
        NodeKind::Struct(children) | NodeKind::Variant(_, children) => children.get(step as usize),
        NodeKind::Array(_, element) | NodeKind::Optional(_, element) => Some(&**element),
        _ => None,
    })
}
