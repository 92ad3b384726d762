//! Options for recordings in chunks.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use jiff::Zoned;
use tracebraid_session::kernel::{CHUNK, Rotation};

use super::watch;
use crate::fold;

/// When a new chunk begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    bytes: Option<u64>,
    period: Option<Duration>,
}

/// Minimum size of a chunk in bytes; the descriptions of events take half of it.
const LEAST: u64 = 1 << 20;
/// Minimum duration of a chunk; shorter chunks would consist of state dumps.
const SHORTEST: Duration = Duration::from_millis(100);

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        if text == "manual" {
            return Ok(wanted);
        }
        for part in text.split(',').map(str::trim) {
            // Units of sizes are single letters, which are no units of time.
            match (fold::size(part), watch::duration(part)) {
                (Ok(bytes), _) if part.ends_with(|unit: char| unit.is_ascii_alphabetic()) => {
                    if bytes < LEAST {
                        return Err(format!("{part}: a chunk must have at least 1M"));
                    }
                    if wanted.bytes.replace(bytes).is_some() {
                        return Err("two sizes are given".to_owned());
                    }
                }
                (Err(_), Ok(period)) => {
                    if period < SHORTEST {
                        return Err(format!("{part}: a chunk must last at least 100ms"));
                    }
                    if wanted.period.replace(period).is_some() {
                        return Err("two times are given".to_owned());
                    }
                }
                _ => {
                    return Err(format!(
                        "`{part}` is neither a size (100M, 1G) nor a time (30s, 10min)"
                    ));
                }
            }
        }
        Ok(wanted)
    }
}

impl Wanted {
    pub(super) fn of_kernel(self, keep: Option<u32>) -> Rotation {
        Rotation {
            bytes: self.bytes,
            period: self.period,
            keep: keep.and_then(|keep| usize::try_from(keep).ok()),
            stamp: || Zoned::now().strftime("%Y%m%d-%H%M%S").to_string(),
        }
    }
}

/// The directories of the chunks of a recording, oldest first.
pub(crate) fn chunks_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_chunk =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(CHUNK);
    let mut chunks: Vec<PathBuf> = entries.filter(is_chunk).map(|entry| entry.path()).collect();
    chunks.sort();
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read() {
        let read = |text: &str| {
            text.parse::<Wanted>()
                .ok()
                .map(|wanted| (wanted.bytes, wanted.period))
        };
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(read("100M"), Some((Some(100 << 20), None)));
        assert_eq!(read("10min"), Some((None, seconds(600))));
        assert_eq!(read("1G,90s"), Some((Some(1 << 30), seconds(90))));
        assert_eq!(read("90s, 1G"), Some((Some(1 << 30), seconds(90))));
        assert_eq!(read("manual"), Some((None, None)));
        for wrong in [
            "", "1", "100", "1K", "1M,2M", "1s,2s", "1ms", "1M,", "often",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
