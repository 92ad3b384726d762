//! Divides the time of a block device between the threads that it served during a wait.
//!
//! A request is in service from when its driver takes it (`block_rq_issue`) to its completion;
//! while it is only queued (`block_rq_insert`), the device does not work on it. Each instant
//! belongs to the requests in service at that instant, in proportion to their sizes: a device moves
//! bytes, so a request of 1 MiB takes sixteen times the share of a request of 64 KiB. This is
//! weighted processor sharing (Kleinrock, "Time-shared systems: a theoretical treatment", 1967).
//! For devices that serve one request after the other it is the best estimate that a trace allows:
//! which of the issued requests such a device works on is not recorded. Instants without a request
//! in service belong to no thread.
//!
//! The cost is that of sorting the requests: the service of a request of weight 1 (`virtual time`)
//! grows by `dt / total weight`, and each request receives its weight times that growth over its
//! time in service.

use std::collections::BTreeMap;

use tracebraid_kernel_model::Device;

use crate::cause::ActorId;
use crate::graph::{Graph, Request};

/// The share of a thread in a device's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// The thread that issued the requests; `None` if an interrupt did, or if it is unknown.
    pub by: Option<ActorId>,
    /// When the thread's first request entered service, in nanoseconds from the origin.
    pub since: i64,
    /// Share of the device's time, in nanoseconds, rounded down.
    pub time: u64,
    /// Number of requests.
    pub requests: u64,
}

/// Minimum weight, in sectors: one page. Flushes and commands have no sectors, but occupy the
/// device, too.
const LEAST_SECTORS: u32 = 8;

/// Fraction bits of a nanosecond in which times are counted.
const FRACTION: u32 = 64;

/// Upper bound of the rounding error of a share: virtual time is rounded down by some 2^-64 ns for
/// each request and sector.
const ROUNDED_OFF: u128 = 1 << 44;

/// A request in a window: its time in service and its weight.
struct InService {
    begin: i64,
    end: i64,
    weight: u128,
    /// Index of the thread in the result.
    user: usize,
}

impl Graph {
    /// The threads that a device served between two times, by the completion of the first request
    /// of each. The shares add up to at most the length of the interval.
    pub fn served(&self, trace: u32, device: Device, (begin, end): (i64, i64)) -> Vec<Served> {
        let mut users: Vec<Served> = Vec::new();
        let mut places: BTreeMap<Option<ActorId>, usize> = BTreeMap::new();
        let mut requests = Vec::new();
        for request in self.requests(trace, device, (begin, end)) {
            let Some(mut request_in) = in_service(request, (begin, end)) else {
                continue;
            };
            let place = *places.entry(request.by).or_insert_with(|| {
                users.push(Served {
                    by: request.by,
                    since: request.begin,
                    time: 0,
                    requests: 0,
                });
                users.len() - 1
            });
            request_in.user = place;
            if let Some(user) = users.get_mut(place) {
                user.requests += 1;
                user.since = user.since.min(request.begin);
            }
            requests.push(request_in);
        }
        let mut shares = vec![0u128; users.len()];
        share(&requests, &mut shares);
        for (user, share) in users.iter_mut().zip(shares) {
            user.time = (share.saturating_add(ROUNDED_OFF) >> FRACTION) as u64;
        }
        users
    }
}

fn in_service(request: &Request, (begin, end): (i64, i64)) -> Option<InService> {
    let begin = request.issued.max(begin);
    let end = request.end.min(end);
    (begin < end).then_some(InService {
        begin,
        end,
        weight: u128::from(request.sectors.max(LEAST_SECTORS)),
        user: 0,
    })
}

/// Adds to the share of each thread, in fractions of nanoseconds.
fn share(requests: &[InService], shares: &mut [u128]) {
    // Ends and starts by time. Their order at equal times has no effect, since no time passes in
    // between.
    let ends = requests
        .iter()
        .enumerate()
        .map(|(place, of)| (of.end, false, place));
    let begins = requests
        .iter()
        .enumerate()
        .map(|(place, of)| (of.begin, true, place));
    let mut steps: Vec<(i64, bool, usize)> = ends.chain(begins).collect();
    steps.sort_unstable();
    let mut since = vec![0u128; requests.len()];
    let (mut at, mut grown, mut weight) = (i64::MIN, 0u128, 0u128);
    for (time, begins, place) in steps {
        let passed = u128::from(at.abs_diff(time)) << FRACTION;
        grown += passed.checked_div(weight).unwrap_or(0);
        at = time;
        let (Some(request), Some(since)) = (requests.get(place), since.get_mut(place)) else {
            continue;
        };
        if begins {
            weight += request.weight;
            *since = grown;
            continue;
        }
        weight -= request.weight;
        if let Some(share) = shares.get_mut(request.user) {
            *share += (grown - *since) * request.weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Device = Device(7 << 20);
    const VICTIM: Option<ActorId> = Some(ActorId(0));
    const SCANNER: Option<ActorId> = Some(ActorId(1));

    fn request(by: Option<ActorId>, [begin, issued, end]: [i64; 3], sectors: u32) -> Request {
        Request {
            begin,
            issued,
            end,
            by,
            trace: 0,
            device: DEVICE,
            sectors,
        }
    }

    fn times(mut requests: Vec<Request>, window: (i64, i64)) -> Vec<(Option<ActorId>, u64)> {
        requests.sort_by_key(|request| request.end);
        let longest = requests
            .iter()
            .map(|request| request.end - request.begin)
            .max();
        let graph = Graph {
            longest_request: longest.unwrap_or(0),
            requests: requests.into(),
            ..Graph::default()
        };
        let served = graph.served(0, DEVICE, window).into_iter();
        let mut times: Vec<_> = served.map(|of| (of.by, of.time)).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn who_has_more_in_service_has_more_of_the_time() {
        // 3 MiB of six requests beside 64 KiB; the driver has all requests for the duration of the
        // wait.
        let mut requests = vec![request(VICTIM, [0, 0, 49_000], 128)];
        requests.extend([(); 6].map(|()| request(SCANNER, [0, 0, 49_000], 1024)));
        assert_eq!(
            times(requests, (0, 49_000)),
            [(VICTIM, 1000), (SCANNER, 48_000)]
        );
    }

    #[test]
    fn only_the_time_in_service_counts() {
        // The scanner's request is in service for half a millisecond of a wait of 32 ms; the
        // victim's own is queued for 10 ms.
        let requests = vec![
            request(VICTIM, [0, 10_000_000, 32_000_000], 128),
            request(SCANNER, [-5_000_000, -5_000_000, 500_000], 1024),
        ];
        let expected = [(VICTIM, 22_000_000), (SCANNER, 500_000)];
        assert_eq!(times(requests, (0, 32_000_000)), expected);
    }

    #[test]
    fn flushes_are_served_as_well() {
        let requests = vec![
            request(VICTIM, [0, 0, 10], 0),
            request(SCANNER, [0, 0, 10], 8),
        ];
        assert_eq!(times(requests, (0, 10)), [(VICTIM, 5), (SCANNER, 5)]);
    }

    #[test]
    fn shares_of_any_times_and_sizes_add_up() {
        let whole = (i64::MIN, i64::MAX);
        let times = times(
            vec![
                request(VICTIM, [i64::MIN + 1, i64::MIN + 1, 0], u32::MAX),
                request(SCANNER, [i64::MIN + 1, i64::MIN + 1, 0], 3),
            ],
            whole,
        );
        let all: u64 = times.iter().map(|of| of.1).sum();
        assert!(all.abs_diff(i64::MAX as u64) <= 2, "{times:?}");
    }
}
