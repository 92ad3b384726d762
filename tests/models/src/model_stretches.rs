//! The tables of stretches, by sorting all stretches.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_follow::ROWS;
use tracebraid_statistics::Distribution;
use tracebraid_tables::{Column, Section, Unit, Value, View};
use tracebraid_tables::{distribution_columns, distribution_values};

use crate::model_cpu::People;
use crate::plain::Lists;

/// A stretch of a thread other than an idle thread on a CPU.
#[derive(Clone, Debug)]
pub struct Ran {
    cpu: (u32, u32),
    tid: i32,
    begin: i64,
    end: i64,
    cut: Option<&'static str>,
}

impl Ran {
    /// The part in the window; `cut` is the reason for its end, if not another thread.
    pub fn new(
        cpu: (u32, u32),
        tid: i32,
        (from, to): (i64, i64),
        window: (i64, i64),
        cut: Option<&'static str>,
    ) -> Option<Ran> {
        let (begin, end) = (from.max(window.0), to.min(window.1));
        let cut = if (begin, end) == (from, to) {
            cut
        } else {
            Some("range")
        };
        (begin < end).then_some(Ran {
            cpu,
            tid,
            begin,
            end,
            cut,
        })
    }

    fn length(&self) -> u64 {
        self.end.abs_diff(self.begin)
    }
}

/// The tables of statistics, of the longest stretches, and of all stretches.
pub fn lists(mut stretches: Vec<Ran>, people: &People) -> Lists {
    let mut all = Distribution::default();
    let mut cpus: BTreeMap<(u32, u32), Distribution> = BTreeMap::new();
    for ran in &stretches {
        all.add(ran.length());
        cpus.entry(ran.cpu).or_default().add(ran.length());
    }
    let of = |cpu: Option<(u32, u32)>, lengths: &Distribution| {
        let number = |number: Option<u32>| Value::from(number.map(u64::from));
        let about = [number(cpu.map(|cpu| cpu.0)), number(cpu.map(|cpu| cpu.1))];
        about
            .into_iter()
            .chain(distribution_values(lengths))
            .collect()
    };
    let total = (!stretches.is_empty()).then(|| of(None, &all));
    let by_cpu = cpus.iter().map(|(cpu, lengths)| of(Some(*cpu), lengths));
    let by_cpu: Vec<Vec<Value>> = total.into_iter().chain(by_cpu).collect();
    stretches.sort_by_key(|ran| (ran.end, ran.cpu));
    let log = stretches.iter().map(|ran| row(ran, people)).collect();
    stretches.sort_by_key(|ran| (Reverse(ran.length()), ran.begin, ran.cpu));
    let longest = stretches
        .iter()
        .take(ROWS)
        .map(|ran| row(ran, people))
        .collect();
    let about = [
        Column::new("trace", "", Unit::Id).optional(),
        Column::new("cpu", "", Unit::Cpu).optional(),
    ];
    let columns: Vec<Column> = about.into_iter().chain(distribution_columns()).collect();
    let thread = [Column::new("thread", "", Unit::Thread)];
    let each =
        ["begin_ns", "end_ns", "duration_ns", "cpu"].map(|key| Column::new(key, "", Unit::Count));
    let cut = [Column::new("cut_by", "", Unit::Text).optional()];
    let each: Vec<Column> = each.into_iter().chain(thread).chain(cut).collect();
    Lists(vec![
        Section::new("stretches", "", columns, by_cpu),
        Section::new("longest", "", each.clone(), longest).of(View::Top),
        Section::new("log", "", each, log).of(View::Log),
    ])
}

fn row(ran: &Ran, people: &People) -> Vec<Value> {
    vec![
        Timestamp(ran.begin).into(),
        Timestamp(ran.end).into(),
        ran.length().into(),
        u64::from(ran.cpu.1).into(),
        people.shown(ran.cpu.0, ran.tid).into(),
        ran.cut.map(Value::text).unwrap_or(Value::None),
    ]
}
