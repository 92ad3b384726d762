//! Privileges of this process.

use std::os::unix::fs::MetadataExt;

/// Capabilities that recording needs, by bit (include/uapi/linux/capability.h).
const NEEDED: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];
/// `CAP_SYS_ADMIN`, which includes both.
const ADMIN: u32 = 21;

/// Inode of the initial user namespace (`PROC_USER_INIT_INO`, include/linux/proc_ns.h).
const INITIAL: u64 = 0xEFFF_FFFD;

/// True if this process is in a user namespace other than the initial one: its capabilities then do
/// not allow it to load BPF programs.
pub fn is_in_user_namespace() -> bool {
    std::fs::metadata("/proc/self/ns/user").is_ok_and(|namespace| namespace.ino() != INITIAL)
}

/// Capabilities that recording needs and this process lacks.
pub fn missing() -> Vec<&'static str> {
    if is_in_user_namespace() {
        return NEEDED.iter().map(|(_, name)| *name).collect();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    missing_of(&status)
}

fn missing_of(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(bits) = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()) else {
        return Vec::new();
    };
    let has = |bit: u32| bits >> bit & 1 == 1;
    let lacks = NEEDED.iter().filter(|(bit, _)| !has(*bit) && !has(ADMIN));
    lacks.map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::missing_of;

    #[test]
    fn each_missing_capability_is_named() {
        assert_eq!(
            missing_of("CapEff:\t0000000000000000\n"),
            ["CAP_PERFMON", "CAP_BPF"]
        );
        assert_eq!(missing_of("CapEff:\t0000004000000000\n"), ["CAP_BPF"]);
        assert_eq!(missing_of("CapEff:\t0000000000200000\n"), [""; 0]);
        assert_eq!(missing_of("Name:\tx\n"), [""; 0]);
    }
}
