//! Names of functions whose addresses event records contain. A separate earlier pass over only
//! those event records finds them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{
    Analysis, Chunk, Control, FoldError, Options, Record, StreamPlace, StreamRef, fold,
};
use tracebraid_follow::Packets;
use tracebraid_language::Datum;
use tracebraid_language::executions::{Definitions, Delimiter};
use tracebraid_profile::Addresses;
use tracebraid_symbols::Symbols;

use crate::delimit::user::{Classes, UserEdge};

/// Names of functions, by trace, process and address.
#[derive(Clone, Debug, Default)]
pub struct FunctionNames(HashMap<Key, String>);

/// A trace, the process that the event record names, and an address.
type Key = (u32, Option<i64>, i128);

impl FunctionNames {
    /// Names of all functions that the traces record as entered, if a definition asks for
    /// functions. Code that is unloaded and loaded again at another address keeps the names of its
    /// first address.
    ///
    /// # Errors
    /// If the pass is cancelled.
    pub fn new(
        set: &TraceSet,
        definitions: &Definitions,
        symbols: &mut Symbols,
        maps: &[PathBuf],
        (options, control): (Options, &Control),
    ) -> Result<FunctionNames, FoldError> {
        let is_of_functions = |delimiter: &Delimiter| matches!(delimiter, Delimiter::Function(_));
        let mut list = definitions.list.iter();
        let is_asked_for = list.any(|definition| is_of_functions(&definition.delimiter));
        let classes = Classes::new(set, |kind| kind == UserEdge::Enter);
        if !is_asked_for || !classes.any(|_| true) {
            return Ok(FunctionNames::default());
        }
        let mut met: Vec<(Key, i64)> = fold(set, &Survey { classes }, options, control)?
            .report
            .into_iter()
            .collect();
        met.sort_by_key(|&(key, time)| (time, key));
        // The pass that reads loaded modules accounts for its own threads.
        control.serially("function names", || {
            let addresses = Addresses::new(set, symbols, maps, (options, control))?;
            Ok(FunctionNames::of(set, met, addresses))
        })
    }

    /// Names of the functions in `met`; a function without a name gets its address.
    fn of(set: &TraceSet, met: Vec<(Key, i64)>, mut addresses: Addresses<'_>) -> FunctionNames {
        let mut names = HashMap::new();
        for ((index, pid, address), time) in met {
            let Some(trace) = set.traces.get(index as usize) else {
                continue;
            };
            let program = pid.and_then(|pid| u64::try_from(pid).ok());
            let at = u64::try_from(address).ok();
            let name = at.and_then(|at| addresses.function(trace, Timestamp(time), program, at));
            let name = name.map_or_else(|| format!("[{address:#x}]"), str::to_owned);
            names.insert((index, pid, address), name);
        }
        FunctionNames(names)
    }

    /// Name of the function at an address.
    pub(crate) fn name(&self, trace: u32, pid: Option<i64>, address: i128) -> Option<&str> {
        self.0.get(&(trace, pid, address)).map(String::as_str)
    }
}

/// Maximum number of addresses; no program has that many functions. The lowest addresses are kept,
/// so that the choice does not depend on chunks.
const MOST: usize = 1 << 20;

/// Finds the first entry of each function.
struct Survey {
    classes: Classes,
}

#[derive(Default, Serialize, Deserialize)]
struct SurveyPartial {
    met: Met,
    #[serde(skip)]
    packets: Packets,
}

/// Time of the first entry by address.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(Key, i64)>", into = "Vec<(Key, i64)>")]
struct Met(BTreeMap<Key, i64>);

impl From<Vec<(Key, i64)>> for Met {
    fn from(list: Vec<(Key, i64)>) -> Met {
        Met(list.into_iter().collect())
    }
}

impl From<Met> for Vec<(Key, i64)> {
    fn from(met: Met) -> Self {
        met.0.into_iter().collect()
    }
}

impl Met {
    fn add(&mut self, key: Key, time: i64) {
        let first = self.0.entry(key).or_insert(time);
        *first = time.min(*first);
        if self.0.len() > MOST {
            self.0.pop_last();
        }
    }
}

impl Analysis for Survey {
    type Partial = SurveyPartial;
    type Report = BTreeMap<Key, i64>;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let streams = self.classes.streams(set).into_iter();
        streams.map(|stream| vec![stream]).collect()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.classes.wants(trace, stream_class, class)
    }

    fn begin(&self, _: &Chunk) -> SurveyPartial {
        SurveyPartial::default()
    }

    fn packet(&self, partial: &mut SurveyPartial, packet: &StreamPlace<'_>) {
        self.classes.packet(&mut partial.packets, packet);
    }

    fn event(&self, partial: &mut SurveyPartial, record: &mut Record<'_>) {
        let (trace, time) = (record.stream.trace, record.time.0);
        if let Some((_, _, [_, pid, Datum::Integer(address), _])) =
            self.classes.read(&partial.packets, record)
        {
            let pid = match pid {
                Datum::Integer(pid) => i64::try_from(pid).ok(),
                _ => None,
            };
            partial.met.add((trace, pid, address), time);
        }
    }

    fn end(&self, partial: &mut SurveyPartial, _: &Chunk) {
        partial.packets = Packets::default();
    }

    fn merge(&self, earlier: &mut SurveyPartial, later: SurveyPartial) {
        for (key, time) in later.met.0 {
            earlier.met.add(key, time);
        }
    }

    fn finish(&self, partial: SurveyPartial) -> BTreeMap<Key, i64> {
        partial.met.0
    }
}
