//! Address families and states of TCP connections.

/// Name of an address family.
pub fn family_name(family: i64) -> Option<&'static str> {
    Some(match family {
        0 => "AF_UNSPEC",
        1 => "AF_UNIX",
        2 => "AF_INET",
        3 => "AF_AX25",
        4 => "AF_IPX",
        5 => "AF_APPLETALK",
        10 => "AF_INET6",
        15 => "AF_KEY",
        16 => "AF_NETLINK",
        17 => "AF_PACKET",
        21 => "AF_RDS",
        24 => "AF_PPPOX",
        29 => "AF_CAN",
        30 => "AF_TIPC",
        31 => "AF_BLUETOOTH",
        38 => "AF_ALG",
        40 => "AF_VSOCK",
        43 => "AF_SMC",
        44 => "AF_XDP",
        45 => "AF_MCTP",
        _ => return None,
    })
}

/// Indexed by number minus one.
const TCP_STATES: [&str; 13] = [
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
    "NEW_SYN_RECV",
    "BOUND_INACTIVE",
];

/// Name of a state of a TCP connection.
pub fn tcp_state_name(state: i64) -> Option<&'static str> {
    TCP_STATES
        .get(usize::try_from(state.checked_sub(1)?).ok()?)
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_states_have_names() {
        assert_eq!(family_name(10), Some("AF_INET6"));
        assert_eq!(family_name(99), None);
        assert_eq!(tcp_state_name(1), Some("ESTABLISHED"));
        assert_eq!(tcp_state_name(10), Some("LISTEN"));
        assert_eq!(tcp_state_name(0), None);
        assert_eq!(tcp_state_name(14), None);
    }
}
