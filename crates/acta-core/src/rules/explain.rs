//! Why a job is where it is: read from the same facts as a claim, and nothing else.

use std::cmp::Reverse;

use super::Rules;
use super::due::judge;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::explain::{Blocker, Explanation, Reason};
use crate::id::JobId;
use crate::job::Standing;
use crate::name::{Label, shell_word};
use crate::policy::MOST_DUE;
use crate::rows::Rows;
use crate::state::State;
use crate::transition::Event;

impl<R: Rows> Rules<'_, R> {
    /// What holds the job, since when, until when, and what to do.
    pub fn explain(&mut self, id: &JobId) -> Result<Explanation> {
        let (row, standing) = self.find(id)?;
        let mut told = Explanation {
            id: id.clone(),
            state: standing.state,
            reason: Reason::Ended,
            since: None,
            until: None,
            blocker: None,
            advice: String::new(),
        };
        match standing.state {
            State::Blocked => self.explain_blocked(&standing, &mut told)?,
            State::Ready | State::Scheduled | State::Waiting => self.explain_unclaimed(row, &standing, &mut told)?,
            State::Claimed | State::Running => self.explain_held(&standing, &mut told),
            State::Succeeded => {
                told.since = standing.finished_at;
                told.advice = "it is done".into();
            }
            State::Failed | State::Cancelled => {
                told.since = standing.finished_at;
                told.advice = format!("it ended; `jobs show {id}` tells how, `jobs restart {id}` runs it anew");
            }
        }
        Ok(told)
    }

    fn explain_blocked(&mut self, standing: &Standing, told: &mut Explanation) -> Result<()> {
        told.reason = Reason::BehindHead;
        told.advice = "it comes when the jobs in front of it in its lane have ended".into();
        let Some(number) = standing.lane else { return Ok(()) };
        let lane = self.rows.lane_numbered(number)?;
        if let Some((row, head)) = self.rows.lane_head(number)? {
            let blocker = self.blocker(row, &head)?;
            let id = &blocker.id;
            told.advice = format!(
                "the head of its lane is {id}: `jobs explain {id}` tells what holds that one, `jobs cancel {id}` lets the lane go on"
            );
            if lane.paused {
                told.advice = format!("{}; {id} is its head", self.resume_lane(&lane.name)?.1);
            } else if self.rows.queue().paused {
                told.advice = format!("{}; {id} is the head of its lane", self.resume_queue()?.1);
            }
            told.until = blocker.until;
            told.blocker = Some(blocker);
        }
        Ok(())
    }

    fn explain_unclaimed(&mut self, row: u64, standing: &Standing, told: &mut Explanation) -> Result<()> {
        let id = told.id.clone();
        if standing.is_expired(self.now) {
            told.reason = Reason::Expired;
            told.since = standing.expires_at;
            told.advice = "it was not claimed in time; the next claim ends it as failed".into();
        } else if standing.paused {
            told.reason = Reason::Paused;
            told.advice = format!("somebody paused it; `jobs resume {id}` lets it go on");
        } else if standing.lane_paused {
            told.reason = Reason::LanePaused;
            let lane = self.rows.identity(row)?.lane.unwrap_or_else(|| Label::trusted("?"));
            (told.since, told.advice) = self.resume_lane(&lane)?;
        } else if self.rows.queue().paused {
            told.reason = Reason::QueuePaused;
            (told.since, told.advice) = self.resume_queue()?;
        } else if standing.state == State::Waiting && standing.wait_until.is_none_or(|at| at > self.now) {
            let signal = self.rows.detail(row)?.wait;
            told.reason = Reason::WaitingForSignal;
            told.until = standing.wait_until;
            told.advice = match signal {
                Some(signal) => {
                    format!("it waits for the signal {signal}; `jobs signal {id} --name {signal}` sends it")
                }
                None => format!("it waits for a signal; `jobs cancel {id}` ends it"),
            };
        } else if standing.state == State::Scheduled && standing.run_at.is_some_and(|at| at > self.now) {
            told.reason = Reason::Deferred;
            told.until = standing.run_at;
            told.advice = "it is a candidate from that instant on".into();
        } else {
            self.explain_candidate(row, told)?;
        }
        if let Some(at) = standing.run_at.filter(|&at| at > self.now && told.reason != Reason::Deferred) {
            told.advice = format!("{}; its own time comes at {at}", told.advice);
        }
        Ok(())
    }

    /// Since when a lane is paused, and how it goes on.
    fn resume_lane(&mut self, lane: &Label) -> Result<(Option<Timestamp>, String)> {
        let (word, flag) = (shell_word(lane.as_str()), self.rows.queue().namespace.flag());
        let pause = self.pause(Some(lane))?;
        let told = pause.as_ref().map_or_else(|| "paused".into(), ToString::to_string);
        let advice = format!("its lane is {told}; `lanes resume {word} {flag}` lets it go on");
        Ok((pause.map(|pause| pause.since), advice))
    }

    /// Since when the queue is paused, and how it goes on.
    fn resume_queue(&mut self) -> Result<(Option<Timestamp>, String)> {
        let namespace = self.rows.queue().namespace.clone();
        let pause = self.pause(None)?;
        let told = pause.as_ref().map_or_else(|| "paused".into(), ToString::to_string);
        let advice = format!("{namespace} is {told}; `queues resume {}` lets it go on", namespace.flag());
        Ok((pause.map(|pause| pause.since), advice))
    }

    /// The job that the next claim takes: the first of the candidates and of what that claim would bring in.
    fn next_taken(&mut self) -> Result<Option<(u64, Standing)>> {
        let ready = self.rows.candidates(self.now, None, 1)?.into_iter().map(|(row, standing, _)| (row, standing));
        let due = self.rows.due(self.now, true, MOST_DUE)?.into_iter().filter(|(_, standing)| {
            let comes = matches!(judge(standing, self.now, false), Some(Event::Due | Event::Lapse));
            comes && !standing.paused && !standing.lane_paused
        });
        Ok(ready.chain(due).min_by_key(|(_, standing)| (Reverse(standing.priority), standing.place)))
    }

    fn explain_candidate(&mut self, row: u64, told: &mut Explanation) -> Result<()> {
        match self.next_taken()? {
            Some((first, standing)) if first != row => {
                told.reason = Reason::BehindOthers;
                let blocker = self.blocker(first, &standing)?;
                let id = &blocker.id;
                told.advice = format!(
                    "other jobs come before it, the first of them {id}; a worker, or `jobs cancel {id}`, clears the way"
                );
                told.blocker = Some(blocker);
            }
            _ => {
                told.reason = Reason::Next;
                told.advice = "the next claim takes it; is a worker running?".into();
            }
        }
        Ok(())
    }

    fn explain_held(&mut self, standing: &Standing, told: &mut Explanation) {
        told.since = standing.claimed_at;
        told.until = standing.lease_expires_at;
        let robot = standing.claimed_by.as_ref().map_or("a robot", |robot| robot.as_str());
        if standing.is_lapsed(self.now) {
            told.reason = Reason::LeaseLapsed;
            let queue_paused = self.rows.queue().paused;
            let then = match judge(standing, self.now, queue_paused) {
                Some(Event::LapseCancelled) => "the next claim ends the job as cancelled",
                Some(Event::LapseExhausted) => "the next claim ends the job: it was lost too often",
                Some(_) if standing.paused => "the next claim puts the job back, paused",
                Some(_) => "the next claim takes the job over",
                None => "nobody takes the job over while its queue or lane is paused; resume that",
            };
            told.advice = format!("{robot:?} let its lease lapse; {then}");
        } else if standing.cancel_requested {
            told.reason = Reason::Held;
            told.advice = format!("{robot:?} was asked to stop; its next heartbeat tells it, or its lease lapses");
        } else {
            told.reason = Reason::Held;
            told.advice = format!("{robot:?} works on it; `jobs cancel {}` asks it to stop", told.id);
        }
    }

    pub(super) fn blocker(&mut self, row: u64, standing: &Standing) -> Result<Blocker> {
        let is_held = standing.state.is_held();
        Ok(Blocker {
            id: self.rows.identity(row)?.id,
            state: standing.state,
            holder: standing.claimed_by.clone().filter(|_| is_held),
            since: standing.claimed_at.filter(|_| is_held),
            until: standing.due_at(),
            paused: standing.paused || standing.lane_paused,
        })
    }
}
