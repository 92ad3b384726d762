//! The facts in `layouts.txt` are those of NVIDIA's headers, where they are installed.

use std::path::Path;
use std::process::Command;

use tracebraid_testkit::skip::skipped;

/// Include directories: those of the variable, joined by colons, or of a toolkit.
fn headers() -> Option<String> {
    let named = std::env::var("CUDA_HEADERS").ok();
    let toolkit = "/usr/local/cuda/extras/CUPTI/include";
    let installed = Path::new(toolkit).join("cupti.h").is_file();
    named.or_else(|| installed.then(|| format!("{toolkit}:/usr/local/cuda/include")))
}

#[test]
fn layouts_are_those_of_the_headers() {
    let Some(headers) = headers() else {
        skipped(format_args!(
            "no headers of CUPTI: CUDA_HEADERS names their directories, joined by colons"
        ));
        return;
    };
    let checked = Command::new("python3")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["distil.py", "check", "layouts.txt", &headers])
        .output()
        .expect("Python runs");
    assert!(checked.status.success(), "{checked:?}");
}
