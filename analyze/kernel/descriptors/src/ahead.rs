//! Acts of a slice, followed before the slice is played: they decide the tables of threads.

use tracebraid_follow::ThreadKey;

use crate::belongings::{Act, Belongings, Effect};
use crate::contents::Held;
use crate::descriptors::Descriptors;
use crate::members::Members;
use crate::shared::Shared;

/// A thread, a time in nanoseconds from the origin, and an act that decides the tables of threads;
/// `None` if the act is unknown.
pub type ThreadAct = (ThreadKey, i64, Option<Act>);

/// Index of the first act whose effect depends on the contents of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnclearAct(pub usize);

/// Effects of a slice's acts on the tables of threads, known before the slice is played.
#[derive(Debug)]
pub struct Ahead {
    pub(crate) start: Shared<Members>,
    /// Effects of acts, by the number of the act.
    pub(crate) effects: Vec<(u32, Effect)>,
}

impl<K: Held> Descriptors<K> {
    /// Applies the next acts as far as they decide the tables of threads; a
    /// [`Sliced`](crate::Sliced) follows the contents of tables. An [`Act::Touch`] by a thread must
    /// precede its first change of the contents of its table.
    ///
    /// # Errors
    /// If an effect cannot be determined without the contents of tables, returns the index of its
    /// act. No act is applied then.
    pub fn look_ahead(&mut self, acts: &[ThreadAct]) -> Result<Ahead, UnclearAct> {
        if acts.is_empty() {
            return Ok(self.nothing_ahead());
        }
        let start = self.belongings.threads.clone();
        let is_in_doubt = acts.iter().any(|(.., act)| is_in_doubt(act));
        let before = is_in_doubt.then(|| self.belongings.clone());
        match effects(&mut self.belongings, acts) {
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
        // Touches have no effects.
        let mut effects = Vec::new();
        let mut acting = self.belongings.acting(&mut effects, None);
        touches.for_each(|(thread, ..)| acting.touched(*thread));
    }
}

/// Effects, each with the number of its act. [`Act::Touch`] is not counted.
fn effects(
    belongings: &mut Belongings,
    acts: &[ThreadAct],
) -> Result<Vec<(u32, Effect)>, UnclearAct> {
    let (mut effects, mut of_act, mut number) = (Vec::new(), Vec::new(), 0);
    let mut acting = belongings.acting(&mut of_act, None);
    for (at, &(thread, time, act)) in acts.iter().enumerate() {
        let act = act.ok_or(UnclearAct(at))?;
        acting.act(thread, time, act).map_err(|_| UnclearAct(at))?;
        let is_unclear = |effect: &Effect| matches!(effect, Effect::Moved { from, .. } if !acting.is_untouched(*from));
        if acting.effects.iter().any(is_unclear) {
            return Err(UnclearAct(at));
        }
        effects.extend(acting.effects.drain(..).map(|effect| (number, effect)));
        number += u32::from(act != Act::Touch);
    }
    Ok(effects)
}

/// Whether the effect of an act may depend on the contents of tables, as for acts that name the
/// process of a thread.
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
                | Act::Fork {
                    parent_pid: None,
                    ..
                }
        )
    );
    !clear
}
