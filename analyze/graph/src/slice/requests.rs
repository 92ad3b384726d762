//! Block requests within a slice of time.
//!
//! Few requests are in flight at the beginning of a slice, and only composing knows them. The slice
//! therefore computes each request as if none had been in flight, and keeps next to it the outcome
//! for the case that one was.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use tracebraid_follow::{ByCpu, CpuKey, KeyHasher};
use tracebraid_kernel_model::Device;

use crate::cause::ActorId;
use crate::graph::Request;
use crate::graph_step::{Issued, RequestKey};
use crate::requests::{Open, Requests};
use crate::slice::places::Places;

type Key = (u32, RequestKey);
type ByKey<T> = HashMap<Key, T, BuildHasherDefault<KeyHasher>>;

/// Fate of a request in flight at the beginning of the slice, if there was one with that key.
#[derive(Clone, Copy, Debug)]
enum Earlier {
    /// Completed: index of the request in the slice.
    Done(u32),
    /// Issued again with that number of sectors; the same request only if the number is equal.
    GoesOn {
        sectors: u32,
        issued: Option<i64>,
        end: GoesOn,
    },
}

/// Fate of a request that was issued again.
#[derive(Clone, Copy, Debug)]
enum GoesOn {
    /// Still in flight.
    Open,
    /// Replaced by another request, or lost.
    Gone,
    /// Completed: index of the request in the slice.
    Done(u32),
}

#[derive(Debug, Default)]
pub(crate) struct SliceRequests {
    /// First event of each key.
    earlier: ByKey<Earlier>,
    /// In progress, by key; `None` after completion.
    open: ByKey<Option<Open>>,
    done: Vec<Request>,
    last: ByCpu<Option<u32>>,
    /// True if events were lost: no earlier request is then in flight.
    has_lost: bool,
}

impl SliceRequests {
    /// See [`Requests::issues`].
    pub(crate) fn issues(&mut self, key: Key, time: i64, by: Option<ActorId>, issued: Issued) {
        if !self.has_lost && !self.open.contains_key(&key) {
            let earlier = Earlier::GoesOn {
                sectors: issued.sectors,
                issued: issued.is_taken.then_some(time),
                end: GoesOn::Open,
            };
            self.earlier.insert(key, earlier);
        } else if let Some(Earlier::GoesOn {
            sectors,
            issued: taken,
            end: end @ GoesOn::Open,
        }) = self.earlier.get_mut(&key)
        {
            match *sectors == issued.sectors {
                true if issued.is_taken => *taken = Some(time),
                true => {}
                false => *end = GoesOn::Gone,
            }
        }
        let open = self.open.entry(key).or_default();
        *open = Some(Open::issued_again(*open, time, by, issued));
    }

    /// See [`Requests::completes`].
    pub(crate) fn completes(&mut self, cpu: CpuKey, key: RequestKey, time: i64) {
        let place = self.done.len() as u32;
        let key = (cpu.trace, key);
        let open = self.open.insert(key, None);
        match open {
            None if !self.has_lost => _ = self.earlier.insert(key, Earlier::Done(place)),
            _ => {
                if let Some(Earlier::GoesOn {
                    end: end @ GoesOn::Open,
                    ..
                }) = self.earlier.get_mut(&key)
                {
                    *end = GoesOn::Done(place);
                }
            }
        }
        let device = Device(key.1.device);
        let request = Open::done(open.flatten(), (cpu.trace, device), time);
        self.done.push(request);
        *self.last.get(cpu) = Some(place);
    }

    /// The request of the slice that was completed last on a CPU.
    pub(crate) fn last(&mut self, cpu: CpuKey) -> Option<u32> {
        *self.last.get(cpu)
    }

    /// See [`Requests::lose`].
    pub(crate) fn lose(&mut self) {
        self.has_lost = true;
        self.open.clear();
        for earlier in self.earlier.values_mut() {
            if let Earlier::GoesOn {
                end: end @ GoesOn::Open,
                ..
            } = earlier
            {
                *end = GoesOn::Gone;
            }
        }
    }

    /// Adds the slice to the graph's requests.
    pub(crate) fn compose(mut self, all: &mut Requests, places: &Places) {
        let actor = |by: Option<ActorId>| by.map(|by| places.actor(by));
        self.done
            .iter_mut()
            .for_each(|request| request.by = actor(request.by));
        self.open
            .values_mut()
            .flatten()
            .for_each(|open| open.by = actor(open.by));
        for (key, before) in all.take_open() {
            match self.earlier.get(&key) {
                Some(earlier) => self.goes_on(key, *earlier, before),
                None if self.has_lost => {}
                None => all.opens(key, before),
            }
        }
        for (key, open) in self.open {
            if let Some(open) = open {
                all.opens(key, open);
            }
        }
        for (cpu, last) in self.last {
            all.is_last(cpu, last.map(|local| places.requests + local));
        }
        self.done.into_iter().for_each(|request| all.adds(request));
    }

    /// Applies a request that was in flight at the beginning of the slice.
    fn goes_on(&mut self, key: Key, earlier: Earlier, before: Open) {
        let (place, open) = match earlier {
            Earlier::Done(place) => (Some(place), before),
            Earlier::GoesOn { sectors, .. } if !before.is_of(sectors) => return,
            Earlier::GoesOn { issued, end, .. } => {
                let mut open = before;
                open.issued = issued.or(before.issued);
                match end {
                    GoesOn::Open => (None, open),
                    GoesOn::Gone => return,
                    GoesOn::Done(place) => (Some(place), open),
                }
            }
        };
        let Some(place) = place else {
            self.open.insert(key, Some(open));
            return;
        };
        if let Some(request) = self.done.get_mut(place as usize) {
            *request = Open::done(Some(open), (request.trace, request.device), request.end);
        }
    }
}
