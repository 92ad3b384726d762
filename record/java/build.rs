//! Link options of the shared library.

fn main() {
    // The virtual machine keeps addresses of callbacks, and handlers of fork stay registered: the
    // library must never be unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtracebraid_java.so");
    println!("cargo:rerun-if-changed=build.rs");
}
