//! The process that listens at a port of this machine.

use std::fs;

/// State of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The process that listens at a TCP port in this network namespace, if its descriptors are readable.
pub(super) fn process_at(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: Vec<String> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|process| has_socket(*process, &sockets))
}

/// Inodes of the sockets that listen at a port.
fn inodes(table: &str, port: u16) -> Vec<String> {
    let of = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, ..] = fields[..] else {
            return None;
        };
        let (_, of_socket) = local.rsplit_once(':')?;
        let is_port = u16::from_str_radix(of_socket, 16) == Ok(port);
        let inode = fields.get(9).filter(|_| is_port && state == LISTENS)?;
        Some((*inode).to_owned())
    };
    table.lines().filter_map(of).collect()
}

fn has_socket(process: u32, sockets: &[String]) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd"));
    descriptors.into_iter().flatten().flatten().any(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        sockets
            .iter()
            .any(|socket| target.as_os_str() == socket.as_str())
    })
}

/// The name of a process.
pub(super) fn name_of(process: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_listener_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = socket.local_addr().expect("an address").port();
        assert_eq!(process_at(port), Some(std::process::id()));
        drop(socket);
        assert_eq!(process_at(port), None);
    }
}
