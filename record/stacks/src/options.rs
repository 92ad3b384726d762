//! What the user asks for: `TRACEBRAID_STACKS=period_us=1000,threshold_us=100,depth=128,waits=auto`.
//!
//! In: the text. Out: [`Options`] within their ranges. What is not understood is passed over and told: a typing error must
//! not keep a program from running.

/// Frames of a stack that are recorded at most.
pub const MOST_DEPTH: usize = 256;

/// Microseconds from one sample to the next at least: a signal costs CPU time too, and must leave most of it to the
/// program.
pub const LEAST_PERIOD_US: u64 = 100;

/// How long waits are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// By the session's BPF program if there is one, else by perf events.
    Auto,
    /// By a perf event at each context switch of the program's threads.
    Perf,
    /// By a BPF program of the session, which sends a signal after long waits only.
    Kernel,
    /// Not at all.
    Off,
}

/// How stacks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// CPU time of a thread from one sample to the next, in nanoseconds; 0 for no samples.
    pub period_ns: u64,
    /// Waits that are shorter, in nanoseconds, are passed over.
    pub threshold_ns: u64,
    /// Frames recorded at most, from 1 to [`MOST_DEPTH`].
    pub depth: usize,
    /// How waits are found.
    pub waits: Waits,
}

impl Options {
    /// One sample per millisecond of CPU time, waits from 100 microseconds on, 128 frames.
    pub const DEFAULT: Options = Options {
        period_ns: 1_000_000,
        threshold_ns: 100_000,
        depth: 128,
        waits: Waits::Auto,
    };

    /// The options of a text; later ones win.
    pub fn parse(text: &[u8]) -> Options {
        let mut options = Options::DEFAULT;
        for item in items(text) {
            options.take(item);
        }
        options
    }

    /// Takes an option; false if it is not understood.
    fn take(&mut self, item: &[u8]) -> bool {
        let mut parts = item.splitn(2, |&byte| byte == b'=');
        match (parts.next(), parts.next()) {
            (Some(key), Some(value)) => self.set(key, value),
            _ => false,
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> bool {
        match (key, number(value)) {
            (b"period_us", Some(0)) => self.period_ns = 0,
            (b"period_us", Some(us)) => self.period_ns = us.clamp(LEAST_PERIOD_US, 10_000_000) * 1000,
            (b"threshold_us", Some(us)) => self.threshold_ns = us.min(10_000_000) * 1000,
            (b"depth", Some(depth)) => {
                self.depth = usize::try_from(depth).unwrap_or(MOST_DEPTH).clamp(1, MOST_DEPTH)
            }
            (b"waits", _) => match value {
                b"auto" => self.waits = Waits::Auto,
                b"perf" => self.waits = Waits::Perf,
                b"kernel" => self.waits = Waits::Kernel,
                b"off" => self.waits = Waits::Off,
                _ => return false,
            },
            _ => return false,
        }
        true
    }
}

/// The options of a text that are understood, or those that are not.
pub fn sorted(text: &[u8], understood: bool) -> impl Iterator<Item = &[u8]> {
    let mut options = Options::DEFAULT;
    items(text).filter(move |item| options.take(item) == understood)
}

fn items(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| matches!(byte, b',' | b' ' | b';'))
        .filter(|item| !item.is_empty())
}

fn number(text: &[u8]) -> Option<u64> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_it_understands_and_keeps_it_in_range() {
        assert_eq!(Options::parse(b""), Options::DEFAULT);
        let options =
            Options::parse(b"period_us=1,threshold_us=250,depth=9999,waits=kernel,colour=red,depth");
        assert_eq!((options.period_ns, options.threshold_ns), (100_000, 250_000));
        assert_eq!((options.depth, options.waits), (MOST_DEPTH, Waits::Kernel));
        let options = Options::parse(b"period_us=0,depth=0,waits=perhaps,threshold_us=-3");
        assert_eq!(
            (options.period_ns, options.depth, options.waits),
            (0, 1, Waits::Auto)
        );
        assert_eq!(options.threshold_ns, 100_000);
    }

    #[test]
    fn tells_what_it_does_not_understand() {
        let text = b"period_us=1, waits=foo;depth=many,colour=red,depth,waits=off";
        let told: Vec<&[u8]> = sorted(text, false).collect();
        assert_eq!(told, [&b"waits=foo"[..], b"depth=many", b"colour=red", b"depth"]);
        let taken: Vec<&[u8]> = sorted(text, true).collect();
        assert_eq!(taken, [&b"period_us=1"[..], b"waits=off"]);
    }
}
