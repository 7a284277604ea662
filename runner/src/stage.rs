//! The states of a task and the pure step from one to the next. Illegal orders are refused, so
//! that a store that was tampered with or written by a bug is noticed and never guessed at.

use std::fmt;

use sandbox::Exit as JobExit;
use serde::{Deserialize, Serialize};

use crate::event::Event;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Asked for.
    Queued,
    /// Worktree and room are being made.
    Preparing,
    /// The agent works.
    Running,
    /// Between an agent that ended and the seal.
    Waiting,
    /// The tree is being read.
    Sealing,
    /// The gates judge.
    Gating,
    /// A gate refused.
    Rejected,
    /// Every gate that must pass has passed.
    Accepted,
    /// The target is being moved.
    Landing,
    /// The target has moved.
    Landed,
    /// Nothing was delivered.
    Empty,
    /// The agent or the engine failed.
    Failed,
    /// Wall time ran out, or it did nothing for too long.
    Timeout,
    /// A limit was passed.
    OverLimit,
    /// Stopped by a person.
    Stopped,
    /// Its owner died.
    Lost,
    /// Thrown away.
    Discarded,
}

impl Stage {
    /// The name for people and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Sealing => "sealing",
            Self::Gating => "gating",
            Self::Rejected => "rejected",
            Self::Accepted => "accepted",
            Self::Landing => "landing",
            Self::Landed => "landed",
            Self::Empty => "empty",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::OverLimit => "over_limit",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
            Self::Discarded => "discarded",
        }
    }

    /// Nothing happens any more unless somebody asks.
    pub fn rests(self) -> bool {
        match self {
            Self::Queued
            | Self::Preparing
            | Self::Running
            | Self::Waiting
            | Self::Sealing
            | Self::Gating
            | Self::Landing => false,
            Self::Rejected
            | Self::Accepted
            | Self::Landed
            | Self::Empty
            | Self::Failed
            | Self::Timeout
            | Self::OverLimit
            | Self::Stopped
            | Self::Lost
            | Self::Discarded => true,
        }
    }

    /// The engine has come to a verdict, and going on needs a person's wish.
    pub fn is_verdict(self) -> bool {
        matches!(
            self,
            Self::Accepted | Self::Landed | Self::Empty | Self::Rejected | Self::Discarded
        )
    }

    /// The stage after a job that ended like this.
    fn after(exit: &JobExit) -> Self {
        match exit {
            JobExit::Code(0) => Self::Waiting,
            JobExit::Code(_) | JobExit::Signal(_) | JobExit::NotStarted { .. } => Self::Failed,
            JobExit::TimedOut | JobExit::IdleTimedOut => Self::Timeout,
            JobExit::Stopped { .. } => Self::Stopped,
            JobExit::OverLimit { .. } => Self::OverLimit,
            JobExit::Lost => Self::Lost,
        }
    }

    /// The next stage, or a refusal of an order that cannot happen.
    pub fn apply(from: Option<Self>, event: &Event) -> Result<Self, IllegalOrder> {
        let next = match from {
            Some(now) => now.next(event),
            None => matches!(event, Event::Queued { .. }).then_some(Self::Queued),
        };
        next.ok_or(IllegalOrder {
            from,
            event: event.kind(),
        })
    }

    /// Where an event leads; none when it cannot happen here.
    fn next(self, event: &Event) -> Option<Self> {
        let over = matches!(self, Self::Landed | Self::Discarded);
        let (may, next) = match event {
            Event::Queued { .. } => (false, self),
            Event::Preparing => {
                // A setup that failed or was stopped is done again.
                let again = matches!(self, Self::Lost | Self::Failed | Self::Stopped);
                (again || self == Self::Queued, Self::Preparing)
            }
            Event::SettingUp { .. } | Event::SetUp { .. } | Event::Prepared { .. } => {
                (self == Self::Preparing, self)
            }
            Event::Started { .. } => {
                let resumed = self.rests() && !over;
                (resumed || self == Self::Preparing, Self::Running)
            }
            Event::Ended { outcome, .. } => (self == Self::Running, Self::after(&outcome.exit)),
            Event::Returned { .. } => (self == Self::Waiting, self),
            // Not between a tree that is about to be read and the verdict on it.
            Event::Exec { .. } => (self.rests() || self == Self::Running, self),
            Event::Answered { .. } => {
                let ended = matches!(
                    self,
                    Self::Waiting
                        | Self::Failed
                        | Self::Timeout
                        | Self::Stopped
                        | Self::OverLimit
                        | Self::Lost
                );
                (ended, self)
            }
            Event::Sealing => {
                let again = self.rests() && !over;
                let on = matches!(self, Self::Waiting | Self::Sealing | Self::Gating);
                (again || on, Self::Sealing)
            }
            Event::Sealed { .. } => (self == Self::Sealing, self),
            Event::Empty => (self == Self::Sealing, Self::Empty),
            Event::Gating => (matches!(self, Self::Sealing | Self::Gating), Self::Gating),
            Event::Judged { .. } => (self == Self::Gating, self),
            Event::Recorded { .. } => {
                let told = matches!(self, Self::Gating | Self::Rejected | Self::Accepted);
                (told, self)
            }
            Event::Overridden { .. } => {
                (matches!(self, Self::Rejected | Self::Gating), Self::Gating)
            }
            Event::Rejected { .. } => (self == Self::Gating, Self::Rejected),
            Event::Accepted { .. } => (self == Self::Gating, Self::Accepted),
            Event::Landing { .. } => (self == Self::Accepted, Self::Landing),
            Event::LandStep { .. } => (self == Self::Landing, self),
            Event::Landed { .. } => (self == Self::Landing, Self::Landed),
            Event::NotLanded { .. } => (
                matches!(self, Self::Landing | Self::Accepted),
                Self::Accepted,
            ),
            Event::Failed { .. } => (!over, Self::Failed),
            Event::Stopped { .. } => (!self.rests(), Self::Stopped),
            Event::Lost { .. } => (!self.rests(), Self::Lost),
            Event::Discarded { .. } => (self.rests() || self == Self::Waiting, Self::Discarded),
            Event::ExecEnded { .. } | Event::Checkout { .. } | Event::Removed => (true, self),
        };
        may.then_some(next)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event that cannot follow.
#[derive(Debug, thiserror::Error)]
#[error("a task that is {} cannot become `{event}`", from.map_or("not there", Stage::as_str))]
pub struct IllegalOrder {
    /// Where the task stood.
    pub from: Option<Stage>,
    /// What was to be recorded.
    pub event: &'static str,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::exit::{Exit, Failure};

    /// An event of each kind that matters for the order, from its recorded form.
    fn event(body: &str) -> Event {
        serde_json::from_str(body).expect("the recorded form of an event")
    }

    fn ended(exit: &str) -> Event {
        event(&format!(
            r#"{{"event":"ended","attempt":1,"outcome":{{"exit":{exit},"code":null,"signal":null,
            "output_bytes":0,"output_dropped":0,"leaked":false,"started_ms":null,"ended_ms":1,"elapsed_ms":1}}}}"#
        ))
    }

    /// Everything that can follow the first event.
    fn vocabulary() -> Vec<Event> {
        let oid = "1111111111111111111111111111111111111111";
        let failure = || Failure::new(Exit::Internal, "x");
        vec![
            Event::Preparing,
            event(r#"{"event":"started","attempt":1,"job":"agent"}"#),
            ended(r#"{"cause":"code","code":0}"#),
            ended(r#"{"cause":"code","code":7}"#),
            ended(r#"{"cause":"timed_out"}"#),
            Event::Sealing,
            Event::Empty,
            Event::Gating,
            Event::Judged {
                judgement: Box::default(),
            },
            Event::Rejected { again: false },
            Event::Accepted {
                commit: oid.to_owned(),
                branch: "b".to_owned(),
            },
            event(&format!(
                r#"{{"event":"landing","plan":{{"target":"main","expected":"{oid}","result":"{oid}","tree":"{oid}",
                "kind":"fast_forward","judged_as_is":true,"delivery":"{oid}","when":1}}}}"#
            )),
            Event::Landed {
                target: "main".to_owned(),
                commit: oid.to_owned(),
            },
            Event::NotLanded { failure: failure() },
            Event::Failed { failure: failure() },
            Event::Stopped {
                by: "me".to_owned(),
                reason: "r".to_owned(),
            },
            Event::Lost {
                reason: "r".to_owned(),
            },
            Event::Discarded {
                reason: "r".to_owned(),
            },
            Event::Removed,
        ]
    }

    /// The stages that a sequence of wishes goes through, illegal ones left out.
    fn stages(wishes: &[usize]) -> Vec<(&'static str, Stage)> {
        let events = vocabulary();
        let mut now = Stage::Queued;
        let mut way = Vec::new();
        for wish in wishes {
            let event = &events[wish % events.len()];
            if let Ok(next) = Stage::apply(Some(now), event) {
                now = next;
                way.push((event.kind(), now));
            }
        }
        way
    }

    #[test]
    fn only_a_wish_begins_a_task() {
        for event in vocabulary() {
            assert!(Stage::apply(None, &event).is_err(), "{}", event.kind());
        }
    }

    #[test]
    fn a_refused_landing_is_no_way_past_the_gates() {
        let refused = Event::NotLanded {
            failure: Failure::new(Exit::Conflict, "x"),
        };
        assert!(Stage::apply(Some(Stage::Gating), &refused).is_err());
        let after = Stage::apply(Some(Stage::Landing), &refused).unwrap();
        assert_eq!(after, Stage::Accepted);
    }

    #[test]
    fn a_command_of_a_persons_own_moves_nothing_and_waits_for_the_verdict() {
        let exec = event(r#"{"event":"exec","job":"exec-1","command":["true"],"by":"me"}"#);
        for stage in [
            Stage::Queued,
            Stage::Preparing,
            Stage::Waiting,
            Stage::Sealing,
            Stage::Gating,
            Stage::Landing,
        ] {
            assert!(Stage::apply(Some(stage), &exec).is_err(), "{stage}");
        }
        for stage in [
            Stage::Running,
            Stage::Rejected,
            Stage::Accepted,
            Stage::Stopped,
        ] {
            assert_eq!(Stage::apply(Some(stage), &exec).unwrap(), stage);
        }
    }

    #[test]
    fn the_plain_way_ends_on_the_target() {
        // Preparing, started, ended 0, sealing, gating, judged, accepted, landing, landed.
        let way = stages(&[0, 1, 2, 5, 7, 8, 10, 11, 12]);
        assert_eq!(way.len(), 9);
        assert_eq!(way.last().map(|(_, stage)| *stage), Some(Stage::Landed));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_lands_unaccepted_and_nothing_is_accepted_unjudged(wishes in prop::collection::vec(0usize..64, 0..80)) {
            let way = stages(&wishes);
            for (at, (kind, _)) in way.iter().enumerate() {
                let before: Vec<&str> = way[..at].iter().map(|(kind, _)| *kind).collect();
                let after_last = |mark: &str, needed: &str| {
                    let from = before.iter().rposition(|kind| *kind == mark).map_or(0, |at| at + 1);
                    before[from..].contains(&needed)
                };
                match *kind {
                    "accepted" => prop_assert!(after_last("sealing", "gating")),
                    "landing" => prop_assert!(before.contains(&"accepted")),
                    "landed" => prop_assert!(after_last("not_landed", "landing")),
                    _ => {}
                }
            }
        }

        #[test]
        fn what_has_landed_stays_landed(wishes in prop::collection::vec(0usize..64, 0..80)) {
            let way = stages(&wishes);
            let landed = way.iter().position(|(_, stage)| *stage == Stage::Landed);
            if let Some(landed) = landed {
                for (kind, stage) in &way[landed..] {
                    prop_assert!(matches!(stage, Stage::Landed | Stage::Discarded), "{kind} led to {stage}");
                }
            }
        }
    }
}
