//! Embeds the web page in the program, if it was built (`npm run build` in web/, which `make build`
//! runs).

use std::path::Path;

fn main() -> std::io::Result<()> {
    let page = "../../web/dist/index.html";
    println!("cargo::rerun-if-changed={page}");
    let out =
        std::env::var_os("OUT_DIR").ok_or_else(|| std::io::Error::other("OUT_DIR is not set"))?;
    // Without the page the rest of the program works; only the commands that need the page report
    // its absence.
    let text = std::fs::read(page).unwrap_or_default();
    std::fs::write(Path::new(&out).join("index.html"), text)
}
