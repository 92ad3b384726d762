//! Super-traces in the formats of other tools: Pajé, Perfetto, OTF2 and FxT.
//!
//! In: items in the order of time (`tracebraid_levels::exported`), for FxT event records. Out: text or
//! bytes, written as they come.

mod fxt;
mod otf2;
mod paje;
mod perfetto;

pub use fxt::FxtWriter;
pub use otf2::Otf2Writer;
pub use paje::PajeWriter;
pub use perfetto::PerfettoWriter;
