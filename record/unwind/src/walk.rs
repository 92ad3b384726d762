//! From the registers of a thread to the return addresses on its stack.
//!
//! Addresses are as they lie on the stack: the first is where the thread runs, the others are where
//! calls return to, one past the call, so a function is looked up at the address less one. (After
//! the frame of a signal comes the interrupted instruction itself.)

use crate::cache::{Cache, Site};
use crate::module::Module;
use crate::rule::{PC, RBP, RSP, Registers, Rule, Unwound};
use crate::stack::StackCopy;
use crate::tables::Found;

/// How a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With the outermost function of the thread.
    Complete,
    /// At a return address of 0: the outermost function, or a page that could not be copied and is
    /// zero.
    Zero,
    /// Cut: the wanted number of frames was reached.
    Depth,
    /// Cut: the next frame lies beyond the copied bytes.
    Copy,
    /// Unknown: there are no unwind tables, or they do not fit the stack.
    Lost,
}

/// The memory that an address of a process belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Code<'m> {
    /// Code of a file, at that offset.
    Module(&'m Module, u64),
    /// Executable memory of no file, or of one that cannot be read.
    Other,
    /// Memory that is not executable, or none.
    None,
}

/// Follows stacks and remembers the rules of call sites.
#[derive(Debug)]
pub struct Unwinder {
    cache: Cache,
}

impl Default for Unwinder {
    fn default() -> Self {
        Unwinder {
            cache: Cache::new(),
        }
    }
}

impl Unwinder {
    /// Appends the addresses of a stack to `frames`, innermost first, `depth` of them at most.
    /// `code` finds the memory of an address.
    pub fn walk<'m>(
        &mut self,
        mut registers: Registers,
        stack: &StackCopy<'_>,
        depth: usize,
        mut code: impl FnMut(u64) -> Code<'m>,
        frames: &mut Vec<u64>,
    ) -> End {
        let mut is_exact = true;
        for count in 0..depth {
            let pc = registers.0[PC];
            let address = if is_exact { pc } else { pc.wrapping_sub(1) };
            let memory = code(address);
            if matches!(memory, Code::None) {
                return End::Lost;
            }
            frames.push(pc);
            let frame = match (count, is_exact) {
                (0, _) => Frame::First,
                (_, true) => Frame::Interrupted,
                (_, false) => Frame::Caller,
            };
            match self.step(memory, frame, &mut registers, stack, &mut code) {
                Unwound::Called => is_exact = false,
                Unwound::Interrupted => is_exact = true,
                Unwound::Outermost => return End::Complete,
                Unwound::Beyond => return End::Copy,
                Unwound::Lost => return End::Lost,
            }
            if registers.0[PC] == 0 {
                return End::Zero;
            }
        }
        End::Depth
    }

    /// Forgets all rules.
    pub fn forget(&mut self) {
        self.cache.clear();
    }

    #[inline]
    fn step<'m>(
        &mut self,
        memory: Code<'m>,
        frame: Frame,
        registers: &mut Registers,
        stack: &StackCopy<'_>,
        code: impl FnMut(u64) -> Code<'m>,
    ) -> Unwound {
        let is_first = frame == Frame::First;
        let Code::Module(module, offset) = memory else {
            return by_frame_pointer(false, is_first, registers, stack, code);
        };
        // Tables are for the file's code only.
        let Some(address) = module.address(offset) else {
            return by_frame_pointer(true, is_first, registers, stack, code);
        };
        let site = Site {
            module: module.id(),
            address,
        };
        match self.cache.get(site) {
            // Code that runs at the same address was not reached by a return address.
            Some(Rule::FIBER) if frame != Frame::Caller => {}
            Some(rule) => return rule.step(registers, stack),
            None => {}
        }
        let found = module
            .tables()
            .map(|tables| tables.find(site.address, registers, stack));
        match found {
            Some(Found::Rule(rule)) => {
                self.cache.put(site, rule);
                rule.step(registers, stack)
            }
            Some(Found::Done(step)) => step,
            // No call returns to the first instruction of a function after a gap, so the address
            // was put on the stack when the stack was created: a fiber begins there
            // (`__start_context` of glibc, which its table does not mark as the outermost
            // function).
            Some(Found::Nothing) if frame == Frame::Caller && is_made(module, site) => {
                self.cache.put(site, Rule::FIBER);
                Unwound::Outermost
            }
            Some(Found::Nothing) | None => by_frame_pointer(true, is_first, registers, stack, code),
        }
    }
}

/// Whether a return address is the first instruction of a function; `site` is the byte before it.
fn is_made(module: &Module, site: Site) -> bool {
    let after = site.address.wrapping_add(1);
    module
        .tables()
        .is_some_and(|tables| tables.has_function_at(after))
}

/// How the walk reached a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    First,
    Interrupted,
    /// By a return address.
    Caller,
}

/// Without tables, in a file or in other memory: a function with a frame pointer, or a leaf
/// function that has pushed nothing, if the address that this leads to is executable.
fn by_frame_pointer<'m>(
    is_of_file: bool,
    is_first: bool,
    registers: &mut Registers,
    stack: &StackCopy<'_>,
    mut code: impl FnMut(u64) -> Code<'m>,
) -> Unwound {
    let frame = registers.0[RBP];
    let mut is_code = |address: Option<u64>| {
        address.is_some_and(|address| !matches!(code(address.wrapping_sub(1)), Code::None))
    };
    let is_frame = frame >= registers.0[RSP] && frame & 7 == 0;
    if is_frame && is_code(stack.word(frame.wrapping_add(8))) {
        return Rule::FRAME_POINTER.step(registers, stack);
    }
    if is_first && is_code(stack.word(registers.0[RSP])) {
        return Rule::LEAF.step(registers, stack);
    }
    // The loader and the runtime of Go begin their stacks with a frame pointer of 0, fibers of
    // Boost.Context with the return address of their entry function. Code that was compiled at run
    // time may use the register for other values.
    if is_of_file && (frame == 0 || !is_first && frame == registers.0[PC]) {
        return Unwound::Outermost;
    }
    let is_beyond = is_frame && stack.is_beyond(frame.wrapping_add(8));
    if is_beyond {
        Unwound::Beyond
    } else {
        Unwound::Lost
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn walk(
        registers: Registers,
        begin: u64,
        bytes: &[u8],
        module: Option<&Module>,
    ) -> (Vec<u64>, End) {
        let stack = StackCopy::new(begin, bytes);
        let mut frames = Vec::new();
        let code = |address: u64| match (address >> 20, module) {
            (0x4, Some(module)) => Code::Module(module, address & 0xF_FFFF),
            // Beyond the file's code, for which there are no tables.
            (0x6, Some(module)) => Code::Module(module, address << 20),
            (0x4 | 0x5, _) => Code::Other,
            _ => Code::None,
        };
        let end = Unwinder::default().walk(registers, &stack, 64, code, &mut frames);
        (frames, end)
    }

    fn at(pc: u64, sp: u64, frame: u64) -> Registers {
        let mut registers = Registers([0; 17]);
        (registers.0[PC], registers.0[RSP], registers.0[RBP]) = (pc, sp, frame);
        registers
    }

    #[test]
    fn frame_pointers_lead_to_the_outermost_function() {
        // Two frames: each is the caller's frame pointer and the return address.
        let words = [0x7020_u64, 0x50_0010, 0, 0, 0, 0x50_0020]
            .map(u64::to_le_bytes)
            .concat();
        let (frames, end) = walk(at(0x50_0000, 0x7000, 0x7000), 0x7000, &words, None);
        // Memory without a file may use the frame pointer for other values, so the end is
        // uncertain.
        assert_eq!(
            (frames, end),
            (vec![0x50_0000, 0x50_0010, 0x50_0020], End::Lost)
        );
        let own = Module::read(std::fs::File::open("/proc/self/exe").unwrap()).unwrap();
        let words = [0_u64, 0x6F_FFF0].map(u64::to_le_bytes).concat();
        let (frames, end) = walk(at(0x6F_FF00, 0x7000, 0x7000), 0x7000, &words, Some(&own));
        assert_eq!((frames, end), (vec![0x6F_FF00, 0x6F_FFF0], End::Complete));
        let words = [0x7020_u64, 0x50_0010, 0, 0, 0, 0x50_0020]
            .map(u64::to_le_bytes)
            .concat();
        // The second frame lies beyond the copy.
        let (frames, end) = walk(at(0x50_0000, 0x7000, 0x7000), 0x7000, &words[..40], None);
        assert_eq!((frames.len(), end), (2, End::Copy));
    }

    #[test]
    fn fibers_end_where_they_were_made() {
        let own = Module::read(std::fs::File::open("/proc/self/exe").unwrap()).unwrap();
        // A fiber of Boost.Context: the frame pointer is the return address of its entry function.
        let at_end = 0x6F_FFF0;
        let words = [at_end, at_end, 7].map(u64::to_le_bytes).concat();
        let (frames, end) = walk(at(0x6F_FF00, 0x7000, 0x7000), 0x7000, &words, Some(&own));
        assert_eq!((frames, end), (vec![0x6F_FF00, at_end], End::Complete));
    }

    /// The byte before a function marks the start of a fiber if a return address led there, but not
    /// if a signal interrupted it: the two cases must not share a cached rule.
    #[test]
    fn a_walk_ends_as_it_did_before() {
        let own = Module::read(std::fs::File::open("/proc/self/exe").unwrap()).unwrap();
        let begin = a_walk_ends_as_it_did_before as fn() as usize as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let begin = begin - u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
        let near = (begin - 0x1000..begin + 0x1000).filter_map(|address| own.frame(address));
        let after_gap = near
            .map(|frame| frame.begin)
            .find(|&begin| own.frame(begin - 1).is_none());
        let begin = after_gap.expect("some function is aligned");
        let offset = own.offset(begin - 1).unwrap();
        // The first frame is that byte, and the return address on the stack leads there again.
        let code = |address: u64| match address {
            0x4000 => Code::Module(&own, offset),
            _ => Code::None,
        };
        let words = [0_u64, 0x4001].map(u64::to_le_bytes).concat();
        let stack = StackCopy::new(0x7000, &words);
        let mut unwinder = Unwinder::default();
        for _ in 0..2 {
            let mut frames = Vec::new();
            let end = unwinder.walk(at(0x4000, 0x7000, 0x7000), &stack, 64, code, &mut frames);
            assert_eq!((frames, end), (vec![0x4000, 0x4001], End::Complete));
        }
    }

    #[test]
    fn only_executable_addresses_are_frames() {
        let words = [0x7010_u64, 0x60_0010].map(u64::to_le_bytes).concat();
        let (frames, end) = walk(at(0x50_0000, 0x7000, 0x7000), 0x7000, &words, None);
        assert_eq!((frames, end), (vec![0x50_0000], End::Lost));
        assert_eq!(
            walk(at(0x60_0000, 0x7000, 0), 0x7000, &words, None),
            (vec![], End::Lost)
        );
    }

    proptest! {
        /// Whatever the registers and the stack contain, unwinding by real tables ends, and yields
        /// executable addresses only.
        #[test]
        fn any_bytes_end(
            registers in prop::array::uniform17(prop_oneof![
                any::<u64>(), 0x7000..0x7400_u64, 0x40_0000..0x5F_FFFF_u64,
            ]),
            words in prop::collection::vec(prop_oneof![
                any::<u64>(), 0x7000..0x7400_u64, 0x40_0000..0x5F_FFFF_u64,
            ], 0..128),
        ) {
            thread_local!(static OWN: Module = Module::read(std::fs::File::open("/proc/self/exe").unwrap()).unwrap());
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let (frames, _) = OWN.with(|own| walk(Registers(registers), 0x7000, &bytes, Some(own)));
            prop_assert!(frames.len() <= 64);
            for (place, frame) in frames.iter().enumerate() {
                let address = if place == 0 { *frame } else { frame.wrapping_sub(1) };
                prop_assert!(matches!(address >> 20, 0x4 | 0x5) || matches!(frame >> 20, 0x4 | 0x5));
            }
        }
    }
}
