//! What addresses of stacks mean: mappings of programs and functions of the kernel, as events of the trace.

use std::cell::RefCell;

use super::mappings::Change;
use super::{KernelSymbols, MappedFiles, Mappings, Stacks};
use crate::error::RecordError;
use crate::lane::Lane;
use crate::machine::now;
use crate::raw::{Head, u64_at};
use crate::shared::kinds;
use crate::state::Payload;

/// Tells what addresses mean while stacks are recorded.
pub(crate) struct Meanings {
    state: Vec<u8>,
    symbols: RefCell<KernelSymbols>,
    mappings: RefCell<Mappings>,
    files: RefCell<MappedFiles>,
}

impl Meanings {
    /// Begins to listen on so many CPUs; says first, in the lane, how stacks are taken.
    pub(crate) fn begin(
        stacks: &Stacks,
        cpus: usize,
        time: u64,
        lane: &mut Lane,
    ) -> Result<Meanings, RecordError> {
        let failed = |error| RecordError::Load(format!("the kernel does not tell what is mapped: {error}"));
        let mappings = Mappings::open(cpus).map_err(failed)?;
        let state = stacks.state();
        add(lane, time, kinds::TRACEBRAID_STACKS_STATE, &state);
        Ok(Meanings {
            state,
            symbols: RefCell::new(KernelSymbols::read()),
            mappings: RefCell::new(mappings),
            files: RefCell::new(MappedFiles::new()),
        })
    }

    /// Tells of functions of the kernel in a record of a stack that were not met before.
    pub(crate) fn symbols(&self, head: &Head, record: &[u8], lane: &mut Lane) {
        if head.kind != kinds::TRACEBRAID_CPU_STACK && head.kind != kinds::TRACEBRAID_SYSCALL_STACK {
            return;
        }
        let mut symbols = self.symbols.borrow_mut();
        for address in kernel_frames(record) {
            if let Some(payload) = symbols.tell(address) {
                add(lane, head.time, kinds::TRACEBRAID_KERNEL_SYMBOL, &payload);
            }
        }
    }

    /// Tells what has been mapped since the last time. To be called before stacks are looked at, which may be of what
    /// has just been mapped.
    pub(crate) fn mappings(&self, lane: &mut Lane) {
        let mut files = self.files.borrow_mut();
        self.mappings.borrow_mut().take(|time, change| match change {
            Change::Load(mapping) => {
                files.meet(&mapping);
                add(lane, time, kinds::TRACEBRAID_MAP_LOAD, &mapping.payload());
            }
            Change::Fork { parent, pid } => {
                let payload = Payload::default().int(parent as i32).int(pid as i32);
                add(lane, time, kinds::TRACEBRAID_MAP_FORK, &payload.bytes_of());
            }
            Change::Exec { pid } => {
                let payload = Payload::default().int(pid as i32);
                add(lane, time, kinds::TRACEBRAID_MAP_EXEC, &payload.bytes_of());
            }
        });
        files.take(|payload| add(lane, now(), kinds::TRACEBRAID_MAP_FILE, payload));
    }

    /// Tells, at the end, of the files that were still being read.
    pub(crate) fn rest(&self, lane: &mut Lane) {
        self.mappings(lane);
        let mut files = self.files.borrow_mut();
        files.take_rest(|payload| add(lane, now(), kinds::TRACEBRAID_MAP_FILE, payload));
    }

    /// Tells again how stacks are taken, and what was told of functions, which may be gone.
    pub(crate) fn again(&self, time: u64, lane: &mut Lane) {
        add(lane, time, kinds::TRACEBRAID_STACKS_STATE, &self.state);
        for payload in self.symbols.borrow().told() {
            add(lane, time, kinds::TRACEBRAID_KERNEL_SYMBOL, &payload);
        }
        for payload in self.files.borrow().told() {
            add(lane, time, kinds::TRACEBRAID_MAP_FILE, payload);
        }
    }
}

fn add(lane: &mut Lane, time: u64, id: u16, payload: &[u8]) {
    lane.add(time, None, |to| {
        to.extend_from_slice(payload);
        Some(id)
    });
}

/// Where the kernel's frames are in a record (`struct stack`), behind the four bytes that say how many.
const KERNEL_COUNT: usize = 36;

fn kernel_frames(record: &[u8]) -> impl Iterator<Item = u64> {
    let count = record.get(KERNEL_COUNT..).and_then(<[u8]>::first_chunk);
    let count = count.map_or(0, |count| u32::from_le_bytes(*count) as usize);
    (0..count.min(64)).filter_map(move |place| u64_at(record, KERNEL_COUNT + 4 + 8 * place))
}
