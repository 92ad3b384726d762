//! Places within a slice of time, and where they are in the graph.
//!
//! A slice that is played without knowledge of what was before it cannot know the numbers of threads, requests, segments and
//! futexes in the graph. It numbers those that it meets on its own, from 0 on; composing finds out where each of them is, and
//! translates.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tracebraid_threads::{CallClass, CallClasses};

use crate::cause::{ActorId, Wake};
use crate::graph::{Occupant, State};

/// Where the things of a slice are in the graph.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Places {
    /// By their numbers in the slice, as far as they were met.
    pub(crate) actors: Vec<ActorId>,
    pub(crate) futexes: Vec<u32>,
    /// Of the first request and packet.
    pub(crate) requests: u32,
    pub(crate) packets: u32,
}

/// The same, known once the slice is composed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Places", into = "Places")]
pub(crate) struct SlicePlaces(Arc<OnceLock<Places>>);

impl SlicePlaces {
    pub(crate) fn get(&self) -> Option<&Places> {
        self.0.get()
    }

    /// They are known from now on.
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
        // The slice meets threads before it refers to them.
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
