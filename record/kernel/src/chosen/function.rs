//! Probes in functions of programs and of the kernel: at the beginning, at an instruction, at
//! returns.

use std::collections::BTreeSet;
use std::path::Path;

use super::argument::{Architecture, Argument, Source, ValueClass};
use super::executable::{Executable, Symbol, SymbolClass};
use super::names::did_you_mean;
use super::returns::{ExitKind, Exits};
use super::text::Text;
use super::{ChosenEvents, Condition, Point, ValueField, go};

impl ChosenEvents {
    pub(super) fn function(
        &mut self,
        path: &Path,
        function: &str,
        offset: u64,
        at_return: bool,
    ) -> Result<(), String> {
        let program = Executable::read(path)?;
        let text = Text::new(&program);
        let is_indirect =
            |symbol: &&Symbol| symbol.name == function && symbol.class == SymbolClass::Indirect;
        let is_partial = program.symbols.iter().any(|symbol| is_indirect(&symbol));
        for begin in addresses(&program, function)? {
            match at_return {
                true => self.returns(&text, function, begin)?,
                false => self.instruction(&text, function, begin, offset)?,
            }
        }
        if is_partial {
            self.note(format!(
                "{}: one of the functions named {function} is indirect (IFUNC) and not recorded: it selects another \
                 function when the program starts; record that function too",
                program.path.display()
            ));
        }
        Ok(())
    }

    fn instruction(
        &mut self,
        text: &Text<'_>,
        function: &str,
        begin: u64,
        offset: u64,
    ) -> Result<(), String> {
        let shown = text.program.path.display();
        let outside = || format!("{shown}: {function}+{offset:#x} is outside the program");
        let address = begin.checked_add(offset).ok_or_else(outside)?;
        if offset > 0 {
            let extent = text
                .extent(begin)
                .filter(|extent| !extent.contains(&address));
            if let Some(extent) = extent {
                return Err(format!(
                    "{shown}: {function}+{offset:#x} is beyond the end of {function}, which has {:#x} bytes",
                    extent.end - begin
                ));
            }
        }
        let name = match offset {
            0 => function.to_owned(),
            _ => format!("{function}+{offset:#x}"),
        };
        // A function symbol is the beginning of an instruction even if the code after it does not
        // decode.
        if offset > 0 || text.program.code_offset(address).is_none() {
            text.check(&name, address)?;
        }
        let in_file = text.program.code_offset(address).ok_or_else(outside)?;
        let (fields, arguments) = match offset {
            0 => arguments(),
            // Inside the function the argument registers may have been overwritten.
            _ => (Vec::new(), Vec::new()),
        };
        let name = format!("uprobe:{name}");
        let point = self.program_point(text, in_file, false);
        self.add(
            name.clone(),
            name,
            point,
            fields,
            &arguments,
            &Condition::Hit,
        );
        Ok(())
    }

    fn program_point(&self, text: &Text<'_>, offset: u64, at_return: bool) -> Point {
        Point::Program {
            path: text.program.path.clone(),
            offset,
            at_return,
            semaphore: None,
        }
    }

    fn returns(&mut self, text: &Text<'_>, function: &str, begin: u64) -> Result<(), String> {
        match Exits::find(text, begin) {
            Ok(exits) => self.exits(text, function, &exits),
            Err(why) => self.replaced_return(text, function, begin, &why),
        }
    }

    /// Adds a probe at each exit of the function.
    fn exits(&mut self, text: &Text<'_>, function: &str, exits: &Exits) -> Result<(), String> {
        let name = format!("uretprobe:{function}");
        let shown = text.program.path.display();
        if exits.exits.is_empty() {
            return Err(format!(
                "{shown}: {function} never returns: it has neither a return nor a jump to another function"
            ));
        }
        self.note_tail_calls(text, &name, exits);
        for exit in &exits.exits {
            let offset = text.program.code_offset(exit.address);
            let offset =
                offset.ok_or_else(|| format!("{shown}: {function} is outside the program"))?;
            let relative = |address: u64| address.wrapping_sub(exit.address).cast_signed();
            let target = |address: u64| Source::Address {
                base: Architecture::OWN.instruction_pointer(),
                displacement: relative(address),
            };
            let (field, source, condition) = match &exit.kind {
                ExitKind::Return => {
                    let result = Source::Register(Architecture::OWN.result_register());
                    ("ret", result, Condition::Exit)
                }
                ExitKind::Jump(to) => ("tail_call", target(*to), Condition::Exit),
                ExitKind::Branch(to, number) => {
                    ("tail_call", target(*to), Condition::Taken(*number))
                }
                ExitKind::Indirect(source) => {
                    let part = |address: u64| relative(address) as i32;
                    let parts = exits.parts.iter();
                    let parts = parts.map(|range| [part(range.start), part(range.end)]);
                    (
                        "tail_call",
                        source.clone(),
                        Condition::Outside(parts.collect()),
                    )
                }
            };
            let class = ValueClass::ADDRESS;
            let point = self.program_point(text, offset, false);
            let fields = vec![ValueField::named(field, class)];
            let argument = Argument { source, class };
            self.add(
                name.clone(),
                name.clone(),
                point,
                fields,
                &[argument],
                &condition,
            );
        }
        Ok(())
    }

    fn note_tail_calls(&mut self, text: &Text<'_>, name: &str, exits: &Exits) {
        let target = |kind: &ExitKind| match kind {
            ExitKind::Jump(target) | ExitKind::Branch(target, _) => Some(*target),
            ExitKind::Return | ExitKind::Indirect(_) => None,
        };
        let targets: Vec<u64> = exits
            .exits
            .iter()
            .filter_map(|exit| target(&exit.kind))
            .collect();
        if targets.is_empty() {
            return;
        }
        let named = |target: &u64| match text.names(*target).first() {
            Some(name) => (*name).to_owned(),
            None => format!("{target:#x}"),
        };
        let names: BTreeSet<String> = targets.iter().map(named).collect();
        let names: Vec<String> = names.into_iter().collect();
        self.note(format!(
            "{name}: {} of the {} exits are tail calls ({}): their events are recorded at the jump and have the field \
             `tail_call`, the address of the other function, instead of `ret`; record its uretprobe too",
            targets.len(),
            exits.exits.len(),
            names.join(", ")
        ));
    }

    /// Adds the kernel's return probe, for functions whose exits are not all known.
    fn replaced_return(
        &mut self,
        text: &Text<'_>,
        function: &str,
        begin: u64,
        why: &str,
    ) -> Result<(), String> {
        let shown = text.program.path.display();
        let name = format!("uretprobe:{function}");
        let refused = |crash: &str| {
            Err(format!(
                "{shown}: the instructions at which {function} returns cannot all be found ({why}), and the kernel's \
                 return probes replace the return address, which {crash}; use uprobe:{function} and \
                 uprobe:{function}+OFFSET with the offsets of its returns"
            ))
        };
        if text.program.is_go() {
            return refused("crashes programs in Go when their stacks move");
        }
        if text.frame(begin).is_some_and(|frame| frame.has_handlers) {
            return refused(
                "aborts the program at an exception or a cancellation, for which the function has cleanup code",
            );
        }
        let outside = || format!("{shown}: {function} is not in executable memory");
        let offset = text.program.code_offset(begin).ok_or_else(outside)?;
        self.note(format!(
            "{name}: the instructions at which the function returns cannot all be found ({why}), so the kernel replaces the \
             return address of each call: C++ exceptions and pthread_cancel through the function abort the program, call \
             stacks below it end there, and returns of calls nested deeper than 64 are lost (and counted)"
        ));
        let (fields, arguments) = result();
        let point = self.program_point(text, offset, true);
        self.add(
            name.clone(),
            name.clone(),
            point,
            fields,
            &arguments,
            &Condition::Hit,
        );
        let (fields, _) = result();
        let point = self.program_point(text, offset, false);
        self.add(name.clone(), name, point, fields, &[], &Condition::Omitted);
        Ok(())
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn kernel_function(
        &mut self,
        function: &str,
        at_return: bool,
    ) -> Result<(), String> {
        if !Path::new(KPROBES).exists() {
            return Err(format!(
                "kprobe:{function}: this kernel has no kprobes (CONFIG_KPROBES); use a tracepoint"
            ));
        }
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let names = || kernel_functions(&symbols);
        if names().next().is_some() && !names().any(|name| name == function) {
            let near = did_you_mean(function, names());
            return Err(format!("this kernel has no function {function}{near}"));
        }
        let (kind, (fields, arguments)) = match at_return {
            true => ("kretprobe", result()),
            false => ("kprobe", arguments()),
        };
        let name = format!("{kind}:{function}");
        let point = Point::Function {
            name: function.to_owned(),
            at_return,
        };
        self.add(
            name.clone(),
            name,
            point,
            fields,
            &arguments,
            &Condition::Hit,
        );
        Ok(())
    }
}

/// Addresses of all functions with a name, which static functions of several files and versions of
/// a library function share.
fn addresses(program: &Executable, function: &str) -> Result<BTreeSet<u64>, String> {
    let shown = program.path.display();
    let named: Vec<&Symbol> = program
        .symbols
        .iter()
        .filter(|symbol| symbol.name == function)
        .collect();
    let functions = named.iter().filter(|symbol| symbol.is_function());
    let mut found: BTreeSet<u64> = functions.map(|symbol| symbol.address).collect();
    if found.is_empty() {
        found.extend(go::function(program, function));
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let why = match named.first().map(|symbol| symbol.class) {
        Some(SymbolClass::Indirect) => {
            "is an indirect function (IFUNC), which selects another function when the program starts: name that function"
        }
        Some(SymbolClass::Data) => "is data, not a function: a probe would change it",
        Some(SymbolClass::ThreadLocal) => {
            "is thread-local data, not a function: a probe would change it"
        }
        Some(_) => {
            "does not have the type of a function, so its content is unknown; in assembly, `.type NAME, @function` declares one"
        }
        None => return Err(missing(program, function)),
    };
    Err(format!("{shown}: {function} {why}"))
}

fn missing(program: &Executable, function: &str) -> String {
    let shown = program.path.display();
    let functions: Vec<&Symbol> = program
        .symbols
        .iter()
        .filter(|symbol| symbol.is_function())
        .collect();
    let near = did_you_mean(
        function,
        functions.iter().map(|symbol| symbol.name.as_str()),
    );
    let hint = match functions.is_empty() {
        true => ": it has no symbols (stripped)",
        false => "",
    };
    format!("{shown} has no function {function}{hint}{near}")
}

/// Fields of an event at the beginning of a function, and the registers of its arguments.
fn arguments() -> (Vec<ValueField>, Vec<Argument>) {
    let class = ValueClass::ADDRESS;
    let registers = Architecture::OWN
        .argument_registers()
        .into_iter()
        .enumerate();
    let argument = |(number, register)| {
        (
            ValueField::numbered(number, class),
            Argument::register(register, class),
        )
    };
    registers.map(argument).unzip()
}

/// The field `ret` of an event at a return, and its register.
fn result() -> (Vec<ValueField>, Vec<Argument>) {
    let class = ValueClass::ADDRESS;
    let argument = Argument::register(Architecture::OWN.result_register(), class);
    (vec![ValueField::named("ret", class)], vec![argument])
}

/// Exists if the kernel supports kprobes.
const KPROBES: &str = "/sys/bus/event_source/devices/kprobe";

/// Functions of `/proc/kallsyms` whose type is `t` or `T`.
fn kernel_functions(symbols: &str) -> impl Iterator<Item = &str> {
    symbols.lines().filter_map(|line| {
        let mut parts = line.split_ascii_whitespace().skip(1);
        let (class, name) = (parts.next()?, parts.next()?);
        class.eq_ignore_ascii_case("t").then_some(name)
    })
}
