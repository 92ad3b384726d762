//! Packets whose UUID differs from that of the metadata.

use crate::support::{run, text};

#[test]
fn they_are_read_with_one_warning_that_strict_makes_a_failure() {
    let directory = tempfile::tempdir().expect("a directory");
    let metadata = "/* CTF 1.8 */
        typealias integer { size = 8; } := u8;
        typealias integer { size = 32; align = 8; } := u32;
        trace { major = 1; minor = 8; byte_order = le; uuid = \"00000000-0000-0000-0000-000000000001\";
            packet.header := struct { u32 magic; u8 uuid[16]; }; };
        stream { packet.context := struct { u32 packet_size; }; };
        event { name = e; fields := struct { u8 a; }; };";
    std::fs::write(directory.path().join("metadata"), metadata).expect("metadata");
    let packet = |value: u8| {
        let mut bytes = 0xc1fc_1fc1_u32.to_le_bytes().to_vec();
        bytes.extend([5; 16]);
        bytes.extend(200_u32.to_le_bytes());
        bytes.push(value);
        bytes
    };
    let bytes: Vec<u8> = (0..100).flat_map(packet).collect();
    std::fs::write(directory.path().join("stream"), bytes).expect("a stream");
    let trace = directory.path().to_str().expect("UTF-8");
    let lines = text(&["print", trace]);
    assert_eq!(lines.lines().count(), 100);
    assert!(lines.ends_with("e: { a = 99 }\n"), "{lines}");
    for command in ["print", "count"] {
        for (strict, code) in [(None, 0), (Some("--strict"), 1)] {
            let arguments: Vec<&str> = [command, trace].into_iter().chain(strict).collect();
            let output = run(&arguments);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{errors}");
            assert_eq!(errors.matches("UUID").count(), 1, "{errors}");
            assert!(errors.contains("100 packets"), "{errors}");
        }
    }
}
