//! Demangles names of C++ and Rust.

/// Demangles a mangled name, and returns any other name unchanged. Names must begin like mangled
/// ones, because the C++ demangler would take `a` for a type.
pub(crate) fn demangled(name: &str) -> String {
    let is_mangled = ["_Z", "__Z", "_R", "__R"]
        .iter()
        .any(|lead| name.starts_with(lead));
    if !is_mangled {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol
        .and_then(|symbol| symbol.demangle().ok())
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn only_mangled_names_are_demangled() {
        for name in [
            "a",
            "i",
            "f",
            "v",
            "St",
            "Da",
            "PKc",
            "main",
            "_start",
            "Z1f",
            "_Z",
            "_Zgarbage",
            "",
        ] {
            assert_eq!(demangled(name), name);
        }
        assert_eq!(demangled("_ZN4shop5orderEi"), "shop::order(int)");
        assert_eq!(
            demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(demangled("_RNvC5crate4main"), "crate::main");
    }
}
