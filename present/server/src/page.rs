//! The page, which web/ builds as one file.

/// The page; empty if the program was built without it.
pub(crate) const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/index.html"));

/// True if the program was built with the page.
pub fn is_built() -> bool {
    !PAGE.is_empty()
}
