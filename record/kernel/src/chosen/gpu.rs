//! Tracepoints of GPU jobs.
//!
//! They are recorded by their format files instead of by programs with the types of their arguments:
//! the drivers are modules, and their types differ between versions of the kernel.

use super::ChosenEvents;
use super::tracefs::TraceFs;

/// By category. Those whose names begin alike are of different versions of the kernel.
const TRACEPOINTS: [(&str, &[&str]); 5] = [
    (
        "gpu_scheduler",
        &[
            "drm_sched_job",
            "drm_run_job",
            "drm_sched_process_job",
            "drm_sched_job_wait_dep",
            "drm_sched_job_queue",
            "drm_sched_job_run",
            "drm_sched_job_done",
            "drm_sched_job_add_dep",
            "drm_sched_job_unschedulable",
        ],
    ),
    (
        "i915",
        &[
            "i915_request_queue",
            "i915_request_add",
            "i915_request_submit",
            "i915_request_execute",
            "i915_request_in",
            "i915_request_out",
            "i915_request_retire",
            "i915_request_wait_begin",
            "i915_request_wait_end",
        ],
    ),
    (
        "xe",
        &[
            "xe_sched_job_create",
            "xe_sched_job_exec",
            "xe_sched_job_run",
            "xe_sched_job_free",
            "xe_hw_fence_signal",
        ],
    ),
    ("amdgpu", &["amdgpu_cs_ioctl", "amdgpu_sched_run_job"]),
    (
        "dma_fence",
        &[
            "dma_fence_emit",
            "dma_fence_signaled",
            "dma_fence_destroy",
            "dma_fence_wait_start",
            "dma_fence_wait_end",
        ],
    ),
];

/// The category of fences, which other drivers use too.
const FENCES: &str = "dma_fence";

impl ChosenEvents {
    /// Adds the tracepoints of GPU jobs that the kernel has, of all processes: threads of the kernel
    /// hand jobs to the device. With `is_named`, a note reports a kernel without any
    /// tracepoint of jobs.
    ///
    /// # Errors
    /// If tracepoints cannot be listed.
    pub fn add_gpu(&mut self, is_named: bool) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot list tracepoints ({error})");
        let tracefs = TraceFs::open().map_err(failed)?;
        let all = tracefs.tracepoints().map_err(failed)?;
        let mut has_jobs = false;
        for [category, name] in &all {
            let known = TRACEPOINTS.iter().find(|of| of.0 == category);
            if !known.is_some_and(|(_, names)| names.contains(&&**name)) {
                continue;
            }
            // A driver may be unloaded meanwhile.
            if let Ok(format) = tracefs.format(category, name) {
                self.tracepoint_of_all(&format, name);
                has_jobs |= category != FENCES;
            }
        }
        if is_named && !has_jobs {
            let drivers = TRACEPOINTS.iter().map(|of| of.0);
            let drivers: Vec<&str> = drivers.filter(|category| *category != FENCES).collect();
            self.notes.push(format!(
                "the kernel has no tracepoints of GPU jobs ({}): no driver that has them is loaded",
                drivers.join(", ")
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_tracepoint::Format;

    use super::*;
    use crate::chosen::EventSpec;

    const FORMAT: &str = "name: dma_fence_emit\nID: 7\nformat:\n\tfield:unsigned int context;\toffset:8;\tsize:4;\tsigned:0;\n";

    /// Offset of `of_all` in `struct chosen`.
    const OF_ALL: usize = 25;

    #[test]
    fn a_tracepoint_of_all_processes_replaces_that_of_recorded_ones() {
        let format = Format::parse("dma_fence", FORMAT, 8).unwrap();
        let mut events = ChosenEvents::resolve(&Vec::<EventSpec>::new()).unwrap();
        events.tracepoint(&format, "dma_fence_emit", false);
        let flags = |events: &ChosenEvents| -> Vec<(u8, bool)> {
            let attachments = events.attachments().iter();
            attachments
                .map(|of| (of.description[OF_ALL], of.is_optional))
                .collect()
        };
        assert_eq!(flags(&events), [(0, false)]);
        events.tracepoint_of_all(&format, "dma_fence_emit");
        assert_eq!(flags(&events), [(1, false)]);
        assert_eq!(events.classes.len(), 1);
    }
}
