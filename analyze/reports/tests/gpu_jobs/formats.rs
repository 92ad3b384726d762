//! One job in the layouts of the kernel's format files, as recorders and importers write them.

use std::path::Path;

use serde_json::{Value, json};
use tracebraid_ctf::schema::build::{Align, Fields, clock, event};
use tracebraid_ctf::schema::{ByteOrder, ClockIndex, EnvValue, Scope};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::write::lttng::{HeaderKind, stream_class, trace_class};
use tracebraid_ctf::write::trace::{Options, Session};
use tracebraid_tracepoint::Format;

/// A field: its declaration, size in bytes and value; text has a value of its own.
type Field = (&'static str, u32, Given);

#[derive(Clone, Copy)]
enum Given {
    Int(u64),
    Text(&'static str),
}
use Given::{Int, Text};

/// Category and name of a tracepoint, and its fields in the order of the kernel's headers.
type Record = (&'static str, &'static str, Vec<Field>);

const COMMON: [Field; 4] = [
    ("unsigned short common_type", 2, Int(1)),
    ("unsigned char common_flags", 1, Int(0)),
    ("unsigned char common_preempt_count", 1, Int(0)),
    ("int common_pid", 4, Int(500)),
];

/// The format file, and the record. The kernel aligns each field to its size.
fn encoded(fields: &[Field], name: &str) -> (String, Vec<u8>) {
    let mut lines = format!("name: {name}\nID: 1\nformat:\n");
    let (mut raw, mut texts) = (Vec::<u8>::new(), Vec::new());
    for (declaration, size, given) in COMMON.iter().chain(fields) {
        raw.resize(raw.len().next_multiple_of(*size as usize), 0);
        let offset = raw.len();
        lines += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:0;\n");
        match given {
            Int(value) => raw.extend(&value.to_le_bytes()[..*size as usize]),
            Text(text) => {
                texts.push((offset, *text));
                raw.extend([0; 4]);
            }
        }
    }
    for (offset, text) in texts {
        let place = raw.len() as u32 | (text.len() as u32 + 1) << 16;
        raw[offset..offset + 4].copy_from_slice(&place.to_le_bytes());
        raw.extend(text.bytes().chain([0]));
    }
    lines += "\nprint fmt: \"\"\n";
    (lines, raw)
}

/// Writes a trace with these records, a microsecond apart.
fn write(to: &Path, records: &[Record]) {
    let order = ByteOrder::Little;
    let mut class = trace_class(Default::default(), order);
    class.clocks.push(clock("monotonic", 1_000_000_000, 0));
    let context = [("cpu_id", 32)];
    let stream = stream_class(0, order, ClockIndex::default(), HeaderKind::Large, &context);
    class.streams.push(stream);
    let domain = ("domain".to_owned(), EnvValue::Str("kernel".to_owned()));
    class.environment.push(domain);
    let session = Session::create(to).expect("created");
    let trace = session.trace(Path::new("kernel"), &class, Options::default());
    let mut trace = trace.expect("begun");
    let mut stream = trace
        .stream(0, "channel0_0", 0, &[("cpu_id", 0)])
        .expect("a stream");
    for (number, (category, name, fields)) in (0..).zip(records) {
        let (text, raw) = encoded(fields, name);
        let format = Format::parse(category, &text, 8).expect("a format");
        let payload = format.add_to(Fields::new(Scope::Payload, order, Align::Bytes));
        let plan = trace
            .add_event(0, &event(number, &format.name, payload))
            .expect("a class");
        let written = stream.record(&plan, 1000 * (number + 1), |to| {
            format.give(&raw, false, to)
        });
        written.expect("written");
    }
    stream.finish().expect("written");
    drop(trace);
    session.finish().expect("finished");
}

fn rows(records: &[Record]) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    write(&path, records);
    let set = TraceSet::open(&[&path]).expect("a trace");
    let report = super::report(&set);
    let columns = ["tid", "device", "ring", "host_queue_ns", "execution_ns"];
    let rows = report["jobs"].as_array().expect("a table").iter();
    let of = |row: &Value| json!(columns.map(|column| row[column].clone()));
    rows.map(of).collect()
}

#[test]
fn jobs_are_found_in_the_layouts_of_the_kernel() {
    let fence = |name| {
        (
            "dma_fence",
            name,
            vec![
                ("__data_loc char[] driver", 4, Text("virtio_gpu")),
                ("__data_loc char[] timeline", 4, Text("controlq")),
                ("unsigned int context", 4, Int(9)),
                ("unsigned int seqno", 4, Int(7)),
            ],
        )
    };
    let old = |name| {
        (
            "gpu_scheduler",
            name,
            vec![
                ("struct drm_sched_entity * entity", 8, Int(0xe0)),
                ("struct dma_fence * fence", 8, Int(0xffff_8880_0000_1000)),
                ("__data_loc char[] name", 4, Text("gfx")),
                ("uint64_t id", 8, Int(3)),
                ("u32 job_count", 4, Int(1)),
                ("int hw_job_count", 4, Int(1)),
            ],
        )
    };
    let old_done = vec![("struct dma_fence * fence", 8, Int(0xffff_8880_0000_1000))];
    let new = |name| {
        (
            "gpu_scheduler",
            name,
            vec![
                ("__data_loc char[] name", 4, Text("gfx_0.0.0")),
                ("u32 job_count", 4, Int(1)),
                ("int hw_job_count", 4, Int(1)),
                ("__data_loc char[] dev", 4, Text("0000:03:00.0")),
                ("u64 fence_context", 8, Int(9)),
                ("u64 fence_seqno", 8, Int(7)),
                ("u64 client_id", 8, Int(4)),
            ],
        )
    };
    let new_done = vec![
        ("u64 fence_context", 8, Int(9)),
        ("u64 fence_seqno", 8, Int(7)),
    ];
    let intel = |name, more: Field| {
        (
            "i915",
            name,
            vec![
                ("u32 dev", 4, Int(0)),
                ("u64 ctx", 8, Int(9)),
                ("u16 class", 2, Int(2)),
                ("u16 instance", 2, Int(1)),
                ("u32 seqno", 4, Int(7)),
                more,
            ],
        )
    };
    let xe = |name| {
        (
            "xe",
            name,
            vec![
                ("__data_loc char[] dev", 4, Text("0000:00:02.0")),
                ("u32 seqno", 4, Int(7)),
                ("u32 lrc_seqno", 4, Int(7)),
                ("u8 gt_id", 1, Int(0)),
                ("u16 guc_id", 2, Int(3)),
                ("u32 guc_state", 4, Int(0)),
                ("u32 flags", 4, Int(0)),
                ("int error", 4, Int(0)),
                ("struct dma_fence * fence", 8, Int(0xabc0)),
                ("u64 batch_addr", 8, Int(0)),
            ],
        )
    };
    let xe_done = vec![
        ("u64 ctx", 8, Int(9)),
        ("u32 seqno", 4, Int(7)),
        ("struct xe_hw_fence * fence", 8, Int(0xabc0)),
    ];
    let amd = |name| {
        (
            "amdgpu",
            name,
            vec![
                ("uint64_t sched_job_id", 8, Int(3)),
                ("__data_loc char[] timeline", 4, Text("timeline")),
                ("unsigned int context", 4, Int(9)),
                ("unsigned int seqno", 4, Int(7)),
                ("__data_loc char[] ring", 4, Text("sdma0")),
                ("u32 num_ibs", 4, Int(1)),
            ],
        )
    };
    let out = ("u32 completed", 4, Int(1));
    for (records, expected) in [
        (
            vec![
                old("drm_sched_job"),
                old("drm_run_job"),
                ("gpu_scheduler", "drm_sched_process_job", old_done),
            ],
            json!([[500, "", "gfx", 1000, 1000]]),
        ),
        (
            vec![
                new("drm_sched_job_queue"),
                new("drm_sched_job_run"),
                ("gpu_scheduler", "drm_sched_job_done", new_done),
            ],
            json!([[500, "0000:03:00.0", "gfx_0.0.0", 1000, 1000]]),
        ),
        (
            vec![
                intel("i915_request_add", ("u32 tail", 4, Int(0))),
                intel("i915_request_in", ("u32 port", 4, Int(0))),
                intel("i915_request_out", out),
            ],
            json!([[500, "card0", "vcs1", 1000, 1000]]),
        ),
        (
            vec![
                xe("xe_sched_job_exec"),
                xe("xe_sched_job_run"),
                ("xe", "xe_hw_fence_signal", xe_done),
            ],
            json!([[500, "0000:00:02.0", "queue 3", 1000, 1000]]),
        ),
        (
            vec![
                amd("amdgpu_cs_ioctl"),
                amd("amdgpu_sched_run_job"),
                fence("dma_fence_signaled"),
            ],
            json!([[500, "", "sdma0", 1000, 1000]]),
        ),
        (
            vec![fence("dma_fence_emit"), fence("dma_fence_signaled")],
            json!([[500, "virtio_gpu", "controlq", 0, 1000]]),
        ),
    ] {
        assert_eq!(rows(&records), expected, "{}", records[0].1);
    }
}
