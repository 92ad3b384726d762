//! Block requests from creation to completion.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{ByCpu, CpuKey, Pairs};
use tracebraid_kernel_model::Device;

use crate::cause::ActorId;
use crate::graph::Request;
use crate::graph_step::{Issued, RequestKey};
use crate::kept::Kept;

/// A request in progress.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Open {
    begin: i64,
    /// When the driver last took the request; `None` while it is only queued.
    pub(crate) issued: Option<i64>,
    pub(crate) by: Option<ActorId>,
    sectors: u32,
}

impl Open {
    /// True if a request of that size continues this one: the thread that queued the request
    /// counts, not the one that dequeues it.
    pub(crate) fn is_of(&self, sectors: u32) -> bool {
        self.sectors == sectors && self.by.is_some()
    }

    /// Queues or issues a request; `open` is the request in progress with the same key.
    pub(crate) fn issued_again(
        open: Option<Open>,
        time: i64,
        by: Option<ActorId>,
        Issued { sectors, is_taken }: Issued,
    ) -> Open {
        let new = Open {
            begin: time,
            issued: None,
            by,
            sectors,
        };
        let mut open = open.filter(|open| open.is_of(sectors)).unwrap_or(new);
        if is_taken {
            open.issued = Some(time);
        }
        open
    }

    /// Completes a request; without `open`, its start is unknown.
    pub(crate) fn done(open: Option<Open>, (trace, device): (u32, Device), time: i64) -> Request {
        let open = open.unwrap_or(Open {
            begin: time,
            issued: None,
            by: None,
            sectors: 0,
        });
        Request {
            begin: open.begin,
            // If only the queue was recorded, its time is the best estimate.
            issued: open.issued.unwrap_or(open.begin),
            end: time,
            by: open.by,
            trace,
            device,
            sectors: open.sectors,
        }
    }
}

/// The requests of all devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Requests {
    open: Pairs<(u32, RequestKey), Open>,
    pub(crate) done: Kept<Request>,
    /// By CPU: index of the request that was last completed there.
    last: ByCpu<Option<u32>>,
    pub(crate) longest: i64,
}

impl Requests {
    /// Queues or issues a request.
    pub(crate) fn issues(
        &mut self,
        key: (u32, RequestKey),
        time: i64,
        by: Option<ActorId>,
        issued: Issued,
    ) {
        let open = Open::issued_again(self.open.end(key), time, by, issued);
        self.open.begin(key, open);
    }

    pub(crate) fn completes(&mut self, cpu: CpuKey, key: RequestKey, time: i64) {
        let open = self.open.end((cpu.trace, key));
        let place = self.done.next_place();
        self.adds(Open::done(open, (cpu.trace, Device(key.device)), time));
        *self.last.get(cpu) = Some(place);
    }

    /// Adds a completed request.
    pub(crate) fn adds(&mut self, request: Request) {
        self.longest = self.longest.max(request.end.saturating_sub(request.begin));
        self.done.push(request);
    }

    /// Sets the request that was last completed on a CPU.
    pub(crate) fn is_last(&mut self, cpu: CpuKey, place: Option<u32>) {
        let last = self.last.get(cpu);
        *last = place.or(*last);
    }

    /// Adds a request in progress.
    pub(crate) fn opens(&mut self, key: (u32, RequestKey), open: Open) {
        self.open.begin(key, open);
    }

    /// Takes the requests in progress.
    pub(crate) fn take_open(&mut self) -> impl Iterator<Item = ((u32, RequestKey), Open)> + use<> {
        let open: Vec<_> = std::mem::take(&mut self.open).into();
        open.into_iter()
    }

    /// True if a request to a device is in progress that began before `until`.
    pub(crate) fn is_used(&self, trace: u32, device: Device, until: i64) -> bool {
        let mut open = self.open.open();
        open.any(|((of, key), open)| *of == trace && key.device == device.0 && open.begin < until)
    }

    /// Starts of the requests in progress.
    pub(crate) fn begins(&self) -> impl Iterator<Item = i64> {
        self.open.open().map(|(_, open)| open.begin)
    }

    /// Indexes of the requests that may still end waits: the last one of each CPU.
    pub(crate) fn last_ones(&self) -> impl Iterator<Item = u32> {
        self.last.iter().filter_map(|(_, last)| *last)
    }

    /// Handles lost events: requests in progress may have completed.
    pub(crate) fn lose(&mut self) {
        self.open = Pairs::default();
    }

    /// The request that was last completed on a CPU.
    pub(crate) fn last(&mut self, cpu: CpuKey) -> Option<u32> {
        *self.last.get(cpu)
    }
}
