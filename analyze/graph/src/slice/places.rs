//! Local numbers of a slice of time, and their mapping to those of the graph.
//!
//! A slice does not know the numbers of threads, requests, packets and futexes in the graph. It
//! uses local numbers from 0 on, which composing maps to those of the graph.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tracebraid_threads::{CallClass, CallClasses};

use crate::cause::{ActorId, Wake};
use crate::graph::{Occupant, State};

/// Maps local numbers of a slice to those of the graph.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Places {
    /// By local number, as far as assigned.
    pub(crate) actors: Vec<ActorId>,
    pub(crate) futexes: Vec<u32>,
    /// Places of local number 0.
    pub(crate) requests: u32,
    pub(crate) packets: u32,
}

/// The same map, set once the slice is composed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Places", into = "Places")]
pub(crate) struct SlicePlaces(Arc<OnceLock<Places>>);

impl SlicePlaces {
    pub(crate) fn get(&self) -> Option<&Places> {
        self.0.get()
    }

    /// True if both belong to the same slice.
    pub(crate) fn are(&self, other: &SlicePlaces) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sets the map.
    pub(crate) fn set(&self, places: Places) -> &Places {
        self.0.get_or_init(|| places)
    }
}

impl From<Places> for SlicePlaces {
    fn from(places: Places) -> Self {
        SlicePlaces(Arc::new(OnceLock::from(places)))
    }
}

impl From<SlicePlaces> for Places {
    fn from(places: SlicePlaces) -> Self {
        places.get().cloned().unwrap_or_default()
    }
}

impl Places {
    pub(crate) fn actor(&self, local: ActorId) -> ActorId {
        // A slice numbers threads before it refers to them.
        self.actors.get(local.0 as usize).copied().unwrap_or(local)
    }

    pub(crate) fn wake(&self, wake: Wake) -> Wake {
        match wake {
            Wake::Thread(local) => Wake::Thread(self.actor(local)),
            Wake::Request(local) => Wake::Request(self.requests + local),
            Wake::Packet(local) => Wake::Packet(self.packets + local),
            other => other,
        }
    }

    #[inline]
    pub(crate) fn state(&self, state: State, classes: &CallClasses) -> State {
        let State::Blocked {
            call,
            object,
            wake,
            reason,
            is_idle,
        } = state
        else {
            return state;
        };
        let object = match classes.of(call) {
            CallClass::Futex => self.futexes.get(object as usize).copied().unwrap_or(object),
            _ => object,
        };
        State::Blocked {
            call,
            object,
            wake: self.wake(wake),
            reason,
            is_idle,
        }
    }

    pub(crate) fn occupant(&self, by: Occupant) -> Occupant {
        match by {
            Occupant::Thread(local) => Occupant::Thread(self.actor(local)),
            other => other,
        }
    }
}
