//! Link options of the shared library.

fn main() {
    // Threads' exit handlers and handlers of fork stay registered: the library must never be
    // unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtracebraid_probe.so");
    println!("cargo:rerun-if-changed=build.rs");
}
