//! The function of the program that contains an address, by the symbol tables of the files that are
//! mapped.
//!
//! Names are needed while the program runs, because they are in the trace as names of user-level
//! threads. Each address is resolved once.
//!
//! Safety: files are mapped for the duration of a search and read within their length; a file that
//! another process truncates meanwhile is not expected of a program that runs.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A module of the process.
struct Module {
    path: CString,
    bias: u64,
}

struct Search {
    address: u64,
    found: Option<Module>,
}

/// The name of the function at an address in the program's code. `None` if it is a function that
/// the compiler or the runtime has made of a construct, or in no module.
pub(crate) fn function(address: u64) -> Option<String> {
    let module = module(address)?;
    match module.symbol(address) {
        Some(symbol) => readable(&symbol),
        None => {
            let path = Path::new(OsStr::from_bytes(module.file().to_bytes()));
            let path = std::fs::canonicalize(path).ok()?;
            let relative = address.wrapping_sub(module.bias);
            Some(format!("{}+{relative:#x}", path.file_name()?.display()))
        }
    }
}

/// The symbol of the function at an address.
pub(crate) fn symbol_at(address: u64) -> Option<String> {
    module(address)?.symbol(address)
}

impl Module {
    fn file(&self) -> &CStr {
        match self.path.is_empty() {
            true => c"/proc/self/exe",
            false => &self.path,
        }
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let file = Mapped::open(self.file())?;
        symbol(file.bytes(), address.wrapping_sub(self.bias))
    }
}

fn module(address: u64) -> Option<Module> {
    let mut search = Search {
        address,
        found: None,
    };
    // SAFETY: the callback gets the search, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(is_in), (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" fn is_in(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: both are valid during the call; program headers are mapped.
    unsafe {
        let (info, search) = (&*info, &mut *search.cast::<Search>());
        let bias = info.dlpi_addr;
        let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        let relative = search.address.wrapping_sub(bias);
        let is_in = |header: &libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && relative.wrapping_sub(header.p_vaddr) < header.p_memsz
        };
        if headers.iter().any(is_in) {
            let path = CStr::from_ptr(info.dlpi_name).to_owned();
            search.found = Some(Module { path, bias });
            return 1;
        }
    }
    0
}

struct Mapped {
    memory: *mut c_void,
    length: usize,
}

impl Mapped {
    fn open(path: &CStr) -> Option<Mapped> {
        // SAFETY: calls of the C library with valid arguments; the mapping outlives the descriptor.
        unsafe {
            let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if file < 0 {
                return None;
            }
            let length = libc::lseek(file, 0, libc::SEEK_END).try_into().unwrap_or(0);
            let memory = libc::mmap(
                core::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file,
                0,
            );
            libc::close(file);
            (memory != libc::MAP_FAILED).then_some(Mapped { memory, length })
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped until it is dropped.
        unsafe { core::slice::from_raw_parts(self.memory.cast(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by this type, and no longer referred to.
        unsafe { libc::munmap(self.memory, self.length) };
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(
        bytes.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(
        bytes.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

const SYMTAB: u32 = 2;
const DYNSYM: u32 = 11;
const FUNCTION: u8 = 2;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

/// Name of the function symbol that contains an address of the file; the full table comes before
/// that of exported symbols.
fn symbol(file: &[u8], address: u64) -> Option<String> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let sections = u64_at(file, 0x28)? as usize;
    let count = usize::from(u16_at(file, 0x3c)?);
    let section = |index: usize| {
        file.get(sections.checked_add(index.checked_mul(SECTION_BYTES)?)?..)?
            .get(..SECTION_BYTES)
    };
    let content = |section: &[u8]| {
        let from = u64_at(section, 0x18)? as usize;
        file.get(from..from.checked_add(u64_at(section, 0x20)? as usize)?)
    };
    for kind in [SYMTAB, DYNSYM] {
        let tables = (0..count).filter_map(section);
        for table in tables.filter(|section| u32_at(section, 4) == Some(kind)) {
            let names = section(u32_at(table, 0x28)? as usize).and_then(content)?;
            if let Some(name) = in_table(content(table)?, names, address) {
                return Some(name);
            }
        }
    }
    None
}

fn in_table(symbols: &[u8], names: &[u8], address: u64) -> Option<String> {
    let found = symbols.chunks_exact(SYMBOL_BYTES).find(|symbol| {
        let is_function = symbol[4] & 0xf == FUNCTION && u16_at(symbol, 6) != Some(0);
        let from = u64_at(symbol, 8).unwrap_or(0);
        is_function && address.wrapping_sub(from) < u64_at(symbol, 16).unwrap_or(0)
    })?;
    let name = names.get(u32_at(found, 0)? as usize..)?;
    let name = CStr::from_bytes_until_nul(name).ok()?;
    Some(name.to_string_lossy().into_owned())
}

/// The program's own name of a function: without the suffixes of outlined functions (clang's
/// `main.omp_outlined`, gcc's `main._omp_fn.0`), and without the parameters of C++.
fn readable(symbol: &str) -> Option<String> {
    let end = ["._omp_fn", ".omp_outlined", ".omp_task_entry", ".omp."];
    let end = end.iter().filter_map(|suffix| symbol.find(suffix)).min();
    let own = &symbol[..end.unwrap_or(symbol.len())];
    let is_unnamed = ["__omp_outlined", "__kmp"]
        .iter()
        .any(|begin| own.starts_with(begin));
    if own.is_empty() || is_unnamed {
        return None;
    }
    let name = demangled(own);
    Some(name.unwrap_or_else(|| own.to_owned()))
}

type Demangle =
    unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// The name of a C++ function, if the program has loaded its runtime.
fn demangled(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") {
        return None;
    }
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: the function has this type, and returns memory of `malloc`.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_demangle".as_ptr());
        if found.is_null() {
            return None;
        }
        let demangle = core::mem::transmute::<*mut c_void, Demangle>(found);
        let null = core::ptr::null_mut();
        let text = demangle(symbol.as_ptr(), null, null.cast(), null.cast());
        if text.is_null() {
            return None;
        }
        let name = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        Some(without_parameters(&name).to_owned())
    }
}

/// The name up to its last list of parameters.
fn without_parameters(name: &str) -> &str {
    let end = name.strip_suffix(" const").unwrap_or(name);
    if !end.ends_with(')') {
        return name;
    }
    let mut depth = 0;
    for (at, byte) in end.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &end[..at];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_program() {
        for (symbol, expected) in [
            ("main", Some("main")),
            ("main.omp_outlined", Some("main")),
            ("solve._omp_fn.12", Some("solve")),
            (".omp_outlined.", None),
            (".omp_task_entry..3", None),
            ("__kmpc_taskloop", None),
        ] {
            assert_eq!(readable(symbol).as_deref(), expected, "{symbol}");
        }
        assert_eq!(without_parameters("a::f(int, g(char)) const"), "a::f");
        assert_eq!(
            without_parameters("(anonymous namespace)::f()"),
            "(anonymous namespace)::f"
        );
    }

    #[test]
    fn a_function_of_this_program_is_found() {
        let address = a_function_of_this_program_is_found as *const () as u64;
        let name = function(address + 1).unwrap();
        assert!(
            name.contains("a_function_of_this_program_is_found"),
            "{name}"
        );
        assert_eq!(function(1), None);
    }
}
