//! The streams and event classes of the sources, resolved once for the second pass: how the records
//! of a class are copied, and the fields that the merge reads. A record then costs two lookups by
//! index.

use tracebraid_ctf::layout::skip::SkipProgram;
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::Trace;
use tracebraid_engine::StreamRef;
use tracebraid_kernel_model::{CpuSource, EventModel};

use crate::catalogue::{Catalogue, Copied, Copying};
use crate::sources::{Source, Sources, UserClass, UserStream};

/// All streams, by number.
pub(crate) struct Intake<'a>(Vec<Option<StreamIntake<'a>>>);

/// A stream that is merged.
pub(crate) struct StreamIntake<'a> {
    pub(crate) origin: StreamOrigin<'a>,
    /// By event class; `None` for classes that cannot be written.
    classes: Vec<Option<ClassIntake<'a>>>,
}

/// Side of the merge that a stream belongs to.
pub(crate) enum StreamOrigin<'a> {
    Kernel(CpuSource),
    User(&'a UserStream),
}

/// An event class of a stream.
pub(crate) struct ClassIntake<'a> {
    /// Number among the classes of the super-trace.
    pub(crate) number: u32,
    pub(crate) copying: &'a Copying,
    /// From the end of the header to the end of the record.
    pub(crate) body: &'a SkipProgram,
    /// Meaning of a class of the kernel.
    pub(crate) model: Option<&'a EventModel>,
    /// Fields of a class of a user trace.
    pub(crate) user: Option<&'a UserClass>,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(
        sources: &'a Sources,
        catalogue: &Catalogue,
        copied: &'a [Copied],
    ) -> Intake<'a> {
        let streams = StreamRef::all(&sources.set).zip(&sources.streams);
        let streams = streams.map(|(stream, source)| {
            let (trace, content) = stream.of(&sources.set)?;
            let of_stream = (stream.trace, trace, content);
            StreamIntake::new(sources, (catalogue, copied), of_stream, source.as_ref()?)
        });
        Intake(streams.collect())
    }

    /// The stream with this number.
    #[inline]
    pub(crate) fn stream(&self, number: u32) -> Option<&StreamIntake<'a>> {
        self.0.get(number as usize)?.as_ref()
    }
}

impl<'a> StreamIntake<'a> {
    fn new(
        sources: &'a Sources,
        (catalogue, copied): (&Catalogue, &'a [Copied]),
        (index, trace, content): (u32, &'a Trace, &Stream),
        source: &'a Source,
    ) -> Option<StreamIntake<'a>> {
        let chosen = catalogue.chosen.get(&(index, content.class))?;
        let layout = trace.layout.streams.get(content.class)?;
        let model = sources.model.traces.get(index as usize);
        let model = model.and_then(|trace| trace.streams.get(content.class));
        let origin = match source {
            Source::Kernel(cpu) => StreamOrigin::Kernel(*cpu),
            Source::User(user) => StreamOrigin::User(user),
        };
        let class = |(class, number): (usize, &Option<u32>)| {
            let number = (*number)?;
            let copied = copied.get(number as usize)?;
            copied.plans.first()?.as_ref()?;
            Some(ClassIntake {
                number,
                copying: &copied.copying,
                body: &layout.events.get(class)?.body,
                model: model.and_then(|model| model.event(class)),
                user: match source {
                    Source::Kernel(_) => None,
                    Source::User(user) => user.classes.get(class),
                },
            })
        };
        Some(StreamIntake {
            origin,
            classes: chosen.by_class.iter().enumerate().map(class).collect(),
        })
    }

    /// The event class with this index.
    #[inline]
    pub(crate) fn class(&self, class: usize) -> Option<&ClassIntake<'a>> {
        self.classes.get(class)?.as_ref()
    }
}
