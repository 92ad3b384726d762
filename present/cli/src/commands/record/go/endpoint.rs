//! The address of a pprof endpoint.

use std::fmt;
use std::io;
use std::net::{IpAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

/// Time for one attempt to connect.
const CONNECT: Duration = Duration::from_secs(2);

/// An HTTP endpoint that writes execution traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands::record) struct Endpoint {
    host: String,
    pub(super) port: u16,
    /// With the query.
    target: String,
}

/// Path of `net/http/pprof`.
const TRACE: &str = "/debug/pprof/trace";

/// Duration of a trace whose end is not requested: a day.
const SECONDS: u32 = 86_400;

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        let example = "such as http://localhost:6060";
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => {
                return Err(
                    "https is not supported: give an http endpoint of the program, or save its trace \
                     with curl and pass the file to `tracebraid import`"
                        .to_owned(),
                );
            }
            Some((scheme, _)) => {
                return Err(format!("`{scheme}` is not http: give a URL {example}"));
            }
            None => text,
        };
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') || text.chars().any(|c| c.is_control() || c == ' ') {
            return Err(format!("give a URL without user and spaces, {example}"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse();
                (
                    host,
                    port.map_err(|_| format!("`{text}` has no valid port"))?,
                )
            }
            _ => (authority, 80),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(format!("`{text}` has no host: give a URL {example}"));
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let path = if matches!(path, "" | "/") {
            TRACE
        } else {
            path
        };
        let has_seconds = query.split('&').any(|part| part.starts_with("seconds="));
        let target = match query {
            "" => format!("{path}?seconds={SECONDS}"),
            _ if has_seconds => format!("{path}?{query}"),
            _ => format!("{path}?{query}&seconds={SECONDS}"),
        };
        Ok(Endpoint {
            host: host.to_owned(),
            port,
            target,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

impl Endpoint {
    fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The head of the request.
    pub(super) fn request(&self) -> String {
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tracebraid\r\nAccept-Encoding: \
             identity\r\nConnection: close\r\n\r\n",
            self.target,
            self.authority()
        )
    }

    /// Connects to the first address that answers.
    pub(super) fn connect(&self) -> io::Result<TcpStream> {
        let mut failed = io::Error::other("the host has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// Whether an address belongs to this host: only then can a socket be bound to it.
pub(super) fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        let target = |text: &str| {
            let endpoint: Endpoint = text.parse().expect(text);
            format!("{endpoint} {}", endpoint.target)
        };
        for (text, expected) in [
            (
                "http://localhost:6060",
                "http://localhost:6060 /debug/pprof/trace?seconds=86400",
            ),
            (
                "localhost:6060/",
                "http://localhost:6060 /debug/pprof/trace?seconds=86400",
            ),
            (
                "http://h/a/trace?seconds=5",
                "http://h:80 /a/trace?seconds=5",
            ),
            (
                "http://[::1]:1?x=y",
                "http://[::1]:1 /debug/pprof/trace?x=y&seconds=86400",
            ),
        ] {
            assert_eq!(target(text), expected);
        }
        for (text, why) in [
            ("https://localhost", "https"),
            ("ftp://localhost", "`ftp`"),
            ("http://:6060", "no host"),
            ("http://h:x", "port"),
            ("http://u@h", "user"),
            ("http://h/a b", "spaces"),
        ] {
            let error = text.parse::<Endpoint>().expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn this_host_is_local() {
        assert!(is_local("127.0.0.1".parse().expect("an address")));
        // Of a block reserved for documentation.
        assert!(!is_local("192.0.2.1".parse().expect("an address")));
    }
}
