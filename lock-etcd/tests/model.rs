//! A model of one session's requests, each of which may arrive at any time. It shows the faults of
//! the first edition's rules, and that today's rules leave no entry behind and remove no other's
//! entry.

use std::collections::{BTreeMap, BTreeSet};

use stateright::{Checker, Model, Property};

/// The comparisons of requests, and the keys that they use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rules {
    /// Keys are used again, and requests compare nothing else.
    First,
    /// No key is used again.
    UniqueKeys,
    /// Keys are used again. Removals compare the revision, and acquires the session's epoch.
    Guarded,
    /// Same as [`Guarded`](Self::Guarded), but nothing raises the epoch.
    GuardedWithoutEpoch,
}

#[derive(Clone, Debug)]
struct Session {
    rules: Rules,
    /// Number of requests that are not answered in time.
    silences: u8,
}

type Revision = u8;

#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Request {
    Acquire {
        key: u8,
        epoch: Revision,
    },
    /// Reads the revision of the key.
    Find {
        key: u8,
    },
    Remove {
        key: u8,
        revision: Option<Revision>,
    },
    Raise {
        epoch: Revision,
    },
}

/// The revision in an answer. An acquire gets that of the entry, if its epoch is not over.
type Answer = Option<Revision>;

/// The current step of a task. A task acquires, holds, releases, and does so once more.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Step {
    Acquire,
    Hold(Revision),
    Raise,
    Find,
    Remove(Option<Revision>),
    Over,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Task {
    rounds: u8,
    key: u8,
    step: Step,
    /// The request that it waits for.
    sent: Option<Request>,
    /// The epoch of its last acquire, and whether some acquire was not answered.
    epoch: Revision,
    doubts: bool,
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct State {
    tasks: Vec<Task>,
    used: BTreeSet<u8>,
    next_key: u8,
    known_epoch: Revision,
    silences: u8,
    /// Requests that no task waits for any more, with how often each was sent.
    late: BTreeMap<Request, u8>,
    // etcd
    revision: Revision,
    epoch: Revision,
    keys: BTreeMap<u8, Revision>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Action {
    Send(usize),
    Arrive(usize),
    ArriveLate(Request),
    /// A task stops waiting for its request. The request, or its answer, is still under way.
    Doubt(usize),
    /// A task's caller leaves while it acquires.
    Leave(usize),
    Release(usize),
}

impl State {
    /// Carries out a request, as etcd does.
    fn carry_out(&mut self, request: &Request, rules: Rules) -> Answer {
        match *request {
            Request::Acquire { epoch, .. } if self.over(epoch, rules) => return None,
            Request::Acquire { key, .. } if !self.keys.contains_key(&key) => {
                self.revision += 1;
                self.keys.insert(key, self.revision);
            }
            Request::Remove { key, revision }
                if revision.is_none() || self.keys.get(&key).copied() == revision =>
            {
                self.keys.remove(&key);
            }
            Request::Raise { epoch } if self.epoch == epoch => {
                self.revision += 1;
                self.epoch = self.revision;
            }
            _ => {}
        }
        match *request {
            Request::Acquire { key, .. } | Request::Find { key } => self.keys.get(&key).copied(),
            Request::Remove { .. } => None,
            Request::Raise { .. } => Some(self.epoch),
        }
    }

    fn over(&self, epoch: Revision, rules: Rules) -> bool {
        rules == Rules::Guarded && self.epoch != epoch
    }

    fn send(&mut self, task: usize, rules: Rules) -> bool {
        let known = self.known_epoch;
        let Task { key, step, epoch, sent, .. } = &mut self.tasks[task];
        let key = *key;
        let request = match *step {
            Step::Acquire => {
                *epoch = known;
                Request::Acquire { key, epoch: known }
            }
            Step::Raise => Request::Raise { epoch: known },
            Step::Find => Request::Find { key },
            Step::Remove(revision) => {
                let asks = matches!(rules, Rules::Guarded | Rules::GuardedWithoutEpoch);
                Request::Remove { key, revision: revision.filter(|_| asks) }
            }
            Step::Hold(_) | Step::Over => return false,
        };
        *sent = Some(request);
        true
    }

    /// Moves a task on when its request is answered.
    fn answered(&mut self, task: usize, answer: Answer, rules: Rules) {
        let known = self.known_epoch;
        let Task { step, doubts, epoch, .. } = &mut self.tasks[task];
        *step = match (step.clone(), answer) {
            (Step::Acquire, Some(revision)) => {
                *doubts = false;
                Step::Hold(revision)
            }
            // Another task may have raised it meanwhile.
            (Step::Acquire, None) if known > *epoch => Step::Acquire,
            (Step::Acquire, None) => Step::Raise,
            (Step::Raise, Some(epoch)) => {
                self.known_epoch = self.known_epoch.max(epoch);
                Step::Acquire
            }
            (Step::Find, Some(revision)) => Step::Remove(Some(revision)),
            _ => Step::Over,
        };
        if *step == Step::Over {
            self.again(task, rules);
        }
    }

    /// Ends a round: the task's entry is gone, and so is its claim on the key.
    fn again(&mut self, task: usize, rules: Rules) {
        self.used.remove(&self.tasks[task].key);
        if self.tasks[task].rounds > 1 {
            self.tasks[task].rounds -= 1;
            self.begin(task, rules);
        }
    }

    fn begin(&mut self, task: usize, rules: Rules) {
        let key = match rules {
            Rules::UniqueKeys => self.next_key,
            _ => (0..).find(|key| !self.used.contains(key)).unwrap_or_default(),
        };
        self.next_key += u8::from(rules == Rules::UniqueKeys);
        self.used.insert(key);
        let task = &mut self.tasks[task];
        (task.key, task.step, task.doubts) = (key, Step::Acquire, false);
    }

    /// Handles a request that was not answered.
    fn doubt(&mut self, task: usize, rules: Rules) {
        self.silences += 1;
        let task = &mut self.tasks[task];
        if let Some(late) = task.sent.take() {
            *self.late.entry(late).or_default() += 1;
        }
        if task.step == Step::Acquire {
            task.doubts = true;
            if rules == Rules::Guarded {
                // Another task may have raised it meanwhile.
                task.step = match self.known_epoch > task.epoch {
                    true => Step::Acquire,
                    false => Step::Raise,
                };
            }
        }
    }

    fn leave(&mut self, task: usize, rules: Rules) {
        let Task { step, doubts, .. } = &mut self.tasks[task];
        *step = match rules {
            _ if !*doubts => Step::Over,
            // After a doubt the epoch was raised first.
            Rules::Guarded | Rules::GuardedWithoutEpoch => Step::Find,
            Rules::First | Rules::UniqueKeys => Step::Remove(None),
        };
        if *step == Step::Over {
            self.again(task, rules);
        }
    }
}

impl Model for Session {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let task =
            Task { rounds: 2, key: 0, step: Step::Over, sent: None, epoch: 0, doubts: false };
        let mut state =
            State { tasks: vec![task.clone(), Task { rounds: 1, ..task }], ..State::default() };
        (0..2).for_each(|task| state.begin(task, self.rules));
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(state.late.keys().cloned().map(Action::ArriveLate));
        for (n, task) in state.tasks.iter().enumerate() {
            match (&task.step, &task.sent) {
                (Step::Hold(_), _) => actions.push(Action::Release(n)),
                (Step::Over, _) => {}
                (_, None) => actions.push(Action::Send(n)),
                (_, Some(_)) => {
                    actions.push(Action::Arrive(n));
                    if state.silences < self.silences {
                        actions.push(Action::Doubt(n));
                    }
                }
            }
            if task.sent.is_none() && task.step == Step::Acquire {
                actions.push(Action::Leave(n));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Send(task) => return state.send(task, self.rules).then_some(state),
            Action::Arrive(task) => {
                let request = state.tasks[task].sent.take()?;
                let answer = state.carry_out(&request, self.rules);
                state.answered(task, answer, self.rules);
            }
            Action::ArriveLate(request) => {
                state.carry_out(&request, self.rules);
                let left = state.late.remove(&request)?.checked_sub(1).filter(|left| *left > 0);
                state.late.extend(left.map(|left| (request, left)));
            }
            Action::Doubt(task) => state.doubt(task, self.rules),
            Action::Leave(task) => state.leave(task, self.rules),
            Action::Release(task) => {
                if let Step::Hold(revision) = state.tasks[task].step {
                    state.tasks[task].step = Step::Remove(Some(revision));
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn is_over(state: &State) -> bool {
            state.late.is_empty() && state.tasks.iter().all(|task| task.step == Step::Over)
        }
        vec![
            Property::always(KEPT, |_, state: &State| {
                state.tasks.iter().all(|task| match task.step {
                    Step::Hold(revision) => state.keys.get(&task.key) == Some(&revision),
                    _ => true,
                })
            }),
            Property::always(CLEAN, |_, state: &State| !is_over(state) || state.keys.is_empty()),
            Property::sometimes(ENDS, |_, state: &State| is_over(state)),
        ]
    }
}

const KEPT: &str = "what is held stands";
const CLEAN: &str = "nothing is left";
const ENDS: &str = "it comes to an end";

/// Returns the promises that these rules break.
fn broken(rules: Rules) -> BTreeSet<&'static str> {
    let checker = Session { rules, silences: 2 }.checker().spawn_bfs().join();
    checker.assert_any_discovery(ENDS);
    println!("{rules:?}: {} states", checker.unique_state_count());
    checker.discoveries().into_keys().filter(|name| *name != ENDS).collect()
}

#[test]
fn late_requests_of_the_first_edition_leave_entries_and_remove_others() {
    assert_eq!(broken(Rules::First), BTreeSet::from([KEPT, CLEAN]));
}

#[test]
fn unique_keys_do_not_keep_a_late_acquire_from_leaving_an_entry() {
    assert_eq!(broken(Rules::UniqueKeys), BTreeSet::from([CLEAN]));
}

#[test]
fn revisions_alone_do_not_keep_a_late_acquire_from_leaving_an_entry() {
    assert_eq!(broken(Rules::GuardedWithoutEpoch), BTreeSet::from([CLEAN]));
}

#[test]
fn guarded_requests_do_nothing_when_they_are_late() {
    assert_eq!(broken(Rules::Guarded), BTreeSet::new());
}
