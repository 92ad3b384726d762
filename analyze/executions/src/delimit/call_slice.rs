//! System calls in a slice of time, without knowledge of the calls that are open at its beginning.
//!
//! Items whose effect depends on a thread's state at the beginning of the slice are deferred until
//! that state is known: an exit before any entry, and an item that ends a call that may be open.
//! After such an item the state of the thread is known, except if it takes over the state of an
//! unknown thread.
//! state is known, but where it takes over that of another thread of which nothing is known.

use std::collections::HashSet;

use tracebraid_follow::{CpuKey, Items, ThreadKey};

use crate::contexts::Hasher;
use crate::delimit::calls::Calls;
use crate::delimit::kernel::{CallEdge, Kernel, LifeEvent};
use crate::delimit::log::Block;

/// System calls in a slice of time.
#[derive(Debug, Default)]
pub(crate) struct CallSlice {
    /// Calls that began in the slice, numbered from 1, including the block of calls that ended
    /// last.
    calls: Calls,
    /// Blocks of calls that ended earlier.
    blocks: Vec<Block>,
    /// Threads whose state is known, in a call or not.
    known: HashSet<ThreadKey, Hasher>,
    /// Deferred items, with the index of the block before which each one happened.
    deferred: Vec<(usize, CpuKey, i64, LifeEvent)>,
}

impl CallSlice {
    /// Plays the items of a slice. No block spans one of the times in `cuts`.
    pub(crate) fn play(kernel: &Kernel, mut items: Items<LifeEvent>, cuts: &[i64]) -> CallSlice {
        let mut slice = CallSlice::default();
        let mut cuts = cuts.iter().copied();
        let mut next = cuts.next().unwrap_or(i64::MAX);
        items.play(None, |cpu, time, item| {
            if time >= next {
                slice.end_block();
                next = cuts.find(|cut| time < *cut).unwrap_or(i64::MAX);
            }
            slice.step(kernel, (cpu, time), item);
        });
        slice.end_block();
        slice
    }

    /// Closes the current block; later calls go into the next one.
    fn end_block(&mut self) {
        self.blocks.append(&mut self.calls.take());
    }

    fn step(&mut self, kernel: &Kernel, at: (CpuKey, i64), item: LifeEvent) {
        let trace = at.0.trace;
        let key = |tid| ThreadKey { trace, tid };
        match item {
            LifeEvent::Call(tid, what) => {
                let is_new = self.known.insert(key(tid));
                match what {
                    CallEdge::Enter(..) if is_new => {
                        self.defer(at, LifeEvent::Call(tid, CallEdge::Lose))
                    }
                    _ if is_new => return self.defer(at, item),
                    _ => {}
                }
            }
            LifeEvent::Made(tid, ..) => {
                if self.known.insert(key(tid)) {
                    return self.defer(at, item);
                }
            }
            LifeEvent::Executes(tid, old, _) if tid != old => {
                if self.known.insert(key(old)) {
                    self.calls.forget(at.0, tid);
                    self.known.remove(&key(tid));
                    return self.defer(at, item);
                }
                if self.known.insert(key(tid)) {
                    self.defer(at, LifeEvent::Made(tid, None, None));
                }
            }
            _ => return,
        }
        self.calls.play(kernel, at, &item);
        if self.calls.ended.len() >= Block::FULL {
            self.end_block();
        }
    }

    fn defer(&mut self, (cpu, time): (CpuKey, i64), item: LifeEvent) {
        // Only exits end calls.
        if matches!(item, LifeEvent::Call(_, CallEdge::Exit(..))) {
            self.end_block();
        }
        self.deferred.push((self.blocks.len(), cpu, time, item));
    }

    /// Appends the slice to earlier state. The cost is linear in the number of deferred items and
    /// of blocks.
    pub(crate) fn compose(self, kernel: &Kernel, calls: &mut Calls) {
        let mut blocks = calls.take();
        let mut late: Vec<(usize, Block)> = Vec::new();
        for (place, cpu, time, item) in self.deferred {
            calls.play(kernel, (cpu, time), &item);
            late.extend(calls.take().into_iter().map(|block| (place, block)));
        }
        let before = calls.take_over(self.calls);
        let mut late = late.into_iter().peekable();
        for (place, mut block) in self.blocks.into_iter().enumerate() {
            while let Some((_, of_before)) = late.next_if(|late| late.0 <= place) {
                blocks.push(of_before);
            }
            block.before = before;
            blocks.push(block);
        }
        blocks.extend(late.map(|(_, block)| block));
        calls.blocks = blocks;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tracebraid_ctf::trace::TraceSet;
    use tracebraid_follow::Window;
    use tracebraid_kernel_model::Syscall;
    use tracebraid_language::glob::Glob;

    use super::*;

    fn kernel() -> Kernel {
        let patterns = ["read", "*"]
            .map(Glob::new)
            .into_iter()
            .enumerate()
            .collect();
        let set = TraceSet::default();
        let kernel = Kernel::new((&set, None), patterns, Vec::new(), Window::default());
        kernel.expect("calls are asked for")
    }

    fn item() -> impl Strategy<Value = LifeEvent> {
        let tid = 1..5i32;
        let call = (0..3u16).prop_map(Syscall);
        let what = prop_oneof![
            call.clone().prop_map(|call| CallEdge::Enter(call, Some(3))),
            (prop::option::of(call), 0..9i64)
                .prop_map(|(call, result)| CallEdge::Exit(call, Some(result))),
            Just(CallEdge::Lose),
        ];
        prop_oneof![
            12 => (tid.clone(), what).prop_map(|(tid, what)| LifeEvent::Call(tid, what)),
            1 => tid.clone().prop_map(|tid| LifeEvent::Made(tid, None, None)),
            2 => (tid.clone(), tid).prop_map(|(tid, old)| LifeEvent::Executes(tid, old, None)),
        ]
    }

    proptest! {
        #[test]
        fn slices_are_composed_to_the_whole(
            items in prop::collection::vec((0..3u32, 0..2i64, item()), 0..80),
            cuts in prop::collection::vec(0..80i64, 0..5),
        ) {
            let kernel = kernel();
            let mut all = Items::default();
            let mut times = [0; 3];
            for (cpu, gap, item) in items {
                times[cpu as usize] += gap;
                all.push(CpuKey { trace: 0, cpu }, times[cpu as usize], item);
            }
            let mut expected = Calls::default();
            all.clone().play(None, |cpu, time, item| expected.play(&kernel, (cpu, time), &item));
            let mut found = Calls::default();
            let mut cuts = cuts;
            cuts.sort_unstable();
            // Two cuts in each slice.
            cuts.push(i64::MAX);
            for cuts in cuts.chunks(2) {
                let until = cuts.last().copied().unwrap_or(i64::MAX);
                let slice = CallSlice::play(&kernel, all.cut(until), cuts);
                let blocks = found.blocks.len();
                slice.compose(&kernel, &mut found);
                for block in &found.blocks[blocks..] {
                    let (first, last) = block.told().expect("it is not empty");
                    prop_assert!(cuts.iter().all(|cut| (first < *cut) == (last < *cut)));
                }
            }
            let open = |calls: &Calls| {
                let mut open: Vec<_> = calls.open().collect();
                open.sort_unstable();
                open
            };
            prop_assert_eq!(open(&found), open(&expected));
            let unfinished = |calls: &Calls| calls.log.unfinished().take(2).collect::<Vec<_>>();
            prop_assert_eq!(unfinished(&found), unfinished(&expected));
            let ended = |calls: &mut Calls| -> Vec<_> {
                calls.take().into_iter().flat_map(Block::numbered).collect()
            };
            prop_assert_eq!(ended(&mut found), ended(&mut expected));
        }
    }
}
