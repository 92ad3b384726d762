//! The chains of relations that connect all machines with the reference best.

use std::collections::VecDeque;

/// An edge between two nodes; smaller weights are better.
pub(crate) type Edge<W> = (W, usize, usize);

/// For each node, the next node on its path to the root; `None` for the root and for nodes that are
/// not connected with it. Paths follow a spanning tree of minimum weight (Kruskal 1956); of edges
/// with equal weights the first is used.
pub(crate) fn ways_to<W: Ord + Copy>(
    root: usize,
    nodes: usize,
    edges: &[Edge<W>],
) -> Vec<Option<usize>> {
    let tree = spanning(nodes, edges);
    let mut ways = vec![None; nodes];
    let mut waiting = VecDeque::from([root]);
    while let Some(node) = waiting.pop_front() {
        for &(a, b) in &tree {
            let next = match node {
                _ if node == a => b,
                _ if node == b => a,
                _ => continue,
            };
            if let Some(way) = ways
                .get_mut(next)
                .filter(|way| way.is_none() && next != root)
            {
                *way = Some(node);
                waiting.push_back(next);
            }
        }
    }
    ways
}

fn spanning<W: Ord + Copy>(nodes: usize, edges: &[Edge<W>]) -> Vec<(usize, usize)> {
    let mut edges: Vec<&Edge<W>> = edges.iter().collect();
    edges.sort_by_key(|edge| edge.0);
    // By node: the smallest node of its connected component.
    let mut parts: Vec<usize> = (0..nodes).collect();
    let mut tree = Vec::new();
    for &&(_, a, b) in &edges {
        let (Some(&of_a), Some(&of_b)) = (parts.get(a), parts.get(b)) else {
            continue;
        };
        if of_a != of_b {
            tree.push((a, b));
            let (into, from) = (of_a.min(of_b), of_a.max(of_b));
            parts
                .iter_mut()
                .filter(|part| **part == from)
                .for_each(|part| *part = into);
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_way_is_taken_even_if_it_is_longer() {
        let edges = [(9, 0, 2), (1, 0, 1), (2, 2, 1), (1, 3, 4)];
        assert_eq!(ways_to(0, 5, &edges), [None, Some(0), Some(1), None, None]);
        assert_eq!(ways_to(2, 5, &edges), [Some(1), Some(2), None, None, None]);
        assert_eq!(ways_to(3, 5, &edges), [None, None, None, None, Some(3)]);
        assert_eq!(ways_to::<u32>(0, 1, &[]), [None]);
    }
}
