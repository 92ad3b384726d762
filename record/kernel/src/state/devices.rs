//! Block devices, network interfaces and interrupts.

use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Payload, Sink, ids, numbers};

/// Records all devices.
pub(super) fn dump(sys: &Path, to: &mut impl Sink) {
    interrupts(&sys.join("kernel/irq"), to);
    blocks(&sys.join("class/block"), to);
    interfaces(&sys.join("class/net"), to);
}

/// Sorted names of a directory's entries.
fn names(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    names
}

fn line(path: &Path) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

/// One event for each handler.
fn interrupts(directory: &Path, to: &mut impl Sink) {
    for irq in numbers(directory) {
        let interrupt = directory.join(irq.to_string());
        let chip = line(&interrupt.join("chip_name"));
        let actions = line(&interrupt.join("actions"));
        for action in actions.split(',').filter(|action| !action.is_empty()) {
            let event = Payload::default()
                .int(irq as i32)
                .text(chip.as_bytes())
                .text(action.as_bytes())
                .int(0);
            to.event(ids::INTERRUPT, &event.0);
        }
    }
}

/// Disks and their partitions.
fn blocks(directory: &Path, to: &mut impl Sink) {
    for name in names(directory) {
        let numbers = line(&directory.join(&name).join("dev"));
        let Some(device) = device(&numbers) else {
            continue;
        };
        let event = Payload::default().int(device as i32).text(name.as_bytes());
        to.event(ids::BLOCK, &event.0);
    }
}

/// The device number as the kernel stores it: 12 bits of major, 20 bits of minor number.
fn device(numbers: &str) -> Option<u32> {
    let (major, minor) = numbers.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(major << 20 | minor & 0xf_ffff)
}

/// One event for each IPv4 address, and one for an interface without an address.
fn interfaces(directory: &Path, to: &mut impl Sink) {
    let addresses: Vec<(String, Ipv4Addr)> = addresses();
    for name in names(directory) {
        let own = addresses.iter().filter(|(of, _)| **of == *name);
        let own: Vec<Ipv4Addr> = own.map(|(_, address)| *address).collect();
        let own = if own.is_empty() {
            vec![Ipv4Addr::UNSPECIFIED]
        } else {
            own
        };
        for address in own {
            let event = Payload::default()
                .text(name.as_bytes())
                .bytes(&address.octets());
            to.event(ids::INTERFACE, &event.0);
        }
    }
}

fn addresses() -> Vec<(String, Ipv4Addr)> {
    let all = nix::ifaddrs::getifaddrs().into_iter().flatten();
    all.filter_map(|interface| {
        Some((
            interface.interface_name,
            interface.address?.as_sockaddr_in()?.ip(),
        ))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Collected;
    use super::*;

    #[test]
    fn numbers_of_devices_are_the_kernel_s() {
        assert_eq!(device("254:16"), Some(266338320));
        assert_eq!(device("8:1"), Some(8 << 20 | 1));
        assert_eq!(device("8"), None);
    }

    #[test]
    fn the_loopback_is_told_of() {
        let mut found = Collected::default();
        dump(Path::new("/sys"), &mut found);
        assert!(
            found
                .0
                .contains(&(ids::INTERFACE, b"lo\0\x7f\0\0\x01".to_vec()))
        );
    }
}
