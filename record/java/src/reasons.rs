//! Reasons of waits, by the class of the object for which a thread parks.

/// Ends of class names, and the word for each. The first that is contained in a name counts.
const REASONS: [(&str, &str); 12] = [
    ("ConditionNode", "condition"),
    ("ConditionObject", "condition"),
    ("ReentrantReadWriteLock", "rwlock"),
    ("ReentrantLock", "lock"),
    ("StampedLock", "rwlock"),
    ("Semaphore", "semaphore"),
    ("CountDownLatch", "latch"),
    ("Future", "future"),
    ("Queue", "queue"),
    ("Exchanger", "exchanger"),
    ("Phaser", "phaser"),
    ("ThreadContainer", "join"),
];

/// The word for a class signature, such as `Ljava/util/concurrent/Semaphore$FairSync;`.
pub(crate) fn of(signature: &str) -> &'static str {
    let found = REASONS.iter().find(|(part, _)| signature.contains(part));
    found.map_or("park", |(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn classes_have_words() {
        for (signature, reason) in [
            (
                "Ljava/util/concurrent/locks/ReentrantLock$NonfairSync;",
                "lock",
            ),
            (
                "Ljava/util/concurrent/locks/ReentrantReadWriteLock$FairSync;",
                "rwlock",
            ),
            (
                "Ljava/util/concurrent/SynchronousQueue$Transferer;",
                "queue",
            ),
            (
                "Ljava/util/concurrent/CompletableFuture$Signaller;",
                "future",
            ),
            ("Lshop/Gate;", "park"),
        ] {
            assert_eq!(of(signature), reason, "{signature}");
        }
    }
}
