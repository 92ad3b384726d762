//! The event classes of the imported trace.

use tracebraid_ctf::schema::build::Fields;

use crate::output::payload;

macro_rules! classes {
    ($($class:ident $name:literal |$fields:ident| $layout:expr,)*) => {
        /// An event class; its number is its id in the trace.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Class {
            $($class,)*
        }

        impl Class {
            /// All classes, in the order of their ids.
            pub(super) const ALL: &'static [Class] = &[$(Class::$class,)*];

            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Class::$class => $name,)*
                }
            }

            pub(super) fn layout(self) -> Fields {
                match self {
                    $(Class::$class => {
                        let $fields = payload();
                        $layout
                    })*
                }
            }
        }
    };
}

classes! {
    UltCreate "tracebraid:ult_create" |of| of.uint("ult", 64).string("name"),
    UltSwitch "tracebraid:ult_switch" |of| of.uint("prev_ult", 64).uint("next_ult", 64),
    UltBlock "tracebraid:ult_block" |of| of.uint("ult", 64).string("reason"),
    UltWake "tracebraid:ult_wake" |of| of.uint("ult", 64),
    UltExit "tracebraid:ult_exit" |of| of.uint("ult", 64),
    UltName "tracebraid:ult_name" |of| of.uint("ult", 64).string("name"),
    UltState "tracebraid:ult_state" |of| of
        .uint("ult", 64)
        .int("lwp", 32)
        .uint("state", 8)
        .string("name")
        .string("reason"),
    UltCallBegin "tracebraid:ult_call_begin" |of| of.uint("ult", 64),
    UltCallEnd "tracebraid:ult_call_end" |of| of.uint("ult", 64),
    LwpBegin "tracebraid:lwp_begin" |of| of.string("runtime"),
    LwpProcessor "tracebraid:lwp_processor" |of| of.int("processor", 32),
    SpanBegin "tracebraid:span_begin" |of| of.uint("id", 64).string("name"),
    SpanEnd "tracebraid:span_end" |of| of.uint("id", 64),
    Counter "tracebraid:counter" |of| of.string("name").int("value", 64),
    // The goroutine yields or is preempted by the runtime, and stays ready.
    Stop "go:stop" |of| of.uint("ult", 64).string("reason"),
    // The recording thread takes the processor of a thread in a system call (-1: unknown).
    ProcessorStolen "go:processor_stolen" |of| of.int("processor", 32).int("lwp", 32),
    Label "go:label" |of| of.uint("ult", 64).string("label"),
    Log "go:log" |of| of.uint("task", 64).string("category").string("message"),
    Task "go:task" |of| of.uint("task", 64).uint("parent", 64),
    // The process, and the functions of a stack, root first, joined by semicolons.
    StackFrames "go:stack_frames" |of| of
        .uint("stack", 64)
        .int("pid", 32)
        .string("process")
        .string("frames"),
    // The stack of the running goroutine at its next event.
    Stack "go:stack" |of| of.uint("stack", 64),
    // The stack of a wait or of a system call of the running goroutine, which has ended.
    WaitStack "go:wait_stack" |of| of.uint("stack", 64).uint("wait_ns", 64),
    CpuSample "go:cpu_sample" |of| of.uint("ult", 64).int("processor", 32).uint("stack", 64),
}
