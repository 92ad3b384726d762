//! Paths that go from one machine to another one and back.

use std::path::PathBuf;

use tracebraid_critical_path::{Actor, Graph, Link, Path, Reason, Segment};
use tracebraid_fold::Options;
use tracebraid_kernel_fold::Selection;

use crate::support::traces;

/// What the client's clock is ahead of the server's, in nanoseconds: between 3.716590 s and 3.717036 s, as the
/// segments between them tell.
const AHEAD: i64 = 3_716_800_000;

/// The trace of the client with its clock set to that of the server.
fn client(directory: &std::path::Path) -> PathBuf {
    let from = directory.join("twohost-client/kernel");
    let to = directory.join(format!("client-as-server-{}", std::process::id()));
    let files = std::fs::read_dir(&from).expect("the trace is there");
    std::fs::create_dir_all(&to).expect("a directory");
    for file in files
        .map(|file| file.expect("a file"))
        .filter(|file| file.path().is_file())
    {
        let mut bytes = std::fs::read(file.path()).expect("it can be read");
        if file.file_name() == "metadata" {
            let set = traces::open(std::slice::from_ref(&from));
            let origin = traces::origin(&set, 0);
            replace(&mut bytes, &origin.to_string(), &(origin - AHEAD).to_string());
        }
        std::fs::write(to.join(file.file_name()), bytes).expect("it can be written");
    }
    to
}

fn replace(bytes: &mut [u8], from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let at = bytes
        .windows(from.len())
        .position(|window| window == from.as_bytes());
    let at = at.expect("the offset of the clock stands in the metadata");
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
}

/// The names of the threads of a path and how it came to them.
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
    let server = directory.join("twohost-server/kernel");
    let shifted = client(&directory);
    let set = traces::open(&[server, shifted.clone()]);
    let host = |name: &str| {
        let is = |trace: &tracebraid_ctf::trace::Trace| trace.layout.class.env_str("hostname") == Some(name);
        set.traces.iter().position(is).expect("both machines are there")
    };
    let (server, client) = (host("srv"), host("cli"));
    let graph = traces::graph(&set, Selection::default(), Options::default());
    let (of_server, of_client) = (traces::origin(&set, server), traces::origin(&set, client));
    let requests = traces::rows(&directory.join("twohost-server.truth/requests.csv"));
    let answers = traces::rows(&directory.join("twohost-client.truth/client.csv"));
    let time = |text: &str| text.parse::<i64>().expect("a time");
    let is_reader =
        |actor: &Actor| actor.key.trace as usize == client && actor.name.as_deref() == Some("client-rx");
    let (reader, _) = graph
        .ids()
        .filter(|(_, actor)| is_reader(actor))
        .last()
        .expect("the client reads");
    let received = |answer: &Vec<String>| of_client + time(&answer[2]);
    let (mut slow, mut told) = (0, 0);
    for request in requests.iter().filter(|request| request[3] != "none") {
        let answer = answers
            .iter()
            .find(|answer| answer[0] == request[0])
            .expect("it was answered");
        let end = received(answer);
        let earlier = answers.iter().map(received).filter(|&time| time < end);
        // From when the server had turned to it, and the client had the answer before, which the network may delay.
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
            *trace as usize == server && name.starts_with("worker") && matches!(link, Link::Sends(_))
        });
        assert!(is_crossed, "request {id}: {:?}", path.hops);
        let is_back = path.segments.last().is_some_and(|last| last.hop == 0);
        assert!(is_back, "request {id}: {:?}", path.segments.last());
        // The client does things of its own, too.
        let own = |segment: &&Segment| segment.hop == 0 && graph.reason(&path, segment) != Reason::Network;
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
        // The network between emulated machines takes some milliseconds at times, in which the server does other things.
        told += u32::from(found >= 0.95 * expected);
    }
    std::fs::remove_dir_all(shifted).expect("it can be removed");
    assert!(slow > 200 && told >= 180, "{told} of {slow}");
}
