//! What addresses of stacks mean: mappings of programs and functions of the kernel, as events of the trace.

use std::cell::RefCell;

use tracebraid_ctf::schema::TraceClass;

use super::mappings::Change;
use super::{KernelSymbols, Mappings, Stacks};
use crate::error::RecordError;
use crate::lane::Lane;
use crate::raw::{Head, u64_at};
use crate::state::Payload;

/// Ids of event classes.
#[derive(Clone, Copy, Debug, Default)]
struct Ids {
    cpu: u16,
    wait: u16,
    state: u16,
    symbol: u16,
    load: u16,
    fork: u16,
    exec: u16,
}

impl Ids {
    fn new(class: &TraceClass) -> Ids {
        let mut ids = Ids::default();
        for event in class.streams.iter().flat_map(|stream| &stream.events) {
            let place = match &*event.name {
                "tracebraid_cpu_stack" => &mut ids.cpu,
                "tracebraid_syscall_stack" => &mut ids.wait,
                "tracebraid_stacks_state" => &mut ids.state,
                "tracebraid_kernel_symbol" => &mut ids.symbol,
                "tracebraid_map_load" => &mut ids.load,
                "tracebraid_map_fork" => &mut ids.fork,
                "tracebraid_map_exec" => &mut ids.exec,
                _ => continue,
            };
            *place = event.id as u16;
        }
        ids
    }
}

/// Tells what addresses mean while stacks are recorded.
pub(crate) struct Meanings {
    ids: Ids,
    state: Vec<u8>,
    symbols: RefCell<KernelSymbols>,
    mappings: RefCell<Mappings>,
}

impl Meanings {
    /// Begins to listen on so many CPUs; says first, in the lane, how stacks are taken.
    pub(crate) fn begin(
        class: &TraceClass,
        stacks: &Stacks,
        cpus: usize,
        time: u64,
        lane: &mut Lane,
    ) -> Result<Meanings, RecordError> {
        let failed = |error| RecordError::Load(format!("the kernel does not tell what is mapped: {error}"));
        let mappings = Mappings::open(cpus).map_err(failed)?;
        let (ids, state) = (Ids::new(class), stacks.state());
        add(lane, time, ids.state, &state);
        Ok(Meanings {
            ids,
            state,
            symbols: RefCell::new(KernelSymbols::read()),
            mappings: RefCell::new(mappings),
        })
    }

    /// Id of the class of mappings.
    pub(crate) fn load_id(&self) -> u16 {
        self.ids.load
    }

    /// Tells of functions of the kernel in a record of a stack that were not met before.
    pub(crate) fn symbols(&self, head: &Head, record: &[u8], lane: &mut Lane) {
        if head.kind != self.ids.cpu && head.kind != self.ids.wait {
            return;
        }
        let mut symbols = self.symbols.borrow_mut();
        for address in kernel_frames(record) {
            if let Some(payload) = symbols.tell(address) {
                add(lane, head.time, self.ids.symbol, &payload);
            }
        }
    }

    /// Tells what has been mapped since the last time. To be called before stacks are looked at, which may be of what
    /// has just been mapped.
    pub(crate) fn mappings(&self, lane: &mut Lane) {
        self.mappings.borrow_mut().take(|time, change| match change {
            Change::Load(mapping) => add(lane, time, self.ids.load, &mapping.payload()),
            Change::Fork { parent, pid } => {
                let payload = Payload::default().int(parent as i32).int(pid as i32);
                add(lane, time, self.ids.fork, &payload.bytes_of());
            }
            Change::Exec { pid } => {
                let payload = Payload::default().int(pid as i32);
                add(lane, time, self.ids.exec, &payload.bytes_of());
            }
        });
    }

    /// Tells again how stacks are taken, and what was told of functions, which may be gone.
    pub(crate) fn again(&self, time: u64, lane: &mut Lane) {
        add(lane, time, self.ids.state, &self.state);
        for payload in self.symbols.borrow().told() {
            add(lane, time, self.ids.symbol, &payload);
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
