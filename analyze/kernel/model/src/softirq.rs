//! Softirqs by their vectors.

/// Indexed by vector; names as in `/proc/softirqs`.
pub const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Name of a softirq, as in `/proc/softirqs`.
pub fn softirq_name(vector: i64) -> Option<&'static str> {
    SOFTIRQS.get(usize::try_from(vector).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_names() {
        assert_eq!(softirq_name(3), Some("NET_RX"));
        assert_eq!(softirq_name(9), Some("RCU"));
        assert_eq!(softirq_name(10), None);
        assert_eq!(softirq_name(-1), None);
    }
}
