//! Hands the web page, if it was built (`npm run build` in web/, which `make build` does), to the
//! program.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let page = "../../web/dist/index.html";
    println!("cargo::rerun-if-changed={page}");
    let out = std::env::var_os("OUT_DIR")
        .ok_or_else(|| std::io::Error::other("cargo gives no directory"))?;
    // Without the page everything else of the program works: it says so when the page is asked for.
    let text = std::fs::read(page).unwrap_or_default();
    std::fs::write(Path::new(&out).join("index.html"), text)
}
