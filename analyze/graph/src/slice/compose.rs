//! Composing a slice of time with the graph of all that came before it.

use tracebraid_follow::{Items, Losses, ThreadKey};
use tracebraid_threads::{ThreadDirectory, ThreadState};

use crate::cause::{ActorId, Wake};
use crate::graph::{Packet, Work};
use crate::graph_machine::{GraphMachine, Player};
use crate::graph_step::{GraphItem, WakeOrigin};
use crate::packets::Sent;
use crate::rules::GraphRules;
use crate::slice::born::BornThread;
use crate::slice::packets::sender;
use crate::slice::places::{Places, SlicePlaces};
use crate::slice::thread::ThreadNews;
use crate::slice::wakes::{KeptCause, KeptWake};
use crate::slice::{GraphSlice, GraphStep, SliceOutput};

/// A slice after it was played.
#[derive(Debug)]
pub(crate) struct PlayedSlice {
    /// State of threads at the end of the slice.
    threads: Vec<(ThreadKey, ThreadNews)>,
    born: Vec<BornThread>,
    /// Number of stretches of new threads.
    stretches: usize,
    output: SliceOutput,
}

impl PlayedSlice {
    /// Plays the items of a slice; none is earlier than `begin` (nanoseconds from the origin).
    pub(crate) fn new(
        rules: &GraphRules,
        mut items: Items<GraphItem>,
        (begin, directory): (i64, ThreadDirectory),
    ) -> PlayedSlice {
        let mut slice = GraphSlice::new(rules, begin, directory);
        items.play(None, |cpu, time, item| slice.play(cpu, time, item));
        slice.end()
    }

    #[cfg(test)]
    pub(super) fn steps(&self) -> &[GraphStep] {
        &self.output.steps
    }

    /// Times of switches, wake-ups and interrupts, in nanoseconds from the origin.
    pub(crate) fn happened(&self) -> &[i64] {
        &self.output.happened
    }

    /// Adds the slice to the graph of all earlier slices. Returns an upper bound of the number of
    /// new stretches. The remains of the slice must not be used afterwards.
    pub(crate) fn compose(&mut self, rules: &GraphRules, machine: &mut GraphMachine) -> usize {
        let addresses = self.output.futexes.addresses().iter();
        let places = Places {
            actors: Vec::new(),
            futexes: addresses
                .map(|&address| machine.futexes.place(address))
                .collect(),
            requests: machine.requests.done.next_place(),
            packets: machine.packets.packets.next_place(),
        };
        let before = machine.losses.clone();
        let mut composing = Composing {
            player: Player { rules, machine },
            before,
            places,
            all: SlicePlaces::default(),
            found: Vec::new(),
            stretches: self.stretches,
        };
        self.output
            .steps
            .iter_mut()
            .for_each(|step| composing.replay(step));
        let threads = self.threads.iter_mut();
        threads.for_each(|(key, news)| composing.install(*key, news));
        self.born.iter_mut().for_each(|born| composing.lives(born));
        let Composing {
            places,
            all,
            found,
            stretches,
            ..
        } = composing;
        for (cpu, line) in self.output.cpus.iter_mut() {
            machine.run(cpu, &all, std::mem::take(line));
        }
        let places = all.set(places);
        std::mem::take(&mut self.output.requests).compose(&mut machine.requests, places);
        self.output
            .packets
            .compose(&mut machine.packets, &all, found);
        std::mem::take(&mut self.output.works).compose(&mut machine.works, places);
        machine
            .calls
            .merge(std::mem::take(&mut self.output.calls), &rules.wanted);
        let told = self.output.told.drain(..);
        told.for_each(|(trace, told)| machine.names.learn(trace, told));
        stretches
    }
}

impl GraphSlice<'_> {
    /// Ends the slice.
    fn end(mut self) -> PlayedSlice {
        let mut threads = Vec::new();
        let mut born = Vec::new();
        for (key, mut thread) in std::mem::take(&mut self.threads).into_entries() {
            match thread.born.take() {
                Some(of) => {
                    of.settle(&mut thread, &mut self.output.steps, &mut self.born);
                    born.extend(of.into_thread(key, thread));
                }
                None => threads.extend(thread.into_news().map(|news| (key, news))),
            }
        }
        PlayedSlice {
            threads,
            born,
            stretches: self.born.stretches,
            output: self.output,
        }
    }
}

/// A slice and the graph while they are composed.
struct Composing<'m> {
    player: Player<'m>,
    /// Losses before the slice.
    before: Losses,
    /// Places resolved so far, and the handle by which deferred changes see the complete map.
    places: Places,
    all: SlicePlaces,
    /// Packets of the slice that composing resolved; `None` for a packet that ended no wait.
    found: Vec<(u32, Option<Packet>)>,
    stretches: usize,
}

impl Composing<'_> {
    fn replay(&mut self, step: &mut GraphStep) {
        match step {
            GraphStep::Meets(key) => {
                let actor = self.player.machine.actor(*key);
                self.places.actors.push(actor);
            }
            GraphStep::Born(actors) => {
                let numbers = self.player.machine.are_born(actors, &self.all);
                self.places.actors.extend(numbers.map(ActorId));
            }
            GraphStep::Lives(born) => self.lives(born),
            GraphStep::Works(actor, works) => self.works(*actor, works),
            GraphStep::News(thread, news) => self.install(*thread, news),
            GraphStep::Occupied(cpu, line) => {
                self.player
                    .machine
                    .run(*cpu, &self.all, std::mem::take(line))
            }
            GraphStep::Item(cpu, time, item) => self.player.play(*cpu, *time, item.clone()),
            GraphStep::Leaves(cpu, time, tid, left, name) => {
                self.player.leaves((*cpu, *time), *tid, *left, *name);
            }
            GraphStep::Comes(cpu, time, tid, name) => {
                _ = self.player.comes((*cpu, *time), *tid, *name)
            }
            GraphStep::Wakes(kept) => self.wakes(**kept),
            GraphStep::Lose(cpu) => {
                self.player.machine.losses.lose(*cpu);
                self.player.machine.works.lose();
            }
        }
    }

    /// Replaces the thread that has the id by the new thread.
    fn lives(&mut self, born: &mut BornThread) {
        let BornThread {
            key,
            since,
            actor,
            ref mut cell,
        } = *born;
        let places = &self.places;
        let actor = places.actor(actor);
        cell.map_causes(|wake| places.wake(wake));
        let machine = &mut self.player.machine;
        let life = machine.life(key);
        // The time line of a thread that was seen to end is complete.
        let is_over = life.cell.state() == ThreadState::Ended;
        let before = life.actor.replace(actor.0);
        life.ring = None;
        life.cell.exchange(cell, key.trace, &self.before);
        if let Some(before) = before.filter(|_| !is_over) {
            machine.ends(since, before);
        }
    }

    /// Adds work of a new thread.
    fn works(&mut self, actor: ActorId, works: &[Work]) {
        let actor = self.places.actor(actor).0 as usize;
        let Some(actor) = self.player.machine.lines.get_mut(actor) else {
            return;
        };
        for work in works {
            let cause = self.places.wake(work.cause);
            actor.works(Work { cause, ..*work });
        }
    }

    /// Adds the state of a thread in the slice to its state in the graph.
    fn install(&mut self, key: ThreadKey, news: &mut ThreadNews) {
        let Player { rules, machine } = &mut self.player;
        if news.is_of_graph() {
            let actor = machine.actor(key);
            let (life, mut line, _) = machine.thread(key);
            let was_done = line.later.is_empty();
            let places = (&self.places, &rules.classes);
            let all = (&self.all, std::mem::take(&mut news.names));
            self.stretches +=
                news.line
                    .take_all()
                    .add_to(life, &mut line, &self.before, places, all);
            let is_later = was_done && !line.later.is_empty();
            let actor_of = line.actor;
            actor_of.pid = news.pid.or(actor_of.pid);
            for work in &news.works {
                let cause = self.places.wake(work.cause);
                actor_of.works(Work { cause, ..*work });
            }
            if is_later {
                machine.are_later.push(actor.0);
            }
        }
        if let Some(mut cell) = news.cell.take() {
            cell.map_causes(|wake| self.places.wake(wake));
            machine
                .life(key)
                .cell
                .install(cell, key.trace, &self.before);
        }
    }

    fn wakes(&mut self, kept: KeptWake) {
        let KeptWake {
            at,
            event,
            origin,
            cause,
        } = kept;
        let Player { rules, machine } = &mut self.player;
        let waking = machine.waking(at.0.trace, origin);
        let by = (origin.source(), waking);
        let places = &self.places;
        let mut packet = None;
        let ends_wait = machine.is_woken(
            &rules.recorded,
            at,
            event,
            by,
            |machine, call| match cause {
                KeptCause::Packet(place) => Wake::Packet(places.packets + place),
                KeptCause::Request(place) => Wake::Request(places.requests + place),
                KeptCause::Answer(place, connection, sent) => {
                    let sent = sent.map(|sent| {
                        let owner = |_| machine.packets.owner(connection);
                        let by = sent.by.and_then(|by| sender(by, places, owner));
                        Sent { by, ..sent }
                    });
                    let sent = sent.or_else(|| machine.packets.last_sent(connection));
                    match sent.filter(|sent| call.is_known && sent.time > call.since) {
                        Some(sent) => {
                            packet = Some((place, sent.packet(connection)));
                            Wake::Packet(places.packets + place)
                        }
                        None => {
                            machine.cause(at.0, (WakeOrigin::Thread(origin.by()), waking), None)
                        }
                    }
                }
                KeptCause::OfGraph => machine.cause(at.0, (origin, waking), Some(call)),
            },
        );
        match (cause, packet) {
            (_, Some((place, packet))) => self.found.push((place, Some(packet))),
            (KeptCause::Answer(place, ..), None) => self.found.push((place, None)),
            (KeptCause::Packet(place), _) if !ends_wait => self.found.push((place, None)),
            _ => {}
        }
    }
}
