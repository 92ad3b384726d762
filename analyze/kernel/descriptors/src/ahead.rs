//! Acts of a slice, followed before it is played: which thread has which table.

use tracebraid_follow::ThreadKey;

use crate::acting::Acting;
use crate::belongings::{Act, Effect};
use crate::contents::Held;
use crate::descriptors::Descriptors;
use crate::members::Members;
use crate::shared::Shared;

/// A thread, a time in nanoseconds from the origin, and an act that decides which thread has which
/// table; `None` if the act is unknown.
pub type ThreadAct = (ThreadKey, i64, Option<Act>);

/// Index of the first act whose effect depends on the contents of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnclearAct(pub usize);

/// Effects of the acts in a slice on which thread has which table, known before the slice is played.
#[derive(Debug)]
pub struct Ahead {
    pub(crate) start: Shared<Members>,
    /// Effects of acts, by the number of the act.
    pub(crate) effects: Vec<(u32, Effect)>,
}

impl<K: Held> Descriptors<K> {
    /// Applies the next acts as far as they decide which thread has which table; a
    /// [`Sliced`](crate::Sliced) follows the contents of tables. An [`Act::Touch`] by a thread must
    /// precede its first change of the contents of its table.
    ///
    /// # Errors
    /// If an effect cannot be determined without the contents of tables: the index of its act. No act is applied then.
    pub fn look_ahead(&mut self, acts: &[ThreadAct]) -> Result<Ahead, UnclearAct> {
        if acts.is_empty() {
            return Ok(self.nothing_ahead());
        }
        let start = self.belongings.threads.clone();
        let is_in_doubt = acts.iter().any(|(.., act)| is_in_doubt(act));
        let before = is_in_doubt.then(|| self.belongings.clone());
        match effects(self.belongings.acting(), acts) {
            Ok(effects) => Ok(Ahead { start, effects }),
            Err(unclear) => {
                self.belongings = before.unwrap_or_default();
                Err(unclear)
            }
        }
    }

    /// An [`Ahead`] without effects.
    pub(crate) fn nothing_ahead(&self) -> Ahead {
        Ahead {
            start: self.belongings.threads.clone(),
            effects: Vec::new(),
        }
    }

    /// Applies each [`Act::Touch`] of acts that are not passed to [`Descriptors::look_ahead`].
    pub fn touch_all(&mut self, acts: &[ThreadAct]) {
        let touches = acts.iter().filter(|(.., act)| *act == Some(Act::Touch));
        let mut acting = self.belongings.acting();
        touches.for_each(|(thread, ..)| acting.touched(*thread));
    }
}

/// Effects, each with the number of its act. [`Act::Touch`] is not counted.
fn effects(mut acting: Acting<'_>, acts: &[ThreadAct]) -> Result<Vec<(u32, Effect)>, UnclearAct> {
    let (mut effects, mut of_act, mut number) = (Vec::new(), Vec::new(), 0);
    for (at, &(thread, time, act)) in acts.iter().enumerate() {
        let act = act.ok_or(UnclearAct(at))?;
        let done = acting.act(thread, time, act, None, &mut of_act);
        done.map_err(|_| UnclearAct(at))?;
        for effect in of_act.drain(..) {
            if matches!(effect, Effect::Moved { from, .. } if !acting.is_untouched(from)) {
                return Err(UnclearAct(at));
            }
            effects.push((number, effect));
        }
        number += u32::from(act != Act::Touch);
    }
    Ok(effects)
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
