//! Compares unwinders on code without frame pointers: this crate, framehop and libunwind, in one
//! run.
//!
//! `cargo run --release -p tracebraid-unwind --example unwinders` prints nanoseconds per stack
//! (median of the rounds), with cached and with uncached rules. This crate unwinds a copy, as it
//! does for the recorder; the others read the stack itself. libunwind is loaded at run time; its
//! cache cannot be cleared.

#![allow(unsafe_code, missing_docs)]

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::time::Instant;

use framehop::{ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder};
use tracebraid_unwind::{Code, Registers, StackCopy, Unwinder as Ours};

const ROUNDS: usize = 2001;

type NestedCall = fn(usize, &mut dyn FnMut()) -> usize;

/// One function for each frame, so that each frame needs a rule of its own.
static STEPS: [NestedCall; 32] = {
    macro_rules! steps {
        ($($number:literal)*) => { [$(step::<$number>),*] };
    }
    steps!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
};

/// Calls the next function, not by a tail call, and the last one calls `work`.
#[inline(never)]
fn step<const N: usize>(depth: usize, work: &mut dyn FnMut()) -> usize {
    if depth == 0 {
        work();
        return N;
    }
    black_box(STEPS[(N + 1) % STEPS.len()](black_box(depth - 1), work)) + N
}

fn descend(depth: usize, work: &mut dyn FnMut()) -> usize {
    step::<0>(depth, work)
}

fn median(mut once: impl FnMut()) -> u128 {
    let mut times: Vec<u128> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            once();
            begin.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

/// An executable mapping of this program.
struct Mapped {
    range: std::ops::Range<u64>,
    offset: u64,
    module: Option<tracebraid_unwind::Module>,
}

fn mapped() -> Vec<Mapped> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let lines = maps.lines().filter_map(|line| {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let (begin, end) = parts[0].split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let file = parts.get(5).and_then(|path| std::fs::File::open(path).ok());
        parts[1].contains('x').then_some(())?;
        Some(Mapped {
            range: number(begin)?..number(end)?,
            offset: number(parts[2])?,
            module: file.and_then(|file| tracebraid_unwind::Module::read(file).ok()),
        })
    });
    lines.collect()
}

fn code(mapped: &[Mapped], address: u64) -> Code<'_> {
    let after = mapped.partition_point(|mapped| mapped.range.start <= address);
    let found = after.checked_sub(1).map(|place| &mapped[place]);
    match found.filter(|mapped| mapped.range.contains(&address)) {
        Some(Mapped {
            range,
            offset,
            module: Some(module),
        }) => Code::Module(module, address - range.start + offset),
        Some(_) => Code::Other,
        None => Code::None,
    }
}

/// Bytes of the stack that are copied: more than the calls here use, and less than the main thread
/// has.
const COPIED: usize = 16 << 10;

/// The registers and the stack of the caller.
#[inline(never)]
fn copy_here() -> (Registers, Vec<u8>) {
    let mut registers = Registers([0; 17]);
    let place = registers.0.as_mut_ptr();
    // SAFETY: only reads registers and writes words of the array; the stack extends beyond the
    // copied bytes.
    unsafe {
        std::arch::asm!(
            "mov [{place} + 8*3], rbx",
            "mov [{place} + 8*6], rbp",
            "mov [{place} + 8*7], rsp",
            "mov [{place} + 8*12], r12",
            "mov [{place} + 8*13], r13",
            "mov [{place} + 8*14], r14",
            "mov [{place} + 8*15], r15",
            "lea {pc}, [rip]",
            "mov [{place} + 8*16], {pc}",
            place = in(reg) place,
            pc = out(reg) _,
            options(nostack),
        );
        let stack = std::slice::from_raw_parts(registers.0[7] as *const u8, COPIED).to_vec();
        (registers, stack)
    }
}

fn ours(depth: usize) {
    let mapped = mapped();
    let mut unwinder = Ours::default();
    let mut frames = Vec::with_capacity(256);
    let (mut known, mut new, mut end) = (0, 0, None);
    descend(depth, &mut || {
        let (registers, bytes) = copy_here();
        let stack = StackCopy::new(registers.0[7], &bytes);
        let mut walk = |unwinder: &mut Ours| {
            frames.clear();
            end = Some(unwinder.walk(
                registers,
                &stack,
                256,
                |address| code(&mapped, address),
                &mut frames,
            ));
        };
        known = median(|| walk(&mut unwinder));
        new = median(|| {
            unwinder.forget();
            walk(&mut unwinder);
        });
        new -= median(|| unwinder.forget());
    });
    assert_eq!(end, Some(tracebraid_unwind::End::Complete));
    println!(
        "ours      {:3} frames: known {known:6} ns, new {new:6} ns",
        frames.len()
    );
}

type Native = framehop::UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>;

/// Adds the modules to framehop by their program headers.
unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, unwinder: *mut c_void) -> c_int {
    // SAFETY: the loader passes valid descriptions; segments stay mapped.
    unsafe {
        let (info, unwinder) = (&*info, &mut *unwinder.cast::<Native>());
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        let base = info.dlpi_addr;
        let bytes = |address: u64, length: u64| {
            std::slice::from_raw_parts(address as *const u8, length as usize)
        };
        let loads = || {
            headers
                .iter()
                .filter(|header| header.p_type == libc::PT_LOAD)
        };
        let Some(table) = headers
            .iter()
            .find(|header| header.p_type == libc::PT_GNU_EH_FRAME)
        else {
            return 0;
        };
        let at = base + table.p_vaddr;
        let frames = (at + 4).wrapping_add_signed(((at + 4) as *const i32).read().into());
        let Some(load) = loads()
            .find(|load| (load.p_vaddr..load.p_vaddr + load.p_memsz).contains(&(frames - base)))
        else {
            return 0;
        };
        let end = base + load.p_vaddr + load.p_filesz;
        let last = loads()
            .map(|load| base + load.p_vaddr + load.p_memsz)
            .max()
            .unwrap_or(base);
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            eh_frame_svma: Some(frames - base..end - base),
            eh_frame: Some(bytes(frames, end - frames)),
            eh_frame_hdr_svma: Some(table.p_vaddr..table.p_vaddr + table.p_memsz),
            eh_frame_hdr: Some(bytes(at, table.p_memsz)),
            ..ExplicitModuleSectionInfo::default()
        };
        unwinder.add_module(Module::new(String::new(), base..last, base, sections));
    }
    0
}

#[inline(never)]
fn framehop_here(
    unwinder: &Native,
    cache: &mut framehop::CacheNative<MustNotAllocateDuringUnwind>,
) -> usize {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp);
    }
    let registers = framehop::x86_64::UnwindRegsX86_64::new(pc, sp, bp);
    // SAFETY: the unwind tables are correct, so the addresses are readable.
    let mut read = |address: u64| unsafe { Ok((address as *const u64).read()) };
    let mut frames = unwinder.iter_frames(pc, registers, cache, &mut read);
    let mut count = 0;
    while let Ok(Some(frame)) = frames.next() {
        black_box(frame.address());
        count += 1;
    }
    count
}

fn theirs(depth: usize) {
    let mut unwinder = Native::new();
    // SAFETY: the callback has the type of its argument.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut unwinder).cast()) };
    let mut caches: Vec<_> = (0..ROUNDS)
        .map(|_| framehop::CacheNative::<MustNotAllocateDuringUnwind>::new_in())
        .collect();
    let (mut count, mut known, mut new) = (0, 0, 0);
    descend(depth, &mut || {
        let mut at = 0;
        new = median(|| {
            count = black_box(framehop_here(&unwinder, &mut caches[at]));
            at += 1;
        });
        known = median(|| _ = black_box(framehop_here(&unwinder, &mut caches[0])));
    });
    println!("framehop  {count:3} frames: known {known:6} ns, new {new:6} ns");
}

fn libunwind(depth: usize) {
    // SAFETY: names with a NUL; the function of that name has that type.
    let backtrace = unsafe {
        let library = libc::dlopen(c"libunwind.so.8".as_ptr(), libc::RTLD_NOW);
        if library.is_null() {
            println!("libunwind NOT MEASURED: libunwind.so.8 is not installed");
            return;
        }
        let address = libc::dlsym(library, c"unw_backtrace".as_ptr());
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int>(
            address,
        )
    };
    let mut frames = [std::ptr::null_mut(); 256];
    let (mut count, mut known, mut first) = (0, 0, 0);
    descend(depth, &mut || {
        // SAFETY: the array has 256 elements.
        let mut once = || unsafe { backtrace(frames.as_mut_ptr(), 256) };
        let begin = Instant::now();
        count = once();
        first = begin.elapsed().as_nanos();
        known = median(|| _ = black_box(once()));
    });
    println!("libunwind {count:3} frames: known {known:6} ns, the very first {first:6} ns");
}

fn main() {
    // Stack memory to copy beyond the frames.
    let room = black_box([0_u8; 2 * COPIED]);
    for depth in [5, 25] {
        ours(depth);
        theirs(depth);
        libunwind(depth);
    }
    black_box(room);
}
