//! Generates the wrappers of all functions in `functions.txt` and `vendors.txt`.
//!
//! Each function becomes a module with its event classes, its recording, and the entry points by
//! which programs reach it: see `src/functions.rs`.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// A parameter.
struct Parameter<'a> {
    name: &'a str,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// A value of a Rust type.
    Value(Scalar),
    /// A text that ends with NUL.
    Text,
    /// An array, with the number of its values.
    Array(Scalar, &'a str),
    /// A list that ends with the first 0 at a multiple of this number.
    List(Scalar, usize),
    /// Where the function writes a value.
    Out(Scalar),
    /// Where it writes values: capacity, and the parameter that gets their number.
    OutArray(Scalar, &'a str, &'a str),
    /// Passed on in its full width, unread.
    Any,
}

#[derive(Clone, Copy, PartialEq)]
enum Scalar {
    Handle,
    Pointer,
    Number(&'static str),
}

impl Scalar {
    fn parse(text: &str) -> Scalar {
        match text {
            "handle" => Scalar::Handle,
            "pointer" => Scalar::Pointer,
            "i32" => Scalar::Number("i32"),
            "u32" => Scalar::Number("u32"),
            "i64" => Scalar::Number("i64"),
            "u64" => Scalar::Number("u64"),
            "usize" => Scalar::Number("usize"),
            _ => panic!("functions.txt: unknown kind {text}"),
        }
    }

    /// The type in the signature.
    fn in_call(self) -> &'static str {
        match self {
            Scalar::Handle | Scalar::Pointer => "usize",
            Scalar::Number(name) => name,
        }
    }

    /// The type of the field.
    fn field(self) -> &'static str {
        match self {
            Scalar::Handle | Scalar::Pointer => "Address",
            Scalar::Number(name) => name,
        }
    }

    /// A value as a field.
    fn as_field(self, value: &str) -> String {
        match self {
            Scalar::Handle | Scalar::Pointer => format!("Address({value} as u64)"),
            Scalar::Number(_) => value.to_owned(),
        }
    }

    /// The type of a sequence of such values.
    fn sequence(self) -> &'static str {
        match self {
            Scalar::Handle | Scalar::Pointer => "&[u64]",
            Scalar::Number("u32") => "&[u32]",
            Scalar::Number(_) => "Numbers<'_>",
        }
    }

    /// A slice as a sequence.
    fn as_sequence(self, slice: &str) -> String {
        match self.sequence() {
            "Numbers<'_>" => format!("Numbers({slice})"),
            _ => slice.to_owned(),
        }
    }

    /// The type of an element in memory: other than u32, all have 8 bytes.
    fn element(self) -> &'static str {
        match self {
            Scalar::Number("u32") => "u32",
            Scalar::Number("i32") => panic!("functions.txt: an array of i32"),
            _ => "u64",
        }
    }
}

impl<'a> Kind<'a> {
    fn parse(text: &'a str) -> Kind<'a> {
        if let Some(out) = text.strip_prefix("out ") {
            return match out.split_once('[') {
                None => Kind::Out(Scalar::parse(out)),
                Some((of, counts)) => {
                    let counts = counts.trim_end_matches(']');
                    let (most, used) = counts.split_once(',').expect("two counts");
                    Kind::OutArray(Scalar::parse(of), most, used)
                }
            };
        }
        match text.split_once('[') {
            Some((of, "]")) => Kind::List(Scalar::parse(of), 2),
            Some((of, "0]")) => Kind::List(Scalar::parse(of), 1),
            Some((of, count)) => Kind::Array(Scalar::parse(of), count.trim_end_matches(']')),
            None if text == "text" => Kind::Text,
            None if text == "any" => Kind::Any,
            None => Kind::Value(Scalar::parse(text)),
        }
    }

    fn in_call(&self) -> &'static str {
        match self {
            Kind::Value(scalar) => scalar.in_call(),
            _ => "usize",
        }
    }
}

/// A function of OpenCL.
struct Function<'a> {
    name: &'a str,
    index: Option<usize>,
    result: &'a str,
    /// Field of the result.
    result_name: &'a str,
    parameters: Vec<Parameter<'a>>,
}

fn parse(text: &str) -> Vec<Function<'_>> {
    let mut functions: Vec<Function<'_>> = Vec::new();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    for line in lines {
        if let Some(parameter) = line.strip_prefix("  ") {
            let (name, kind) = parameter.split_once(' ').expect("name and kind");
            let kind = Kind::parse(kind);
            let name = if name == "type" { "of_type" } else { name };
            let function = functions
                .last_mut()
                .expect("a function before its parameters");
            function.parameters.push(Parameter { name, kind });
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let result_name = match words[2] {
            "i32" => "errcode_ret_val",
            "handle" => words[3],
            _ => "result",
        };
        functions.push(Function {
            name: words[0],
            index: words[1].parse().ok(),
            result: words[2],
            result_name,
            parameters: Vec::new(),
        });
    }
    functions
}

/// The function that fails without a place for its event: it gets none from this library.
const NEEDS_EVENT: &str = "clEnqueueMarker";

/// Maximum number of dimensions; calls with more fail, and their arrays are shorter.
const MOST_DIMENSIONS: usize = 3;

/// Functions that do more than to record: `special.rs` has a function of the same name, which calls
/// the next one itself.
const SPECIAL: &[&str] = &[
    "clCreateCommandQueue",
    "clCreateCommandQueueWithProperties",
    "clCreateCommandQueueWithPropertiesKHR",
    "clSetCommandQueueProperty",
    "clGetCommandQueueInfo",
    "clGetEventInfo",
    "clGetEventProfilingInfo",
    "clCreateKernel",
    "clCreateKernelsInProgram",
    "clCloneKernel",
    "clCreateSubDevices",
    "clGetExtensionFunctionAddress",
    "clGetExtensionFunctionAddressForPlatform",
];

/// The function by which this library prepares loaders.
const PREPARES: &str = "clGetPlatformIDs";

impl Function<'_> {
    /// True if the function enqueues a command whose event it returns.
    fn is_command(&self) -> bool {
        let event = self.parameter("event");
        event.is_some_and(|of| matches!(of.kind, Kind::Out(Scalar::Handle)))
            && self.name.starts_with("clEnqueue")
    }

    fn parameter(&self, name: &str) -> Option<&Parameter<'_>> {
        self.parameters.iter().find(|of| of.name == name)
    }

    fn result_type(&self) -> &'static str {
        match self.result {
            "void" => "()",
            "handle" | "pointer" => "usize",
            "i32" => "i32",
            other => panic!("functions.txt: unknown result {other}"),
        }
    }

    fn arguments(&self) -> String {
        let names: Vec<&str> = self.parameters.iter().map(|of| of.name).collect();
        names.join(", ")
    }

    fn signature(&self) -> String {
        let parameters = self.parameters.iter();
        let parameters: Vec<String> = parameters
            .map(|of| format!("{}: {}", of.name, of.kind.in_call()))
            .collect();
        parameters.join(", ")
    }

    /// Fields of the entry: name, type, value.
    fn entry(&self) -> Vec<(String, &'static str, String)> {
        let mut fields = Vec::new();
        for Parameter { name, kind } in &self.parameters {
            match kind {
                Kind::Value(of) => fields.push((name.to_string(), of.field(), of.as_field(name))),
                Kind::Text => fields.push((
                    name.to_string(),
                    "&CStr",
                    format!("unsafe {{ values::text({name}) }}"),
                )),
                Kind::Array(of, count) => {
                    let element = of.element();
                    let most = match *count {
                        "work_dim" => format!(".min({MOST_DIMENSIONS})"),
                        _ => String::new(),
                    };
                    let words = format!(
                        "unsafe {{ values::array::<{element}>({name}, {count}{most} as usize) }}"
                    );
                    fields.push((
                        format!("{name}_vals"),
                        of.sequence(),
                        of.as_sequence(&words),
                    ));
                }
                Kind::List(of, step) => {
                    let words = format!("unsafe {{ values::list({name}, {step}) }}");
                    fields.push((
                        format!("{name}_vals"),
                        of.sequence(),
                        of.as_sequence(&words),
                    ));
                }
                Kind::Out(_) | Kind::OutArray(..) | Kind::Any => {}
            }
        }
        fields
    }

    /// Fields of the exit.
    fn exit(&self) -> Vec<(String, &'static str, String)> {
        let mut fields = Vec::new();
        match self.result {
            "void" => {}
            "i32" => fields.push((self.result_name.to_owned(), "i32", "result".to_owned())),
            _ => fields.push((
                self.result_name.to_owned(),
                "Address",
                "Address(result as u64)".to_owned(),
            )),
        }
        for Parameter { name, kind } in &self.parameters {
            match kind {
                Kind::Out(of) if *name == "event" && self.is_command() => {
                    fields.push(("event_val".to_owned(), of.field(), of.as_field("event_val")));
                }
                Kind::Out(of) => {
                    let element = of.in_call();
                    let value = format!("unsafe {{ values::out::<{element}>({name}) }}");
                    fields.push((format!("{name}_val"), of.field(), of.as_field(&value)));
                }
                Kind::OutArray(of, most, used) => {
                    let element = of.element();
                    // A call that fails leaves the number unset.
                    let words = format!(
                        "if result == 0 {{ unsafe {{ values::filled::<{element}>({name}, {most} as usize, {used}) }} }} else {{ &[] }}"
                    );
                    fields.push((
                        format!("{name}_vals"),
                        of.sequence(),
                        of.as_sequence(&words),
                    ));
                }
                _ => {}
            }
        }
        fields
    }

    /// Code that records an event with these fields.
    fn event(&self, site: &str, fields: &[(String, &'static str, String)]) -> String {
        let mut code = format!("if {site}.is_enabled() {{\n");
        for (at, (_, kind, value)) in fields.iter().enumerate() {
            let _ = writeln!(code, "let field{at}: {kind} = {value};");
        }
        let sizes: String = (0..fields.len())
            .map(|at| format!(" + field{at}.size()"))
            .collect();
        let writes: String = (0..fields.len())
            .map(|at| format!("field{at}.write(&mut record);\n"))
            .collect();
        let mutable = if fields.is_empty() { "" } else { "mut " };
        let _ = writeln!(
            code,
            "if let Some({mutable}record) = {site}.reserve(0{sizes}) {{\n{writes}record.commit();\n}}\n}}"
        );
        code
    }

    fn site(&self, name: &str, suffix: &str, fields: &[(String, &'static str, String)]) -> String {
        let described: String = fields
            .iter()
            .map(|(field, kind, _)| {
                let kind = kind.replace("'_", "'static").replace('&', "&'static ");
                format!("description.field::<{kind}>(\"{field}\");\n")
            })
            .collect();
        let argument = if fields.is_empty() {
            "_"
        } else {
            "description"
        };
        format!(
            "static {name}: Site = Site::new(\"lttng_ust_opencl:{}_{suffix}\\0\", |{argument}| {{\n{described}}});\n",
            self.name
        )
    }

    /// The call of the next function, as an expression.
    fn call(&self) -> String {
        let arguments = self.arguments();
        if SPECIAL.contains(&self.name) {
            let separator = if arguments.is_empty() { "" } else { ", " };
            return format!("special::{}(next{separator}{arguments})", self.name);
        }
        format!("next({arguments})")
    }

    /// The call of a function that returns an event.
    fn command(&self) -> String {
        let is_blocking = self
            .parameters
            .iter()
            .find(|of| of.name.starts_with("blocking_"))
            .map_or_else(|| "false".to_owned(), |of| format!("{} != 0", of.name));
        let succeeded = match self.result {
            "i32" => "result == 0",
            _ => "result != 0",
        };
        let queue = match self.parameter("command_queue") {
            Some(_) => "command_queue",
            None => "0",
        };
        let kernel = match self.parameter("kernel") {
            Some(_) => "kernel",
            None => "0",
        };
        let parameters = self.parameters.iter();
        let arguments = parameters.map(|of| match of.name {
            "event" if self.name != NEEDS_EVENT => "command.event()",
            name => name,
        });
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        format!(
            "let mut command = Command::begin({queue}, {kernel}, event);\n\
             let result = unsafe {{ next({arguments}) }};\n\
             let event_val = unsafe {{ command.end({succeeded}, {is_blocking}) }};\n"
        )
    }

    fn module(&self, number: usize) -> String {
        let Function { name, .. } = self;
        let (signature, arguments, result) =
            (self.signature(), self.arguments(), self.result_type());
        let separator = if arguments.is_empty() { "" } else { ", " };
        let (entry, exit) = (self.entry(), self.exit());
        let types: Vec<&str> = self.parameters.iter().map(|of| of.kind.in_call()).collect();
        let call = match self.is_command() {
            true => self.command(),
            false => format!("let result = unsafe {{ {} }};\n", self.call()),
        };
        // Completions are recorded after the call: their times follow those of the exit.
        let is_wanted = match () {
            () if self.is_command() => "ENTRY.is_enabled() || commands::are_recorded()",
            () if SPECIAL.contains(name) => "ENTRY.is_enabled() || special::is_needed()",
            () if *name == PREPARES => "ENTRY.is_enabled() && !next::is_preparing()",
            () => "ENTRY.is_enabled()",
        };
        let after = if self.is_command() {
            "command.after();\n"
        } else {
            ""
        };
        let mut code = format!(
            "pub(crate) mod {name} {{\nuse super::*;\n\
             pub(crate) const NUMBER: usize = {number};\n\
             pub(crate) type Function = unsafe extern \"C\" fn({}) -> {result};\n\
             {}{}\
             #[inline(never)]\n\
             unsafe fn recorded(next: Function{separator}{signature}) -> {result} {{\n\
             {}{call}{}{after}result\n}}\n\
             #[inline(always)]\n\
             unsafe fn wrapped(next: Function{separator}{signature}) -> {result} {{\n\
             if {is_wanted} {{ unsafe {{ recorded(next{separator}{arguments}) }} }} \
             else {{ unsafe {{ next({arguments}) }} }}\n}}\n\
             pub(crate) unsafe extern \"C\" fn slot<const SLOT: usize>({signature}) -> {result} {{\n\
             unsafe {{ wrapped(extensions::next::<Function>(NUMBER, SLOT){separator}{arguments}) }}\n}}\n",
            types.join(", "),
            self.site("ENTRY", "entry", &entry),
            self.site("EXIT", "exit", &exit),
            self.event("ENTRY", &entry),
            self.event("EXIT", &exit),
        );
        if let Some(index) = self.index {
            let absent = self.absent();
            let _ = write!(
                code,
                "pub(crate) const INDEX: usize = {index};\n\
                 pub(crate) unsafe extern \"C\" fn layer<const LOADER: usize>({signature}) -> {result} {{\n\
                 unsafe {{ wrapped(next::in_table::<Function>(LOADER, {index}){separator}{arguments}) }}\n}}\n\
                 #[unsafe(export_name = \"{name}\")]\n\
                 unsafe extern \"C\" fn exported({signature}) -> {result} {{\n\
                 let Some(next) = (unsafe {{ next::in_library::<Function>(NUMBER) }}) else {{\n{absent}}};\n\
                 if !next::is_recorded_by_exports() {{ return unsafe {{ next({arguments}) }}; }}\n\
                 unsafe {{ wrapped(next{separator}{arguments}) }}\n}}\n",
            );
        }
        code.push_str("}\n");
        code
    }

    /// Code for a process without an OpenCL library: returns an error.
    fn absent(&self) -> String {
        let error = match self.parameter("errcode_ret") {
            Some(_) => "unsafe { values::set(errcode_ret, NO_PLATFORM) };\n",
            None => "",
        };
        match self.result {
            "i32" => "return NO_PLATFORM;\n".to_owned(),
            "void" => "return;\n".to_owned(),
            _ => format!("{error}return 0;\n"),
        }
    }
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let mut text = String::new();
    for file in ["functions.txt", "vendors.txt"] {
        println!("cargo:rerun-if-changed={file}");
        text.push_str(&fs::read_to_string(file).expect(file));
    }
    let functions = parse(&text);
    let mut code = String::new();
    let names: Vec<String> = functions
        .iter()
        .map(|of| format!("c\"{}\"", of.name))
        .collect();
    let _ = writeln!(
        code,
        "/// Names of all functions, by number.\npub(crate) static NAMES: [&CStr; {}] = [{}];",
        functions.len(),
        names.join(", ")
    );
    let layers: Vec<String> = functions
        .iter()
        .filter_map(|of| {
            let loaders =
                (0..2).map(|loader| format!("{}::layer::<{loader}> as *const ()", of.name));
            let loaders: Vec<String> = loaders.collect();
            Some(format!("({}, [{}])", of.index?, loaders.join(", ")))
        })
        .collect();
    let _ = writeln!(
        code,
        "/// Indexes in the dispatch table, with the wrapper for each loader.\n\
         pub(crate) static LAYERED: Pointers<[(usize, [*const (); 2]); {}]> = Pointers([{}]);",
        layers.len(),
        layers.join(",\n")
    );
    let slots = functions.iter().map(|of| {
        let slots = (0..4).map(|slot| format!("{}::slot::<{slot}> as *const ()", of.name));
        format!("[{}]", slots.collect::<Vec<_>>().join(", "))
    });
    let _ = writeln!(
        code,
        "/// Wrappers of functions that programs get by name, by number.\n\
         pub(crate) static SLOTS: Pointers<[[*const (); 4]; {}]> = Pointers([{}]);",
        functions.len(),
        slots.collect::<Vec<_>>().join(",\n")
    );
    for (number, function) in functions.iter().enumerate() {
        code.push_str(&function.module(number));
    }
    let directory = env::var_os("OUT_DIR").expect("OUT_DIR");
    fs::write(Path::new(&directory).join("functions.rs"), code).expect("functions.rs");
}
