//! Several analyses of kernel events in one pass.
//!
//! Each event is looked up once, and passed to the analyses that want it.

use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Composition, Record, Slice, StreamPlace, StreamRef};
use tracebraid_kernel_model::KernelEvent;

use crate::frame::{Input, KernelAnalysis};
use crate::recorded::Recorded;
use crate::selection::Selection;

/// A tuple of analyses in one pass over traces. Each report is the same as if its analysis ran
/// alone, since all analyses follow each CPU alone.
#[derive(Debug)]
pub struct Together<P> {
    input: Input,
    /// By index of the event class: a bit for each analysis that wants it.
    wanted: Vec<u32>,
    parts: P,
}

impl<P> Together<P> {
    /// Reads the events that any of the analyses wants; `wants` returns their bits.
    fn of(
        (set, recorded): (&TraceSet, &Arc<Recorded>),
        selection: &Selection,
        parts: P,
        wants: impl Fn(&P, &KernelEvent) -> u32,
    ) -> Self {
        let wanted = |event: &KernelEvent| wants(&parts, event) != 0;
        let input = Input::sharing(set, Some(recorded), selection.clone(), wanted);
        let wanted = input.sources.models().iter();
        let wanted = wanted.map(|model| wants(&parts, &model.event)).collect();
        Together {
            input,
            wanted,
            parts,
        }
    }

    /// The events that the analyses read.
    pub fn input(&self) -> &Input {
        &self.input
    }
}

/// Lifts a slice of one analysis to all analyses; `part` selects its state.
fn slice_of_all<'a, T: 'a, U: 'a>(slice: Slice<'a, T>, part: fn(&mut U) -> &mut T) -> Slice<'a, U> {
    Box::new(move |resident: &mut U| -> Composition<'a, U> {
        let composition = slice(part(resident));
        Box::new(move |all| composition(part(all)))
    })
}

macro_rules! together {
    ($($analysis:ident $place:tt),+) => {
        impl<$($analysis: KernelAnalysis),+> Together<($($analysis,)+)> {
            /// True if no analysis has the events that it needs.
            pub fn lacks_all(&self) -> bool {
                true $(&& self.parts.$place.lacks().is_some())+
            }

            /// The analyses of a selection, with options for each.
            pub fn new(
                set: &TraceSet,
                selection: &Selection,
                options: ($($analysis::Options,)+),
            ) -> Self {
                let recorded = Arc::new(Recorded::of(set));
                let parts = ($($analysis::sharing(
                    set,
                    Some(&recorded),
                    selection.clone(),
                    options.$place,
                ),)+);
                Together::of((set, &recorded), selection, parts, |parts, event| {
                    $(u32::from(parts.$place.wants_event(event)) << $place |)+ 0
                })
            }
        }

        impl<$($analysis: KernelAnalysis),+> Analysis for Together<($($analysis,)+)> {
            type Partial = ($($analysis::Partial,)+);
            type Report = ($($analysis::Report,)+);

            fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
                self.input.groups()
            }

            fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
                self.input.wants(trace, stream_class, class)
            }

            fn begin(&self, chunk: &Chunk) -> Self::Partial {
                ($(self.parts.$place.begin(chunk),)+)
            }

            fn packet(&self, partial: &mut Self::Partial, packet: &StreamPlace<'_>) {
                $(self.parts.$place.packet(&mut partial.$place, packet);)+
            }

            fn cut(&self, partial: &mut Self::Partial, packet: &StreamPlace<'_>, time: Timestamp) {
                $(self.parts.$place.cut(&mut partial.$place, packet, time);)+
            }

            #[inline]
            fn event(&self, partial: &mut Self::Partial, record: &mut Record<'_>) {
                self.input.event(record, |event, body| {
                    let wanted = self.wanted.get(event.class).copied().unwrap_or(0);
                    $(if wanted & (1 << $place) != 0 {
                        self.parts.$place.fold_event(&mut partial.$place, event, body);
                    })+
                });
            }

            fn end(&self, partial: &mut Self::Partial, chunk: &Chunk) {
                $(self.parts.$place.end(&mut partial.$place, chunk);)+
            }

            fn exchange(&self, partial: &mut Self::Partial, resident: &mut Self::Partial) {
                $(self.parts.$place.exchange(&mut partial.$place, &mut resident.$place);)+
            }

            fn merge(&self, earlier: &mut Self::Partial, later: Self::Partial) {
                $(self.parts.$place.merge(&mut earlier.$place, later.$place);)+
            }

            fn settle(&self, partial: &mut Self::Partial, watermark: Timestamp) {
                $(self.parts.$place.settle(&mut partial.$place, watermark);)+
            }

            fn slices<'a>(
                &'a self,
                partial: &mut Self::Partial,
                watermark: Timestamp,
            ) -> Vec<Slice<'a, Self::Partial>> {
                let mut all: Vec<Slice<'a, Self::Partial>> = Vec::new();
                $(
                    let slices = self.parts.$place.slices(&mut partial.$place, watermark);
                    let slices = slices.into_iter();
                    all.extend(slices.map(|slice| slice_of_all(slice, |all: &mut Self::Partial| &mut all.$place)));
                )+
                all
            }

            fn follow_up<'a>(&'a self, partial: &mut Self::Partial) -> Vec<Slice<'a, Self::Partial>> {
                let mut all: Vec<Slice<'a, Self::Partial>> = Vec::new();
                $(
                    let slices = self.parts.$place.follow_up(&mut partial.$place).into_iter();
                    all.extend(slices.map(|slice| slice_of_all(slice, |all: &mut Self::Partial| &mut all.$place)));
                )+
                all
            }

            fn finish(&self, partial: Self::Partial) -> Self::Report {
                ($(self.parts.$place.finish(partial.$place),)+)
            }
        }
    };
}

together!(A 0, B 1, C 2);
together!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
