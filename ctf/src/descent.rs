//! Going down into what is nested, and coming up with what is made of it: without recursion, so
//! that no thread's stack bounds how deep it may be nested.

/// What a node turns out to be.
pub(crate) enum Visited<O, M> {
    /// It has parts, which come next.
    Open(O),
    /// It is made.
    Made(M),
}

/// How something is made of something nested.
pub(crate) trait Descent {
    /// What is nested.
    type Node;
    /// A node with parts, of which some are made.
    type Open;
    /// What nodes become.
    type Made;
    /// Why that fails.
    type Error;

    /// Begins with a node.
    fn enter(&mut self, node: Self::Node) -> Result<Visited<Self::Open, Self::Made>, Self::Error>;
    /// The next part of the innermost open node; `None` when it has all of them.
    fn next(&mut self, open: &mut Self::Open) -> Result<Option<Self::Node>, Self::Error>;
    /// Adds what that part became.
    fn add(&mut self, open: &mut Self::Open, made: Self::Made) -> Result<(), Self::Error>;
    /// Makes a node that has all its parts.
    fn leave(&mut self, open: Self::Open) -> Result<Self::Made, Self::Error>;
}

/// Makes it of the root.
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
        // Upwards, as long as nothing is left.
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
