//! Paths that go from one machine to another and back.

use tracebraid_clocks::{Machines, Matches, PacketAnalysis, Synchronization};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_graph::{Actor, Graph, Link, Path, Segment, WaitReason};

use crate::support::traces;

/// Applies the server's time to all traces, from their packets.
fn synchronize(set: &mut TraceSet) -> Synchronization {
    let analysis = PacketAnalysis::new(set, Selection::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    let packets = outcome.expect("not cancelled").report;
    let machines = Machines::of(set);
    let matches = Matches::of(&packets, &machines);
    let found =
        Synchronization::of(machines, &matches, Some("srv")).expect("the hosts are related");
    let unknown = found.transformations().apply(set);
    assert!(unknown.expect("the traces can be corrected").is_empty());
    found
}

/// The threads of a path, with host and link.
fn names<'g>(graph: &'g Graph, path: &Path) -> Vec<(u32, &'g str, Link)> {
    let hops = path.hops.iter().filter_map(|hop| {
        let actor = graph.actor(hop.actor)?;
        Some((actor.key.trace, actor.name.as_deref()?, hop.link))
    });
    hops.collect()
}

#[test]
fn paths_cross_to_the_server_and_back() {
    let directory = tracebraid_testkit::recorded::unpacked("twohost");
    let kernels =
        ["twohost-server", "twohost-client"].map(|host| directory.join(host).join("kernel"));
    let mut set = traces::open(&kernels);
    let found = synchronize(&mut set);
    let host = |name: &str| {
        let is = |trace: &tracebraid_ctf::trace::Trace| {
            trace.layout.class.env_str("hostname") == Some(name)
        };
        set.traces
            .iter()
            .position(is)
            .expect("both machines are there")
    };
    let (server, client) = (host("srv"), host("cli"));
    let graph = traces::graph(&set, Selection::default(), Options::default());
    let (of_server, of_client) = (traces::origin(&set, server), traces::origin(&set, client));
    let requests = traces::rows(&directory.join("twohost-server.truth/requests.csv"));
    let answers = traces::rows(&directory.join("twohost-client.truth/client.csv"));
    let time = |text: &str| text.parse::<i64>().expect("a time");
    let is_reader = |actor: &Actor| {
        actor.key.trace as usize == client && actor.name.as_deref() == Some("client-rx")
    };
    let (reader, _) = graph
        .ids()
        .filter(|(_, actor)| is_reader(actor))
        .last()
        .expect("the client reads");
    let related = found.hosts.iter().find(|related| related.host == "cli");
    let correction = related.expect("the client is there").correction();
    let correction = correction.expect("the client is related");
    let received =
        |answer: &Vec<String>| correction.apply(Timestamp(of_client + time(&answer[2]))).0;
    let (mut slow, mut told, mut within) = (0, 0, 0);
    for request in requests.iter().filter(|request| request[3] != "none") {
        let answer = answers
            .iter()
            .find(|answer| answer[0] == request[0])
            .expect("it was answered");
        let end = received(answer);
        let earlier = answers.iter().map(received).filter(|&time| time < end);
        // From when the server began the request and the client had the previous answer, which the
        // network may delay.
        let begin = earlier.fold(of_server + time(&request[1]), i64::max);
        let done = of_server + time(&request[2]);
        let path = graph.path(reader, begin, end);
        assert!(path.tiles(begin, end));
        if done - begin < 20_000_000 {
            continue;
        }
        slow += 1;
        let id = &request[0];
        let is_crossed = names(&graph, &path).iter().any(|(trace, name, link)| {
            *trace as usize == server
                && name.starts_with("worker")
                && matches!(link, Link::Sends(_))
        });
        assert!(is_crossed, "request {id}: {:?}", path.hops);
        let is_back = path.segments.last().is_some_and(|last| last.hop == 0);
        assert!(is_back, "request {id}: {:?}", path.segments.last());
        // The client has activity of its own, too.
        let own = |segment: &&Segment| {
            segment.hop == 0 && graph.reason(&path, segment) != WaitReason::Network
        };
        let own = path.segments.iter().filter(own);
        let own: i64 = own
            .map(|segment| (segment.end.min(done) - segment.begin).max(0))
            .sum();
        let hosts = graph.summary(&path).hosts;
        let found = hosts
            .iter()
            .find(|of| of.0 as usize == server)
            .map_or(0, |of| of.1) as f64;
        let expected = (done - begin - own) as f64;
        // The network between the emulated machines takes some milliseconds at times, in which the
        // server is active for other requests.
        told += u32::from(found >= 0.95 * expected);
        // In addition, sending the answer takes the server some milliseconds at times.
        let whole = (end - begin) as f64;
        within += u32::from(found <= 1.05 * (done - begin) as f64 + 2_000_000.0 && found < whole);
    }
    assert!(slow > 200 && told >= 180, "{told} of {slow}");
    assert!(within >= slow * 9 / 10, "{within} of {slow}");
}
