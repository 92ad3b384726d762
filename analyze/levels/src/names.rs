//! Names of threads as scheduling events contain them.

/// Characters of a thread's name in scheduling events, and the terminating null.
pub(crate) const NAME: usize = 16;

/// The text of a name, without its padding.
pub(crate) fn text(name: &[u8; NAME]) -> &[u8] {
    name.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A name of at most 15 bytes, shortened in the middle. All bytes after the first null are null.
pub(crate) fn short(name: &[u8]) -> [u8; NAME] {
    let mut short = [0; NAME];
    let most = NAME - 1;
    if name.len() <= most {
        short[..name.len()].copy_from_slice(name);
    } else {
        let (head, tail) = (most / 2, most - most / 2 - 1);
        short[..head].copy_from_slice(&name[..head]);
        short[head] = b'~';
        short[head + 1..most].copy_from_slice(&name[name.len() - tail..]);
        // Whole characters only.
        for byte in &mut short[..most] {
            if !byte.is_ascii() {
                *byte = b'?';
            }
        }
    }
    let end = short.iter().position(|&byte| byte == 0).unwrap_or(NAME);
    short[end..].fill(0);
    short
}
