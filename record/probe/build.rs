//! Link options of the shared library.

fn main() {
    // Exit handlers of threads and fork handlers stay registered: the library must never be
    // unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtracebraid_probe.so");
    println!("cargo:rerun-if-changed=build.rs");
}
