//! Acts of a slice, followed before it is played: which thread has which table.

use tracebraid_follow::ThreadKey;

use crate::belongings::{Act, Effect, Members};
use crate::contents::Held;
use crate::descriptors::Descriptors;
use crate::shared::Shared;

/// Effects of the acts in a slice on which thread has which table, known before the slice is played.
#[derive(Debug)]
pub struct Ahead {
    pub(crate) start: Shared<Members>,
    /// Effects of acts, by the number of the act.
    pub(crate) effects: Vec<(u32, Effect)>,
}

impl<K: Held> Descriptors<K> {
    /// Does what happens next, as far as it decides which thread has which table; what is in tables, a [`Sliced`](crate::Sliced) follows.
    /// Gives nothing, and does nothing, if that cannot be said without knowing what is in them. Before the
    /// first change of what is in a thread's table there must be an [`Act::Touch`] by a thread of that id.
    pub fn look_ahead(
        &mut self,
        play: impl FnOnce(&mut dyn FnMut(ThreadKey, i64, Option<Act>)),
    ) -> Option<Ahead> {
        let mut acts = Vec::new();
        play(&mut |thread, time, act| acts.push((thread, time, act)));
        let start = self.belongings.people.clone();
        let is_in_doubt = acts.iter().any(|(.., act)| is_in_doubt(act));
        let before = is_in_doubt.then(|| self.belongings.clone());
        let Some(effects) = self.effects(&acts) else {
            self.belongings = before.unwrap_or_default();
            let touches = acts.iter().filter(|(.., act)| *act == Some(Act::Touch));
            touches.for_each(|(thread, ..)| self.touched(*thread));
            return None;
        };
        Some(Ahead { start, effects })
    }

    /// Effects of acts, by the number of the act; `None`, if they depend on what is in tables.
    fn effects(&mut self, acts: &[(ThreadKey, i64, Option<Act>)]) -> Option<Vec<(u32, Effect)>> {
        let belongings = &mut self.belongings;
        let (mut effects, mut of_act, mut number) = (Vec::new(), Vec::new(), 0);
        for &(thread, time, act) in acts {
            belongings.act(thread, time, act?, None, &mut of_act).ok()?;
            for effect in of_act.drain(..) {
                if matches!(effect, Effect::Moved { from, .. } if !belongings.is_untouched(from)) {
                    return None;
                }
                effects.push((number, effect));
            }
            number += u32::from(act != Some(Act::Touch));
        }
        Some(effects)
    }

    /// There is an [`Act::Touch`] of that thread among what is not looked at ahead.
    pub fn touched(&mut self, thread: ThreadKey) {
        self.belongings.touched(thread);
    }
}

/// Whether the effect of an act may depend on what is in tables: those that say which process a thread belongs to may.
fn is_in_doubt(act: &Option<Act>) -> bool {
    let clear = matches!(
        act,
        Some(
            Act::Touch
                | Act::Cloning(_)
                | Act::Unshare
                | Act::Exec
                | Act::End
                | Act::Holds(_)
                | Act::Fork { parent_pid: None, .. }
        )
    );
    !clear
}
