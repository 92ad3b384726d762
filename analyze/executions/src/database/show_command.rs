//! The command that shows an execution in its trace.

use tracebraid_tables::shell_word;

use crate::database::reader::Database;
use crate::database::recorded_execution::Recorded;

impl Recorded {
    /// Command line that shows the execution in its trace. `None` if the thread is unknown, since a
    /// critical path belongs to a thread.
    pub fn command(&self, database: &Database) -> Option<String> {
        let paths: Vec<String> = database.sources.iter().map(|of| of.path.clone()).collect();
        self.command_in(database, &paths, true)
    }

    /// As [`Recorded::command`] with other paths of the sources, in their order, for traces that
    /// were moved. Without `has_directories`, the file of `--sync` is given by its name alone.
    pub fn command_in(
        &self,
        database: &Database,
        paths: &[String],
        has_directories: bool,
    ) -> Option<String> {
        let thread = database.threads.get(self.thread? as usize)?;
        let own = database.sources.get(self.source);
        let (recording, sync) = own.map_or((0, None), |of| (of.recording, of.sync.as_deref()));
        let together = database.sources.iter().zip(paths);
        let together = together.filter(|(of, _)| of.recording == recording);
        let mut paths: Vec<String> = together.map(|(_, path)| shell_word(path)).collect();
        paths.dedup();
        let name = |sync: &str| match has_directories {
            true => sync.to_owned(),
            false => sync.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let sync = sync.map_or_else(String::new, |sync| {
            format!(" --sync {}", shell_word(&name(sync)))
        });
        Some(format!(
            "tracebraid critical-path {}{sync} --tid {} --from {}ns --to {}ns",
            paths.join(" "),
            thread.tid,
            self.begin,
            self.end(),
        ))
    }
}
