//! Frequencies of CPUs. No available recording contains them, so the events are synthetic, with
//! LTTng's names.

use tracebraid_history::{Attribute, AttributeKind, Since, Value};

use crate::history;
use tracebraid_models::naming::{Maker, Value as Field};
use tracebraid_models::synthetic::{Shape, scripted};

const SHAPE: Shape = Shape {
    cpus: 2,
    threads: 1,
    steps: 0,
    packet: 100,
    told_threads: true,
    ..Shape::PLAIN
};

#[test]
fn frequencies_and_sleeps_are_of_the_cpu_that_an_event_names() {
    let nobody = Maker { tid: 0, pid: 0 };
    let event = |(at, time, name, cpu, state): (u64, u64, &'static str, i64, i64)| {
        let fields = vec![
            ("state", 32, Field::Int(state)),
            ("cpu_id", 32, Field::Int(cpu)),
        ];
        (at, time, nobody, name, fields)
    };
    let events = [
        (0, 2000, "power_cpu_frequency", 0, 800_000),
        // A CPU sets the frequency of another.
        (0, 2100, "power_cpu_frequency", 1, 900_000),
        (1, 2200, "power_cpu_idle", 1, 2),
        (1, 2300, "power_cpu_frequency", 1, 3_600_000),
        (0, 2400, "power_cpu_frequency", 0, 800_000),
        (1, 2500, "power_cpu_idle", 1, -1),
        (0, 2600, "power_cpu_frequency", 0, 2_000_000),
    ];
    let (directory, set) = scripted(SHAPE, events.into_iter().map(event).collect());
    let (_place, history) = history(&set);
    std::fs::remove_dir_all(directory).unwrap();
    let told = |kind, cpu| -> Vec<(i64, Value)> {
        let attribute = Attribute::new(kind, 0, cpu);
        let begin = history.meta().begin;
        let changes = history.changes(attribute, begin - 1, begin + 1000).unwrap();
        let told = |since: Since| (since.time - begin + 2000, since.value);
        changes.into_iter().skip(1).map(told).collect()
    };
    let number = |(time, number)| (time, Value::Number(number));
    assert_eq!(
        told(AttributeKind::CpuFrequency, 0),
        [(2000, 800_000), (2600, 2_000_000)].map(number)
    );
    assert_eq!(
        told(AttributeKind::CpuFrequency, 1),
        [(2100, 900_000), (2300, 3_600_000)].map(number)
    );
    assert_eq!(
        told(AttributeKind::CpuSleep, 1),
        [number((2200, 2)), (2500, Value::Null)]
    );
}
