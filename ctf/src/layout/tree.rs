//! The nodes of a scope in a single list, each node before its parts.
//!
//! A list has no depth, so nested fields need no recursion.

use super::node::{Node, NodeKind};

/// The fields of a scope: the root, followed by all nodes within it. Empty if the scope does not
/// exist.
#[derive(Clone, Debug, Default)]
pub struct Tree(Box<[Node]>);

impl Tree {
    pub(super) fn new(nodes: Box<[Node]>) -> Self {
        Tree(nodes)
    }

    /// The root structure, if there is one.
    #[inline(always)]
    pub fn root(&self) -> Option<Part<'_>> {
        Parts(&self.0).next()
    }

    /// All fields, each before its parts.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = Part<'_>> {
        self.0.iter().enumerate().filter_map(|(index, node)| {
            let inside = self.0.get(index + 1..)?.get(..node.inside as usize)?;
            Some(Part { node, inside })
        })
    }
}

/// A node with all nodes within it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'n> {
    node: &'n Node,
    inside: &'n [Node],
}

impl<'n> Part<'n> {
    #[inline(always)]
    pub(crate) fn new(node: &'n Node, inside: &'n [Node]) -> Self {
        Part { node, inside }
    }

    /// The node itself.
    #[inline(always)]
    pub fn node(self) -> &'n Node {
        self.node
    }

    /// All nodes within the node, each before its parts.
    #[inline(always)]
    pub fn inside(self) -> &'n [Node] {
        self.inside
    }

    /// The direct parts: members, options, or the element.
    #[inline(always)]
    pub fn parts(self) -> Parts<'n> {
        Parts(self.inside)
    }

    /// The element of an array or optional.
    #[inline(always)]
    pub fn element(self) -> Option<Part<'n>> {
        self.parts().next()
    }

    /// The option of a variant with this index.
    #[inline(always)]
    pub fn option(self, index: usize) -> Option<Part<'n>> {
        let NodeKind::Variant(choice) = &self.node.kind else {
            return None;
        };
        let start = *choice.starts.get(index)? as usize;
        Parts(self.inside.get(start..)?).next()
    }

    /// A copy of the node and all nodes within it.
    pub fn to_tree(self) -> Tree {
        let nodes = std::iter::once(self.node).chain(self.inside);
        Tree(nodes.cloned().collect())
    }
}

impl std::ops::Deref for Part<'_> {
    type Target = Node;
    #[inline(always)]
    fn deref(&self) -> &Node {
        self.node
    }
}

/// The parts of a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts<'n>(&'n [Node]);

impl<'n> Iterator for Parts<'n> {
    type Item = Part<'n>;

    #[inline(always)]
    fn next(&mut self) -> Option<Part<'n>> {
        let (node, rest) = self.0.split_first()?;
        let (inside, rest) = rest.split_at_checked(node.inside as usize)?;
        self.0 = rest;
        Some(Part { node, inside })
    }
}
