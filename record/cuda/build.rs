//! Generates tables from `functions.txt` and `layouts.txt`: see `src/functions.rs` and
//! `src/layouts.rs`.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// Lines without comments: whether each belongs to the one above, and its words.
fn lines(text: &str) -> impl Iterator<Item = (bool, Vec<&str>)> {
    let of_facts = |line: &&str| !line.starts_with('#') && !line.trim().is_empty();
    let lines = text.lines().filter(of_facts);
    lines.map(|line| (line.starts_with(' '), line.split_whitespace().collect()))
}

fn scalar(kind: &str) -> String {
    match kind {
        "handle" | "pointer" => "Scalar::Address".to_owned(),
        number => format!("Scalar::{}", number.to_uppercase()),
    }
}

/// A function with the fields of its events.
struct Function<'a> {
    is_driver: bool,
    number: usize,
    name: &'a str,
    entry: String,
    exit: String,
}

impl<'a> Function<'a> {
    fn new(words: &[&'a str]) -> Function<'a> {
        Function {
            is_driver: words[0] == "driver",
            number: words[1].parse().expect("functions.txt: a number"),
            name: words[2],
            entry: String::new(),
            exit: String::new(),
        }
    }

    fn parameter(&mut self, words: &[&str]) {
        let (name, at) = (words[0], words[words.len() - 1]);
        let fields = if words[1] == "out" {
            &mut self.exit
        } else {
            &mut self.entry
        };
        let (name, kind) = match words[1] {
            "out" => (
                format!("{name}_val"),
                format!("Written({})", scalar(words[2])),
            ),
            "text" => (format!("{name}_val"), "Text".to_owned()),
            kind => (name.to_owned(), format!("Value({})", scalar(kind))),
        };
        let _ = write!(
            fields,
            "Parameter {{ name: \"{name}\", kind: Kind::{kind}, at: {at} }}, "
        );
    }

    /// The function as an expression, and the tables that it refers to.
    fn code(&self) -> (String, String) {
        let Function { number, name, .. } = self;
        let (provider, result, of) = match self.is_driver {
            true => ("lttng_ust_cuda", "cuResult", "DRIVER"),
            false => ("lttng_ust_cudart", "cudaResult", "RUNTIME"),
        };
        let tables = format!(
            "const {of}_{number}: Parameters = Parameters {{ result: \"{result}\", entry: &[{}], exit: &[{}] }};\n",
            self.entry, self.exit
        );
        let site = |edge: &str| {
            format!(
                "Site::new(\"{provider}:{name}_{edge}\\0\", |of| {of}_{number}.describe_{edge}(of))"
            )
        };
        let function = format!(
            "Some(Function {{ entry: {}, exit: {}, parameters: {of}_{number} }})",
            site("entry"),
            site("exit")
        );
        (tables, function)
    }
}

/// Code with a table for each API, by number.
fn functions(text: &str) -> String {
    let mut functions: Vec<Function<'_>> = Vec::new();
    for (is_parameter, words) in lines(text) {
        match functions.last_mut() {
            Some(function) if is_parameter => function.parameter(&words),
            _ => functions.push(Function::new(&words)),
        }
    }
    let mut code = String::new();
    for (name, is_driver) in [("DRIVER", true), ("RUNTIME", false)] {
        let of_api = functions.iter().filter(|of| of.is_driver == is_driver);
        let count = of_api.clone().map(|of| of.number + 1).max().unwrap_or(0);
        let mut table = vec!["None".to_owned(); count];
        for function in of_api {
            let (tables, expression) = function.code();
            code.push_str(&tables);
            table[function.number] = expression;
        }
        let _ = writeln!(
            code,
            "pub(crate) static {name}: [Option<Function>; {count}] = [{}];",
            table.join(",\n")
        );
    }
    code
}

/// `deviceId` as `DEVICE_ID`.
fn upper(name: &str) -> String {
    let mut upper = String::new();
    for sign in name.chars() {
        if sign.is_uppercase() && !upper.is_empty() {
            upper.push('_');
        }
        upper.extend(sign.to_uppercase().filter(|sign| *sign != '.'));
    }
    upper.replace('.', "_")
}

/// Code with a module for each structure.
fn layouts(text: &str) -> String {
    let mut code = String::new();
    for (is_field, words) in lines(text) {
        if !is_field {
            let close = if code.is_empty() { "" } else { "}\n" };
            let name = words[0].trim_start_matches("CUpti_");
            let name = upper(name.trim_start_matches("Activity")).to_lowercase();
            let _ = writeln!(code, "{close}pub(crate) mod {name} {{ use super::At;");
            continue;
        }
        let of_type = match words[1] {
            "handle" => "usize",
            "bytes" => "[u8; 16]",
            number => number,
        };
        let name = upper(words[0].rsplit('.').next().unwrap_or_default());
        let at = words[2];
        let _ = writeln!(
            code,
            "pub(crate) const {name}: At<{of_type}> = At::new({at});"
        );
    }
    code + "}\n"
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let directory = env::var_os("OUT_DIR").expect("OUT_DIR");
    for (name, generate) in [
        ("functions", functions as fn(&str) -> String),
        ("layouts", layouts),
    ] {
        println!("cargo:rerun-if-changed={name}.txt");
        let text = fs::read_to_string(format!("{name}.txt")).expect("facts");
        fs::write(
            Path::new(&directory).join(format!("{name}.rs")),
            generate(&text),
        )
        .expect("written");
    }
}
