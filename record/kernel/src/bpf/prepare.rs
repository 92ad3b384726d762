//! Settings before the BPF programs are loaded: the selection of programs, map sizes, constants.

use libbpf_rs::{OpenMapMut, OpenObject};

use super::{
    CHOSEN_PROBE, CHOSEN_TRACEPOINT, CLOCK, TASKS, WATCHES, failed, is_named, no_map, tracepoint,
};
use crate::chosen::{Attachment, Point};
use crate::contexts::ContextLayout;
use crate::error::RecordError;
use crate::groups::Group;
use crate::options::Options;
use crate::plan::Syscalls;
use crate::ring::RingShape;
use crate::shared;
use crate::stacks::Stacks;
use crate::uring::Completion;

/// Disables the programs that are not needed; returns the needed tracepoints that the kernel lacks,
/// or whose arguments differ from those that the programs expect.
pub(super) fn choose(
    open: &mut OpenObject,
    options: &Options,
    btf: &[u8],
    knows_rings: bool,
) -> Vec<String> {
    let mut missing = Vec::new();
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let name = tracepoint(&section);
        if name == TASKS {
            continue;
        }
        if [CHOSEN_TRACEPOINT, CHOSEN_PROBE].contains(&name) {
            let is_tracepoint = |point: &Point| matches!(point, Point::Tracepoint(_));
            let is_wanted =
                |event: &Attachment| is_tracepoint(&event.point) == (name == CHOSEN_TRACEPOINT);
            program.set_autoload(options.events.attachments().iter().any(is_wanted));
            continue;
        }
        if program.name().to_string_lossy().starts_with(WATCHES) {
            program.set_autoload(options.watches_calls());
            continue;
        }
        if program.name().to_string_lossy().starts_with("stacks_") {
            let is_wanted = options.stacks.as_ref().is_some_and(|stacks| match name {
                CLOCK => stacks.period_ns > 0,
                "sched_switch" => stacks.threshold_ns > 0,
                "sys_exit" => stacks.threshold_ns > 0 && !can_resume(stacks, btf),
                _ => true,
            });
            program.set_autoload(is_wanted);
            continue;
        }
        let is_wanted = match Group::of_tracepoint(name) {
            Some(group) => options.groups.contains(&group) || options.events.has_own(name),
            None => options.syscalls != Syscalls::None,
        };
        // Processes are followed by their forks and ends; stacks need the numbers of new ones.
        let is_needed = match name {
            "sched_process_fork" => options.follows() || options.stacks.is_some(),
            "sched_process_free" => options.follows(),
            _ => false,
        };
        let is_known = knows_rings || !name.starts_with("io_uring_");
        let is_there = is_known && has_type(btf, name);
        if is_wanted && !is_there {
            missing.push(name.to_owned());
        }
        program.set_autoload((is_wanted || is_needed) && is_there);
    }
    missing
}

/// True if the kernel's types name the tracepoint.
fn has_type(btf: &[u8], tracepoint: &str) -> bool {
    has_name(btf, &format!("btf_trace_{tracepoint}"))
}

/// Names of types and functions are text with a null on both sides.
fn has_name(btf: &[u8], name: &str) -> bool {
    memchr::memmem::find(btf, format!("\0{name}\0").as_bytes()).is_some()
}

/// Whether the kernel can run task work when a thread returns to user mode (Linux 6.18).
fn can_resume(stacks: &Stacks, btf: &[u8]) -> bool {
    stacks.resumes && has_name(btf, "bpf_task_work_schedule_resume_impl")
}

/// Maps with a buffer for each CPU in which stacks are built.
const SCRATCH: [&str; 2] = ["clock_scratch", "waits_scratch"];

/// Reduces the buffers to the number of CPUs and the size of copies; without stacks, to one
/// element.
pub(super) fn size_scratch(
    open: &mut OpenObject,
    stacks: Option<&Stacks>,
    cpus: usize,
) -> Result<(), RecordError> {
    let count = if stacks.is_some() {
        cpus.max(1) as u32
    } else {
        1
    };
    let longer = stacks.map_or(0, Stacks::longer);
    let unused = (shared::MOST_COPY - shared::USUAL_COPY) as u32 - longer;
    for mut map in open
        .maps_mut()
        .filter(|map| SCRATCH.iter().any(|name| map.name() == *name))
    {
        map.set_max_entries(count).map_err(failed)?;
        map.set_value_size(map.value_size() - unused)
            .map_err(failed)?;
    }
    Ok(())
}

pub(super) fn size_chosen(open: &mut OpenObject, options: &Options) -> Result<(), RecordError> {
    let count = options.events.attachments().len().max(1) as u32;
    map(open, "chosen")?.set_max_entries(count).map_err(failed)
}

pub(super) fn size_rings(
    open: &mut OpenObject,
    shape: RingShape,
    cpus: usize,
) -> Result<(), RecordError> {
    let too_large = |_| RecordError::Load("the rings are too large: reduce --buffer-size".into());
    let value_size = u32::try_from(shape.element_bytes()).map_err(too_large)?;
    let max_entries = u32::try_from(shape.elements(cpus)).map_err(too_large)?;
    let mut rings = map(open, "rings")?;
    rings.set_value_size(value_size).map_err(failed)?;
    rings.set_max_entries(max_entries).map_err(failed)?;
    set_constants(open, ".rodata.ring", &shape.encode())
}

pub(super) fn set_options(
    open: &mut OpenObject,
    options: &Options,
    btf: &[u8],
    rings_end: Option<Completion>,
) -> Result<(), RecordError> {
    // `struct options`.
    let values = [
        options.processes.is_some(),
        options.follows(),
        !options.groups.contains(&Group::Sched) && !options.events.has_own_like("sched_process_f"),
        rings_end == Some(Completion::Entry),
    ];
    set_constants(open, ".rodata.options", &values.map(u8::from))?;
    set_constants(open, ".rodata.where", &options.conditions.encode())?;
    let Some(stacks) = &options.stacks else {
        return Ok(());
    };
    set_constants(
        open,
        ".rodata.stacks",
        &stacks.encode(can_resume(stacks, btf)),
    )
}

pub(super) fn set_contexts(
    open: &mut OpenObject,
    contexts: &ContextLayout,
    cpus: usize,
) -> Result<(), RecordError> {
    let count = contexts.elements(cpus);
    map(open, "counters")?
        .set_max_entries(count)
        .map_err(failed)?;
    set_constants(open, ".rodata.contexts", &contexts.encode(cpus))
}

fn map<'o>(open: &'o mut OpenObject, name: &str) -> Result<OpenMapMut<'o>, RecordError> {
    let found = open.maps_mut().find(|map| is_named(map.name(), name));
    found.ok_or_else(|| no_map(name))
}

fn set_constants(open: &mut OpenObject, section: &str, values: &[u8]) -> Result<(), RecordError> {
    let mut map = map(open, section)?;
    let places = map.initial_value_mut().into_iter().flatten();
    places
        .zip(values)
        .for_each(|(place, value)| *place = *value);
    Ok(())
}
