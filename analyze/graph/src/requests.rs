//! Block requests from their making to their end.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey, Pairs};
use tracebraid_kernel_model::Device;

use crate::cause::ActorId;
use crate::graph::Request;
use crate::graph_step::{Issued, RequestKey};
use crate::kept::Kept;

/// A request that is under way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    begin: i64,
    /// When its driver took it last; not yet while it is only in a queue.
    issued: Option<i64>,
    by: Option<ActorId>,
    sectors: u32,
}

/// So many that do not matter are kept, so that they are not looked for all the time.
const MOST_FORGOTTEN: usize = 4096;

/// The requests of all devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Requests {
    open: Pairs<(u32, RequestKey), Open>,
    pub(crate) done: Kept<Request>,
    /// By CPU: the one that was completed there last.
    last: ByCpu<Option<u32>>,
    pub(crate) longest: i64,
}

impl Requests {
    /// A request goes to a queue or a driver; who put it into the queue counts, not who takes it out.
    pub(crate) fn issues(
        &mut self,
        (trace, key): (u32, RequestKey),
        time: i64,
        by: Option<ActorId>,
        Issued { sectors, is_taken }: Issued,
    ) {
        let new = Open {
            begin: time,
            issued: None,
            by,
            sectors,
        };
        let mut open = match self.open.end((trace, key)) {
            Some(old) if old.sectors == sectors && old.by.is_some() => old,
            _ => new,
        };
        if is_taken {
            open.issued = Some(time);
        }
        self.open.begin((trace, key), open);
    }

    /// A request is done.
    pub(crate) fn completes(&mut self, cpu: CpuKey, key: RequestKey, time: i64) {
        let open = self.open.end((cpu.trace, key)).unwrap_or(Open {
            begin: time,
            issued: None,
            by: None,
            sectors: 0,
        });
        self.longest = self.longest.max(time.saturating_sub(open.begin));
        let place = self.done.push(Request {
            begin: open.begin,
            // Where only the queue was recorded, nothing better is known.
            issued: open.issued.unwrap_or(open.begin),
            end: time,
            by: open.by,
            trace: cpu.trace,
            device: Device(key.device),
            sectors: open.sectors,
        });
        *self.last.get(cpu) = Some(place);
    }

    /// Waits that have ended do not matter: of requests that are done only the last one of each CPU may end others.
    pub(crate) fn forget(&mut self) {
        if self.done.len() <= MOST_FORGOTTEN {
            return;
        }
        let mut last: Vec<&mut u32> = self
            .last
            .iter_mut()
            .filter_map(|(_, last)| last.as_mut())
            .collect();
        last.sort_unstable();
        let mut kept = Vec::with_capacity(last.len());
        for place in last {
            let request = self.done.get(*place as usize).copied();
            *place = kept.len() as u32;
            kept.extend(request);
        }
        self.done = kept.into();
    }

    /// True if a request to a device is under way that began before that time.
    pub(crate) fn is_used(&self, trace: u32, device: Device, until: i64) -> bool {
        let mut open = self.open.open();
        open.any(|((of, key), open)| *of == trace && key.device == device.0 && open.begin < until)
    }

    /// When those began that are under way.
    pub(crate) fn begins(&self) -> impl Iterator<Item = i64> {
        self.open.open().map(|(_, open)| open.begin)
    }

    /// Places of those that may yet end waits: the last one of each CPU.
    pub(crate) fn last_ones(&self) -> impl Iterator<Item = u32> {
        self.last.iter().filter_map(|(_, last)| *last)
    }

    /// Events were lost: what is under way may have been done.
    pub(crate) fn lose(&mut self) {
        self.open = Pairs::default();
    }

    /// The request that was completed last on a CPU.
    pub(crate) fn last(&mut self, cpu: CpuKey) -> Option<u32> {
        *self.last.get(cpu)
    }
}
