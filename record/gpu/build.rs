//! Link options of the shared library.

fn main() {
    // Loaders of OpenCL, CUPTI and callbacks keep addresses of functions: the library must never be
    // unloaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtracebraid_gpu.so");
    println!("cargo:rerun-if-changed=build.rs");
}
