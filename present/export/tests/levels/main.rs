//! Exports of super-traces, read by the tools that they are for.

mod fxt;
mod otf2;
mod paje;
mod perfetto;
mod played;
