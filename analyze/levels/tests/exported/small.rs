//! Lines of a small super-trace: every state, link, function and event.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tracebraid_ctf::schema::build::{Align, Fields, clock, event};
use tracebraid_ctf::schema::{ByteOrder, ClockIndex, EnvValue, Scope};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::write::EventPlan;
use tracebraid_ctf::write::fields::Fields as Values;
use tracebraid_ctf::write::lttng::{HeaderKind, stream_class, trace_class};
use tracebraid_ctf::write::stream::StreamWriter;
use tracebraid_ctf::write::trace::{Options, Session, StreamFiles};
use tracebraid_levels::exported::{Item, LineId, Sink, export};

/// Process 40 with LWPs 41 and 42; its user-level threads 1 and 2; a hog, 50.
const ONE: i32 = 100_000_001;
const TWO: i32 = 100_000_002;
const READY: i64 = 0x4000_0000;

/// Thread, LWP and user-level thread of a record.
type Context = (i32, i32, u64);

struct Writer {
    classes: BTreeMap<&'static str, Arc<EventPlan>>,
    streams: Vec<StreamWriter<StreamFiles>>,
    time: u64,
}

fn payload() -> Fields {
    Fields::new(Scope::Payload, ByteOrder::Little, Align::Bytes)
}

impl Writer {
    fn record(
        &mut self,
        cpu: usize,
        (tid, lwp, ult): Context,
        class: &str,
        mut give: impl FnMut(&mut Values<'_>),
    ) {
        self.time += 100;
        let plan = &self.classes[class];
        let written = self.streams[cpu].record(plan, self.time, |fields| {
            fields.int(tid.into()).int(lwp.into()).uint(ult);
            give(fields);
        });
        written.expect("written");
    }

    fn switch(&mut self, cpu: usize, context: Context, state: i64, next: (i32, &str), level: u64) {
        self.record(cpu, context, "sched_switch", |fields| {
            fields.int(context.0.into()).int(state);
            fields.text_of(next.1).int(next.0.into()).uint(level);
        });
    }

    fn wake(&mut self, cpu: usize, context: Context, tid: i32, level: u64) {
        self.record(cpu, context, "sched_wakeup", |fields| {
            fields.int(tid.into()).uint(level);
        });
    }
}

trait TextOf {
    fn text_of(&mut self, text: &str) -> &mut Self;
}

impl TextOf for Values<'_> {
    fn text_of(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }
}

/// Writes the trace: comments describe its events.
fn write(to: &Path) {
    let order = ByteOrder::Little;
    let mut class = trace_class([7; 16], order);
    class.clocks.push(clock("monotonic", 1_000_000_000, 0));
    let context = [("cpu_id", 32)];
    let mut stream = stream_class(0, order, ClockIndex::default(), HeaderKind::Large, &context);
    let common = Fields::new(Scope::CommonContext, order, Align::Bytes);
    stream.common_context = Some(common.int("tid", 32).int("lwp", 32).uint("ult", 64).build());
    class.streams.push(stream);
    let text = |text: &str| EnvValue::Str(text.to_owned());
    class.environment = vec![
        ("hostname".to_owned(), text("host")),
        ("domain".to_owned(), text("kernel")),
        ("tracer_name".to_owned(), text("tracebraid-levels")),
        ("tracebraid_levels".to_owned(), EnvValue::Int(1)),
    ];
    let session = Session::create(to).expect("a session");
    let mut trace = session
        .trace(Path::new(""), &class, Options::default())
        .expect("a trace");
    let switch = payload().int("prev_tid", 32).int("prev_state", 64);
    let switch = switch
        .text("next_comm", 16)
        .int("next_tid", 32)
        .uint("level", 8);
    let thread = payload().int("tid", 32).int("pid", 32).uint("ult", 64);
    let classes = [
        ("sched_switch", switch),
        ("sched_wakeup", payload().int("tid", 32).uint("level", 8)),
        (
            "sched_process_exit",
            payload().int("tid", 32).uint("level", 8),
        ),
        (
            "tracebraid_levels:thread",
            thread.string("name").string("runtime"),
        ),
        ("ult_wait_entry_mutex", payload()),
        ("tracebraid:prof_in", payload().string("name")),
        ("tracebraid:prof_out", payload().string("name")),
        ("app:step", payload().uint("number", 32)),
    ];
    let mut plans = BTreeMap::new();
    for (id, (name, fields)) in classes.into_iter().enumerate() {
        let plan = trace
            .add_event(0, &event(id as u64, name, fields))
            .expect("a class");
        plans.insert(name, plan);
    }
    let stream = |cpu: i64| {
        let name = format!("channel0_{cpu}");
        trace
            .stream(0, &name, cpu as u64, &[("cpu_id", cpu)])
            .expect("a stream")
    };
    let mut trace_writer = trace_streams(stream);
    let mut writer = Writer {
        classes: plans,
        streams: std::mem::take(&mut trace_writer),
        time: 0,
    };
    play(&mut writer);
    for stream in writer.streams {
        stream.finish().expect("a stream");
    }
    drop(trace);
    session.finish().expect("a trace");
}

fn trace_streams(
    mut stream: impl FnMut(i64) -> StreamWriter<StreamFiles>,
) -> Vec<StreamWriter<StreamFiles>> {
    vec![stream(0), stream(1)]
}

fn play(writer: &mut Writer) {
    let idle = (0, 0, 0);
    let scheduler = (41, 41, 0);
    for (tid, ult, name) in [(ONE, 1, "one"), (TWO, 2, "two")] {
        writer.record(0, idle, "tracebraid_levels:thread", |fields| {
            fields
                .int(tid.into())
                .int(40)
                .uint(ult)
                .string(name)
                .string("test");
        });
    }
    // 300: CPU 0 takes up LWP 41, which switches to one.
    writer.switch(0, idle, 0, (41, "lwp"), 0);
    writer.switch(0, scheduler, READY, (ONE, "one"), 1);
    let one = (ONE, 41, 1);
    writer.record(0, one, "tracebraid:prof_in", |fields| {
        fields.string("work");
    });
    writer.record(0, one, "app:step", |fields| {
        fields.uint(1);
    });
    // 700: the kernel takes the CPU for the hog, and gives it back on CPU 1.
    writer.switch(0, one, 0, (50, "hog"), 0);
    writer.switch(1, idle, 0, (ONE, "one"), 0);
    writer.record(1, one, "tracebraid:prof_out", |fields| {
        fields.string("work");
    });
    // 1000: one waits for a mutex; LWP 41 runs two, which wakes one.
    writer.record(1, one, "ult_wait_entry_mutex", |_| {});
    writer.switch(1, one, 1, (TWO, "two"), 1);
    let two = (TWO, 41, 2);
    writer.wake(1, two, ONE, 1);
    // 1300: LWP 41 sleeps in the kernel with two, and an interrupt on CPU 1 wakes it.
    writer.switch(1, two, 1, (0, "swapper/1"), 0);
    writer.wake(1, idle, TWO, 0);
    writer.switch(1, idle, 0, (TWO, "two"), 0);
    // 1600: LWP 42 begins on CPU 0 and takes one.
    writer.switch(0, (50, 50, 0), 0, (42, "lwp"), 0);
    writer.switch(0, (42, 42, 0), READY, (ONE, "one"), 1);
    // 1800: two ends.
    writer.record(1, two, "sched_process_exit", |fields| {
        fields.int(TWO.into()).uint(1);
    });
    writer.switch(1, two, 16, (41, "lwp"), 1);
}

#[derive(Default)]
struct Texts {
    names: Vec<String>,
    texts: Vec<String>,
}

impl Texts {
    fn name(&self, line: LineId) -> &str {
        &self.names[line.0 as usize]
    }
}

impl Sink for Texts {
    fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        let text = match item {
            Item::Line(line) => {
                assert_eq!(line.id.0 as usize, self.names.len());
                let above = line.parent.map_or("", |parent| self.name(parent));
                let text = format!("{:?} {} in {above:?}", line.kind, line.title());
                self.names.push(line.title());
                text
            }
            Item::State {
                time,
                line,
                state,
                on,
            } => {
                let on = on
                    .map(|on| format!(" on {}", self.name(on)))
                    .unwrap_or_default();
                format!(
                    "{time} {}: {} {}{on}",
                    self.name(*line),
                    state.word(),
                    state.detail()
                )
            }
            Item::Link {
                time,
                kind,
                from,
                to,
                ..
            } => {
                format!(
                    "{time} {kind:?}: {} to {}",
                    self.name(*from),
                    self.name(*to)
                )
            }
            Item::Function { time, line, name } => {
                format!("{time} {}: {name:?}", self.name(*line))
            }
            Item::Event { time, line, name } => format!("{time} {}: {name}", self.name(*line)),
        };
        self.texts.push(text);
        Ok(())
    }

    fn finish(&mut self, end: i64) -> io::Result<()> {
        self.texts.push(format!("{end} end"));
        Ok(())
    }
}

const EXPECTED: &str = "\
Machine host in \"\"
Process process 40 in \"host\"
Thread one (100000001) in \"process 40\"
Thread two (100000002) in \"process 40\"
Cpu CPU 0 in \"host\"
300 CPU 0: running lwp
Lwp LWP 41 in \"process 40\"
400 LWP 41: in scheduler  on CPU 0
400 CPU 0: running one
400 LWP 41: running one on CPU 0
400 one (100000001): running  on LWP 41
500 one (100000001): Some(\"work\")
600 one (100000001): app:step
700 CPU 0: running hog
700 LWP 41: preempted hog on CPU 0
700 one (100000001): preempted hog on LWP 41
Cpu CPU 1 in \"host\"
800 CPU 1: running one
800 LwpMigration: CPU 0 to CPU 1
800 LWP 41: running one on CPU 1
800 one (100000001): running  on LWP 41
900 one (100000001): None
1100 one (100000001): blocked mutex on LWP 41
1100 CPU 1: running two
1100 LWP 41: running two on CPU 1
1100 two (100000002): running  on LWP 41
1200 one (100000001): ready  on LWP 41
1200 WakeUp: two (100000002) to one (100000001)
1300 CPU 1: idle 
1300 LWP 41: blocked in kernel  on CPU 1
1300 two (100000002): blocked in kernel  on LWP 41
1400 LWP 41: waits for CPU  on CPU 1
1400 two (100000002): waits for CPU  on LWP 41
1500 CPU 1: running two
1500 LWP 41: running two on CPU 1
1500 two (100000002): running  on LWP 41
1600 CPU 0: running lwp
Lwp LWP 42 in \"process 40\"
1700 LWP 42: in scheduler  on CPU 0
1700 ThreadMigration: LWP 41 to LWP 42
1700 CPU 0: running one
1700 LWP 42: running one on CPU 0
1700 one (100000001): running  on LWP 42
1900 two (100000002): ended  on LWP 41
1900 LWP 41: in scheduler  on CPU 1
1900 end";

#[test]
fn every_state_link_function_and_event_is_given() {
    let directory = TempDir::new().expect("a directory");
    let to = directory.path().join("super");
    write(&to);
    let set = TraceSet::open(&[to]).expect("a trace");
    let mut texts = Texts::default();
    let followed = export(&set, &mut texts).expect("exported");
    assert_eq!(followed.threads, 2);
    assert_eq!(followed.range, (100, 1900));
    assert_eq!(texts.texts.join("\n"), EXPECTED);
}
