//! Host names that the server accepts, and addresses at which a browser reaches it.
//!
//! A foreign page can point its own name to this machine, and so make a browser query the server
//! (DNS rebinding). Such a request has that name as its host. Addresses are safe, because no page
//! can redirect an address: hosts that are addresses are always accepted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// Accepted hosts.
#[derive(Clone, Debug)]
pub(crate) enum Hosts {
    /// All hosts: the token controls access.
    Any,
    /// Addresses, `localhost` and these names.
    Named(Vec<String>),
}

impl Hosts {
    /// Accepted hosts of a server at an address. If other machines can reach it and need a token,
    /// its names are unknown and are not checked.
    pub(crate) fn new(address: IpAddr, has_token: bool, names: &[String]) -> Hosts {
        if has_token && !address.is_loopback() {
            return Hosts::Any;
        }
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        // The machine's own name does not resolve to the loopback interface.
        let own = (!address.is_loopback()).then(|| own.trim().to_owned());
        let names = names.iter().cloned().chain(own);
        Hosts::Named(
            names
                .map(|name| plain(&name))
                .filter(|name| !name.is_empty())
                .collect(),
        )
    }

    /// True if requests with this host are answered.
    pub(crate) fn answer(&self, host: &str) -> bool {
        let Hosts::Named(names) = self else {
            return true;
        };
        let name = plain(without_port(host));
        name == "localhost" || is_address(&name) || names.contains(&name)
    }
}

/// A host without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address are in brackets.
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    }
}

/// Lower case without the dot of the root: the canonical form of a name.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_address(name: &str) -> bool {
    let bracketed = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match bracketed {
        Some(name) => name.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok(),
    }
}

/// Addresses at which a browser can reach a server that listens at `address`. For all addresses of
/// the machine (`0.0.0.0`, `[::]`): the loopback addresses, and those of active interfaces.
pub(crate) fn reached_at(address: SocketAddr) -> Vec<SocketAddr> {
    let of = |ip: IpAddr| SocketAddr::new(ip, address.port());
    let has_v4 = match address.ip() {
        ip if !ip.is_unspecified() => return vec![address],
        IpAddr::V4(_) => true,
        IpAddr::V6(_) => std::fs::read_to_string("/proc/sys/net/ipv6/bindv6only")
            .is_ok_and(|only| only.trim() == "0"),
    };
    let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let mut found: Vec<IpAddr> = loopback.into();
    for interface in getifaddrs().into_iter().flatten() {
        let ip = interface.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|of| IpAddr::from(of.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|of| IpAddr::from(of.ip())))
        });
        let is_up = interface.flags.contains(InterfaceFlags::IFF_UP);
        found.extend(
            ip.filter(|ip| is_up && !found.contains(ip) && !ip.is_loopback() && !needs_zone(*ip)),
        );
    }
    found.retain(|ip| {
        if ip.is_ipv4() {
            has_v4
        } else {
            address.is_ipv6()
        }
    });
    found.into_iter().map(of).collect()
}

/// True for link-local addresses, which browsers cannot open.
fn needs_zone(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.segments()[0] & 0xffc0 == 0xfe80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_others_could_give_are_not_answered() {
        let local = Hosts::new(Ipv4Addr::LOCALHOST.into(), true, &[]);
        for host in [
            "localhost",
            "LOCALHOST:80",
            "localhost.:8080",
            "127.0.0.1:1",
            "127.0.0.2",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(local.answer(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[evil]",
            "::1",
        ] {
            assert!(!local.answer(host), "{host}");
        }
        // With a token any name is accepted; without one only known names.
        let all = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        assert!(Hosts::new(all, true, &[]).answer("evil.example"));
        let named = Hosts::new(all, false, &["Build-7.example.".to_owned()]);
        for (host, expected) in [
            ("build-7.example:8080", true),
            ("BUILD-7.example", true),
            ("192.0.2.7:8080", true),
            ("evil.example", false),
        ] {
            assert_eq!(named.answer(host), expected, "{host}");
        }
    }

    #[test]
    fn all_addresses_are_not_an_address() {
        let one: SocketAddr = "192.0.2.7:80".parse().expect("an address");
        assert_eq!(reached_at(one), [one]);
        for all in ["0.0.0.0:80", "[::]:80"] {
            let found = reached_at(all.parse().expect("an address"));
            assert!(
                found
                    .iter()
                    .any(|of| of.ip().is_loopback() && of.port() == 80),
                "{found:?}"
            );
            assert!(
                found.iter().all(|of| !of.ip().is_unspecified()),
                "{found:?}"
            );
        }
    }
}
