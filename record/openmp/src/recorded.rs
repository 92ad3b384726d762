//! The library's own event classes.

use crate::functions::Class;

static TASK: Class = Class::new(
    c"tracebraid_openmp:task",
    c"integer { size = 64; align = 8; signed = false; } _ult;\n\
      integer { size = 64; align = 8; signed = false; } _parent;\n\
      integer { size = 64; align = 8; signed = false; base = x; } _codeptr;\n\
      integer { size = 32; align = 8; signed = false; base = x; } _flags;\n",
);
static CANCEL: Class = Class::new(
    c"tracebraid_openmp:cancel",
    c"integer { size = 64; align = 8; signed = false; } _ult;\n\
      integer { size = 64; align = 8; signed = false; base = x; } _codeptr;\n\
      integer { size = 32; align = 8; signed = false; base = x; } _flags;\n",
);

/// Registers the classes, before the first callback.
pub(crate) fn register() {
    TASK.register();
    CANCEL.register();
}

/// Records the creation of a task.
pub(crate) fn task(ult: u64, parent: u64, codeptr: u64, flags: u32) {
    let mut fields = [0; 28];
    fields[..8].copy_from_slice(&ult.to_ne_bytes());
    fields[8..16].copy_from_slice(&parent.to_ne_bytes());
    fields[16..24].copy_from_slice(&codeptr.to_ne_bytes());
    fields[24..].copy_from_slice(&flags.to_ne_bytes());
    TASK.record(&fields);
}

/// Records a cancellation.
pub(crate) fn cancel(ult: u64, codeptr: u64, flags: u32) {
    let mut fields = [0; 20];
    fields[..8].copy_from_slice(&ult.to_ne_bytes());
    fields[8..16].copy_from_slice(&codeptr.to_ne_bytes());
    fields[16..].copy_from_slice(&flags.to_ne_bytes());
    CANCEL.record(&fields);
}
