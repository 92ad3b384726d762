//! Visits a nested structure and builds a result from the leaves upwards, without recursion, so
//! that the depth of nesting is not bounded by the size of a thread's stack.

/// The state of a node after it was entered.
pub(crate) enum Visited<O, M> {
    /// The node has parts, which follow.
    Open(O),
    /// The node is complete.
    Made(M),
}

/// Builds a result from a nested structure.
pub(crate) trait Descent {
    type Node;
    /// A node, some of whose parts have been built.
    type Open;
    /// The result of a node.
    type Made;
    type Error;

    /// Enters a node.
    fn enter(&mut self, node: Self::Node) -> Result<Visited<Self::Open, Self::Made>, Self::Error>;
    /// The next part of the innermost open node; `None` if there are no more.
    fn next(&mut self, open: &mut Self::Open) -> Result<Option<Self::Node>, Self::Error>;
    /// Adds the result of that part.
    fn add(&mut self, open: &mut Self::Open, made: Self::Made) -> Result<(), Self::Error>;
    /// Builds the result of a node whose parts are complete.
    fn leave(&mut self, open: Self::Open) -> Result<Self::Made, Self::Error>;
}

/// Builds the result of `root`.
pub(crate) fn descend<D: Descent>(descent: &mut D, root: D::Node) -> Result<D::Made, D::Error> {
    let mut open: Vec<D::Open> = Vec::new();
    let mut node = root;
    loop {
        let mut made = match descent.enter(node)? {
            Visited::Made(made) => made,
            Visited::Open(mut parts) => match descent.next(&mut parts)? {
                Some(part) => {
                    open.push(parts);
                    node = part;
                    continue;
                }
                None => descent.leave(parts)?,
            },
        };
        // Leaves all nodes that end here.
        node = loop {
            let Some(mut parts) = open.pop() else {
                return Ok(made);
            };
            descent.add(&mut parts, made)?;
            match descent.next(&mut parts)? {
                Some(part) => {
                    open.push(parts);
                    break part;
                }
                None => made = descent.leave(parts)?,
            }
        };
    }
}
