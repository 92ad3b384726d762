//! `tracebraid import`: converts files of other tools to CTF.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::imported;
use crate::warnings::Warnings;

/// Convert perf.data, trace.dat, exports of nsys, Go, FxT to CTF
///
/// Every command that reads traces also reads these files directly; import saves the conversion
/// where a trace is read often, or by other programs. Event classes keep the kernel's names and
/// fields (sched:sched_switch, next_pid); other records of perf become perf_comm, perf_fork,
/// perf_mmap2 and so on. An SQLite export of Nsight Systems becomes a trace for each process, with
/// the calls and commands of CUDA that `tracebraid gpu` shows. Traces of FxT keep their codes; those
/// of user-level threads become the classes of the probe library (tracebraid:ult_switch).
/// the calls and commands of CUDA that `tracebraid gpu` shows. An execution trace of Go becomes a
/// trace whose user-level threads are goroutines.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tracebraid import perf.data -o my-trace
  tracebraid import trace.dat && tracebraid waits trace.dat.ctf
  tracebraid import trace.out -o goroutines

What to record:
  perf record -a -g -e sched:sched_switch,sched:sched_waking \\
      -e raw_syscalls:sys_enter,raw_syscalls:sys_exit sleep 5
  trace-cmd record -e sched -e raw_syscalls sleep 5
  nsys profile --trace cuda -o report ./my-gpu-program
  nsys export --type sqlite -o report.sqlite report.nsys-rep
  curl -o trace.out 'http://localhost:6060/debug/pprof/trace?seconds=5'
  go test -trace trace.out

Exit codes:
  0  done (warnings are on standard error)
  1  the input was damaged and --strict was given, or a write failed
  3  nothing could be read")]
pub(crate) struct ImportArgs {
    /// The file to convert
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Directory of the new trace, which must not exist; default: FILE.ctf
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Exit with code 1 if the input is damaged
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let to = args.output.clone().unwrap_or_else(|| beside(&args.file));
    let summary = imported::import_file(&args.file, &to)?;
    println!("{}", imported::said(&args.file, &summary));
    println!("{}", to.display());
    let mut warnings = Warnings::default();
    for damage in &summary.damage {
        warnings.damage(&format!("{}: {damage}", args.file.display()));
    }
    Ok(warnings.finish(args.strict))
}

/// The default output: `perf.data.ctf` for `perf.data`.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".ctf");
    name.into()
}
