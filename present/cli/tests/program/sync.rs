//! Several hosts with a common time, with the real program.

use std::collections::HashMap;
use std::path::Path;

use crate::support::{failure, published, recorded, run, text};
use serde_json::Value;

/// Recordings of a server and its client, whose clock is 3.7166 s ahead.
fn two_hosts() -> [String; 2] {
    let directory = recorded("twohost");
    ["twohost-server", "twohost-client"]
        .map(|name| directory.join(name).to_str().unwrap().to_owned())
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(arguments)).expect("JSON")
}

#[test]
fn two_hosts_are_related() {
    let [server, client] = &two_hosts();
    insta::assert_snapshot!("sync-table", text(&["sync", server, client]));
    insta::assert_snapshot!(
        "sync-csv",
        text(&["sync", "--format", "csv", server, client])
    );
    let found = json(&[
        "sync",
        "--format",
        "json",
        "--reference",
        "cli",
        server,
        client,
    ]);
    assert_eq!(found["reference"], "cli");
    let host = &found["hosts"][0];
    assert_eq!(
        (&host["host"], &host["through"][0]),
        (&"srv".into(), &"cli".into())
    );
    let offset = host["offset_ns"].as_i64().unwrap();
    assert!(
        (3_716_590_000..=3_717_036_000).contains(&offset),
        "{offset}"
    );
    // For two hosts, the table of pairs contains the same values, in the same direction.
    let pair = &found["pairs"][0];
    assert_eq!(
        (&pair["reference"], &pair["other"]),
        (&"cli".into(), &"srv".into())
    );
    assert_eq!(pair["offset_ns"], host["offset_ns"]);
    assert!(pair["packets_to_reference"].as_u64() > Some(0));
    // The result does not depend on threads and chunks.
    let way = |threads, size| text(&["sync", "-j", threads, "--chunk-size", size, server, client]);
    assert_eq!(way("1", "1G"), way("3", "4K"));
}

/// Bytes that identify a TCP segment, and the time at which it was sent or received, from `print`.
fn segments(arguments: &[&str]) -> HashMap<(String, String), Vec<(String, i64)>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    let mut last = i64::MIN;
    for line in text(arguments).lines() {
        let event: Value = serde_json::from_str(line).expect("a line is a JSON object");
        let time = event["timestamp"].as_i64().unwrap();
        assert!(last <= time, "events are in the order of time");
        last = time;
        let Some(host) = event["hostname"].as_str() else {
            continue;
        };
        let payload = &event["payload"];
        let headers = match &payload["network_header"] {
            Value::Null => format!(
                "{} {} {}",
                payload["seq"], payload["ack_seq"], payload["flags"]
            ),
            header => {
                let names = ["saddr", "daddr"].map(|name| header[name].to_string());
                let tcp = &header["transport_header"];
                let names_of_tcp = ["source_port", "dest_port", "seq", "ack_seq", "flags"];
                format!(
                    "{names:?} {:?}",
                    names_of_tcp.map(|name| tcp[name].to_string())
                )
            }
        };
        let name = event["name"].as_str().unwrap();
        let step = match name.contains("receive") || name.ends_with("_in") {
            true => "received",
            false => "sent",
        };
        found
            .entry((step.to_owned(), headers))
            .or_default()
            .push((host.to_owned(), time));
    }
    found
}

/// Number of segments from one host to the other; none arrives before it was sent.
fn arrive_after_they_were_sent(arguments: &[&str]) -> usize {
    let segments = segments(arguments);
    let sent = segments.iter().filter(|((step, _), _)| step == "sent");
    let mut count = 0;
    for ((_, headers), sent) in sent {
        let received = segments.get(&("received".to_owned(), headers.clone()));
        let ([sent], Some([received])) = (&sent[..], received.map(Vec::as_slice)) else {
            continue;
        };
        if sent.0 != received.0 {
            assert!(sent.1 <= received.1, "{headers}: {sent:?} {received:?}");
            count += 1;
        }
    }
    count
}

#[test]
fn no_packet_arrives_before_it_was_sent() {
    let [server, client] = &two_hosts();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clocks.json");
    let file = file.to_str().unwrap();
    text(&["sync", "-o", file, server, client]);
    let packets = "net_dev_queue,net_if_receive_skb";
    let print = [
        "print", "--format", "json", "--name", packets, "--sync", file, server, client,
    ];
    let count = arrive_after_they_were_sent(&print);
    assert!(count > 5_700, "{count}");
}

#[test]
fn no_packet_of_the_scp_pair_arrives_before_it_was_sent() {
    let Some(directory) = published("public/synctraces") else {
        return;
    };
    let path = |name| directory.join(name).to_str().unwrap().to_owned();
    let (source, destination) = (path("scp_src"), path("scp_dest"));
    let packets = "inet_sock_local_in,inet_sock_local_out";
    let print = [
        "print",
        "--format",
        "json",
        "--name",
        packets,
        "--sync",
        "auto",
        &source,
        &destination,
    ];
    assert_eq!(arrive_after_they_were_sent(&print), 46);
    let found = json(&["sync", "--format", "json", &source, &destination]);
    // The recording is too short: its packets bound the drift less than the known properties of
    // clocks do (see docs/reference/sync.md).
    assert_eq!(found["pairs"][0]["accuracy"], "approximate");
}

/// Output for the two hosts with their own times, and with a common time.
#[test]
fn every_command_can_read_hosts_with_one_time() {
    let [server, client] = &two_hosts();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clocks.json");
    let file = file.to_str().unwrap();
    text(&["sync", "-o", file, server, client]);
    let length = |options: &[&str]| {
        let report = json(
            &[
                &["cpu", "--format", "json"],
                options,
                &[server.as_str(), client],
            ]
            .concat(),
        );
        report["duration_ns"].as_i64().expect("a number")
    };
    let shorter = length(&[]) - length(&["--sync", file]);
    // By its own clock, the client's last event is 3.531677171 s after the server's last one; in
    // fact it is earlier.
    assert_eq!(shorter, 3_531_677_171);
    assert_eq!(length(&["--sync", file]), length(&["--sync", "auto"]));
    for command in ["report", "count", "net", "sched", "io", "waits", "info"] {
        let read = |from| text(&[command, "--sync", from, server, client]);
        // The commands of the summary name the option.
        let found = read(file).replace(file, "auto");
        assert_eq!(found, read("auto"), "{command}");
        let alone = text(&[command, server, client]);
        // Output without times is unchanged.
        assert!(
            command == "report" || command == "io" || found != alone,
            "{command}"
        );
    }
    // The reference's own times are unchanged.
    let line = |options: &[&str]| {
        text(&[&["print", "--limit", "1"], options, &[server.as_str()]].concat())
    };
    assert_eq!(line(&[]), line(&["--sync", file]));
    // A time range applies to the common time.
    let part = |options: &[&str]| {
        let range = ["count", "--format", "json", "--from", "+30s", "--to", "+1s"];
        json(&[&range[..], options, &[server.as_str(), client]].concat())["events"].as_u64()
    };
    assert!(part(&["--sync", file]).is_some_and(|events| events > 0));
}

#[test]
fn hosts_that_are_not_related_are_told_of() {
    let [server, client] = &two_hosts();
    let stranger = crate::support::recorded_trace("kernel-mix-small");
    let traces = [server.as_str(), client, &stranger];
    let output = run(&[&["sync"], &traces[..]].concat());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    assert!(
        errors.contains("vm1: its clock cannot be aligned with that of srv"),
        "{errors}"
    );
    let (code, _) = failure(&[&["sync", "--strict"], &traces[..]].concat());
    assert_eq!(code, 1);
    let (code, errors) = failure(&[&["count", "--strict", "--sync", "auto"], &traces[..]].concat());
    assert_eq!(code, 1);
    assert!(
        errors.contains("cannot be aligned with the reference clock")
            && errors.contains("kernel-mix-small"),
        "{errors}"
    );
    let (code, errors) = failure(&["sync", "--reference", "nosuch", server, client]);
    assert_eq!(code, 2);
    assert!(
        errors.contains("the traces were recorded on: srv, cli"),
        "{errors}"
    );
    let output = run(&["sync", &stranger]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("all traces come from one host"), "{errors}");
}

/// Files in other formats, or with impossible values.
#[test]
fn wrong_files_are_refused() {
    let [server, client] = &two_hosts();
    let directory = tempfile::tempdir().unwrap();
    let good = directory.path().join("good.json");
    text(&["sync", "-o", good.to_str().unwrap(), server, client]);
    let good = std::fs::read_to_string(good).unwrap();
    let refused = |name: &str, content: &str, why: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let (code, errors) = failure(&["count", "--sync", path.to_str().unwrap(), server, client]);
        assert_eq!(code, 2, "{name}: {errors}");
        assert!(
            errors.contains(why) && errors.contains(name),
            "{name}: {errors}"
        );
    };
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        good.replacen(from, to, 1)
    };
    refused(
        "text",
        "hello",
        "not a file written by `tracebraid sync -o`",
    );
    refused(
        "other",
        "{\"hosts\": []}",
        "not a file written by `tracebraid sync -o`",
    );
    let newer = with("\"tracebraid_sync\": 1", "\"tracebraid_sync\": 2");
    refused("newer", &newer, "unsupported version 2, expected 1");
    let line = good.split("\"drift_e18\": ").nth(1).unwrap();
    let drift = line.split_whitespace().next().unwrap();
    let fast = good.replacen(drift, "9223372036854775807", 1);
    refused("fast", &fast, "a drift of 9223372036854775807");
    refused(
        "stranger",
        &good.replace("\"srv\"", "\"a\"").replace("\"cli\"", "\"b\""),
        "none of the hosts",
    );
    let missing = directory.path().join("missing");
    let (code, _) = failure(&["count", "--sync", missing.to_str().unwrap(), server]);
    assert_eq!(code, 2);
    // Absurd but possible: times saturate.
    let offset = good
        .split("\"offset_ns\": ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    refused(
        "far",
        &good.replacen(offset, "9223372036854775807", 1),
        "an offset of 9223372036854775807 ns",
    );
    for absurd in ["2305843009213693952", "-2305843009213693952"] {
        let path = directory.path().join("absurd");
        std::fs::write(&path, good.replacen(offset, absurd, 1)).unwrap();
        for command in ["print", "count", "cpu", "info"] {
            let output = run(&[
                Path::new(command),
                "--sync".as_ref(),
                &path,
                server.as_ref(),
                client.as_ref(),
            ]);
            assert!(
                output.status.success(),
                "{command}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}
