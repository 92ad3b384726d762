//! Blocks that a runtime records after the switch from the thread.

use crate::by_number::ByNumber;
use crate::replay::{Current, NONE, Placed, act_of};
use crate::states::States;
use crate::vocabulary::Step;
use crate::window::Window;

/// For each step by its index in [`Window::acts`]: if it is a switch, the reason of the block that
/// follows.
pub(crate) fn late_blocks(
    states: &States,
    window: &Window,
    number: u32,
    placed: &[Placed],
) -> Vec<Option<u16>> {
    let mut late = vec![None; window.acts.len()];
    // `switches`: all switches from threads. `left`: the last switch from each thread, until a
    // later step of the thread.
    let mut switches: Vec<(Current, u32)> = Vec::new();
    let mut left: ByNumber<u32> = ByNumber::below(states.ults.count());
    for own in placed {
        let Some(act) = act_of(window, own) else {
            continue;
        };
        let at = own.act - 1;
        match act.step {
            Step::Switch => {
                if act.ult_at < NONE {
                    switches.push((act.ult_at, at));
                    *left.slot(act.ult_at.into()) = Some(at);
                }
                if act.next_at < NONE {
                    left.slot(act.next_at.into()).take();
                }
            }
            Step::Block if act.ult_at < NONE => {
                if let Some(switch) = left.slot(act.ult_at.into()).take() {
                    late[switch as usize] = Some(act.reason);
                }
            }
            Step::Wake | Step::Exit | Step::Create | Step::State if act.ult_at < NONE => {
                left.slot(act.ult_at.into()).take();
            }
            _ => {}
        }
    }
    for (ult, switch) in switches {
        if left.get(ult.into()) == Some(switch) {
            let ult = states.ults.get(ult);
            late[switch as usize] = ult.and_then(|ult| ult.late_block(number));
        }
    }
    late
}
