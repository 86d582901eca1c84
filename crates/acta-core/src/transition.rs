//! The one function that decides every change of a job's state.
//!
//! What may happen to a job is an [`Event`]; what it then does to the job's row is a list of [`Effect`]s, data that
//! the rules carry out. Whoever makes an event has judged its conditions before: whether a lease
//! has lapsed, whether attempts remain.

use crate::state::State;

/// Something that happens to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The lane's head has ended and this is the next one; its `runAt` has come.
    PromoteNow,
    /// The same, with `runAt` still to come.
    PromoteLater,
    /// `runAt`, or a wait's deadline, has come.
    Due,
    /// A peer takes it.
    Claim,
    /// The holder says that it started.
    Start,
    /// The holder extends its lease, or writes progress or a step.
    Touch,
    /// The holder is done.
    Succeed,
    /// The holder failed, for good.
    Fail,
    /// The holder failed; again without delay.
    RetryNow,
    /// The holder failed; again after the back-off.
    RetryLater,
    /// The holder waits for a signal.
    Wait,
    /// The holder waits for a signal that has come already.
    WaitMet,
    /// The holder gives it back for now.
    SnoozeNow,
    /// The holder gives it back until an instant.
    SnoozeLater,
    /// The holder gives it back unworked.
    Release,
    /// The holder ends it as cancelled.
    Withdraw,
    /// The lease lapsed; a candidate again.
    Lapse,
    /// The lease lapsed once too often.
    LapseExhausted,
    /// The lease lapsed on a job whose cancel was requested.
    LapseCancelled,
    /// `expiresAt` passed before the first claim.
    Expire,
    /// An operator cancels what nobody works on.
    Cancel,
    /// An operator asks the holder to stop.
    RequestCancel,
    /// An operator ends it at once and fences the holder off.
    ForceCancel,
    /// An operator holds it.
    Pause,
    /// An operator lets it go on.
    Resume,
    /// An operator changes its priority.
    Reprioritise,
    /// An operator moves `runAt` to the past or drops it.
    PostponeNow,
    /// An operator moves `runAt` to the future.
    PostponeLater,
    /// The signal of its wait came.
    SignalAwaited,
    /// A signal came that it does not wait for.
    SignalKept,
    /// An operator starts it anew; nothing is in front of it in its lane.
    RestartNow,
    /// The same, behind another member of its lane.
    RestartBlocked,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 32] = [
        Self::PromoteNow,
        Self::PromoteLater,
        Self::Due,
        Self::Claim,
        Self::Start,
        Self::Touch,
        Self::Succeed,
        Self::Fail,
        Self::RetryNow,
        Self::RetryLater,
        Self::Wait,
        Self::WaitMet,
        Self::SnoozeNow,
        Self::SnoozeLater,
        Self::Release,
        Self::Withdraw,
        Self::Lapse,
        Self::LapseExhausted,
        Self::LapseCancelled,
        Self::Expire,
        Self::Cancel,
        Self::RequestCancel,
        Self::ForceCancel,
        Self::Pause,
        Self::Resume,
        Self::Reprioritise,
        Self::PostponeNow,
        Self::PostponeLater,
        Self::SignalAwaited,
        Self::SignalKept,
        Self::RestartNow,
        Self::RestartBlocked,
    ];
}

/// What a step does to the job's row, besides its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// One more claim against the budget.
    CountAttempt,
    /// The claim does not count against the budget after all.
    ReturnAttempt,
    /// The fence goes up by one; the last settle is forgotten.
    RaiseFence,
    /// `claimedBy`, `claimedAt`.
    StampClaim,
    /// `leaseExpiresAt` from the facts.
    TakeLease,
    /// No lease any more.
    EndLease,
    /// `lostLeases` goes up by one.
    CountLoss,
    /// `lostLeases` back to 0: a settle was accepted.
    ForgetLosses,
    /// `runAt` from the facts.
    SetRunAt,
    /// The wait's deadline from the facts.
    TakeWait,
    /// No wait any more.
    EndWait,
    /// `finishedAt`; the retention starts.
    Finish,
    /// The lane goes on with its next member.
    PromoteNext,
    /// `cancelRequested`.
    RequestCancel,
    /// `paused`.
    Hold,
    /// Not `paused` any more.
    Unhold,
    /// The priority from the facts.
    SetPriority,
    /// Everything but identity, fence and keys as on the first day; a new place.
    Renew,
}

/// A legal step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The state after it.
    pub to: State,
    /// What else it does, in this order.
    pub effects: &'static [Effect],
}

#[expect(clippy::unnecessary_wraps, reason = "each arm reads as a row of a table")]
fn to(to: State, effects: &'static [Effect]) -> Option<Step> {
    Some(Step { to, effects })
}

/// The step that `event` makes from `from`, or `None` where it is not legal.
pub fn transition(from: State, event: Event) -> Option<Step> {
    match from {
        State::Blocked => blocked(event),
        State::Ready | State::Scheduled => unclaimed(from, event),
        State::Claimed | State::Running => held(from, event),
        State::Waiting => waiting(event),
        State::Succeeded => None,
        State::Failed | State::Cancelled => ended(event),
    }
}

fn blocked(event: Event) -> Option<Step> {
    use Effect::{Finish, SetRunAt};
    match event {
        Event::PromoteNow => to(State::Ready, &[]),
        Event::PromoteLater => to(State::Scheduled, &[]),
        Event::Cancel | Event::ForceCancel => to(State::Cancelled, &[Finish]),
        Event::Expire => to(State::Failed, &[Finish]),
        Event::PostponeNow | Event::PostponeLater => to(State::Blocked, &[SetRunAt]),
        other => in_place(State::Blocked, other),
    }
}

fn unclaimed(from: State, event: Event) -> Option<Step> {
    use Effect::{CountAttempt, Finish, PromoteNext, RaiseFence, SetRunAt, StampClaim, TakeLease};
    match event {
        Event::Due if from == State::Scheduled => to(State::Ready, &[]),
        Event::Claim if from == State::Ready => to(State::Claimed, &[CountAttempt, RaiseFence, StampClaim, TakeLease]),
        Event::Cancel | Event::ForceCancel => to(State::Cancelled, &[Finish, PromoteNext]),
        Event::Expire => to(State::Failed, &[Finish, PromoteNext]),
        Event::PostponeNow => to(State::Ready, &[SetRunAt]),
        Event::PostponeLater => to(State::Scheduled, &[SetRunAt]),
        other => in_place(from, other),
    }
}

fn held(from: State, event: Event) -> Option<Step> {
    use Effect::{
        CountLoss, EndLease, Finish, ForgetLosses, PromoteNext, RequestCancel, ReturnAttempt, SetRunAt, TakeLease,
        TakeWait,
    };
    match event {
        Event::Start => to(State::Running, &[]),
        Event::Touch => to(from, &[TakeLease]),
        Event::Succeed => to(State::Succeeded, &[EndLease, ForgetLosses, Finish, PromoteNext]),
        Event::Fail => to(State::Failed, &[EndLease, ForgetLosses, Finish, PromoteNext]),
        Event::Withdraw => to(State::Cancelled, &[EndLease, ForgetLosses, Finish, PromoteNext]),
        Event::RetryNow => to(State::Ready, &[EndLease, ForgetLosses, SetRunAt]),
        Event::RetryLater => to(State::Scheduled, &[EndLease, ForgetLosses, SetRunAt]),
        Event::Wait => to(State::Waiting, &[EndLease, ForgetLosses, ReturnAttempt, TakeWait]),
        Event::WaitMet | Event::Release => to(State::Ready, &[EndLease, ForgetLosses, ReturnAttempt]),
        Event::SnoozeNow => to(State::Ready, &[EndLease, ForgetLosses, ReturnAttempt, SetRunAt]),
        Event::SnoozeLater => to(State::Scheduled, &[EndLease, ForgetLosses, ReturnAttempt, SetRunAt]),
        Event::Lapse => to(State::Ready, &[EndLease, CountLoss]),
        Event::LapseExhausted => to(State::Failed, &[EndLease, CountLoss, Finish, PromoteNext]),
        Event::LapseCancelled => to(State::Cancelled, &[EndLease, CountLoss, Finish, PromoteNext]),
        Event::Cancel | Event::ForceCancel => to(State::Cancelled, &[EndLease, Finish, PromoteNext]),
        Event::RequestCancel => to(from, &[RequestCancel]),
        other => in_place(from, other),
    }
}

fn waiting(event: Event) -> Option<Step> {
    use Effect::{EndWait, Finish, PromoteNext};
    match event {
        Event::Due | Event::SignalAwaited => to(State::Ready, &[EndWait]),
        Event::Cancel | Event::ForceCancel => to(State::Cancelled, &[EndWait, Finish, PromoteNext]),
        other => in_place(State::Waiting, other),
    }
}

/// What an operator may do to any live job without moving it.
fn in_place(state: State, event: Event) -> Option<Step> {
    match event {
        Event::Pause => to(state, &[Effect::Hold]),
        Event::Resume => to(state, &[Effect::Unhold]),
        Event::Reprioritise => to(state, &[Effect::SetPriority]),
        Event::SignalKept => to(state, &[]),
        Event::PromoteNow
        | Event::PromoteLater
        | Event::Due
        | Event::Claim
        | Event::Start
        | Event::Touch
        | Event::Succeed
        | Event::Fail
        | Event::RetryNow
        | Event::RetryLater
        | Event::Wait
        | Event::WaitMet
        | Event::SnoozeNow
        | Event::SnoozeLater
        | Event::Release
        | Event::Withdraw
        | Event::Lapse
        | Event::LapseExhausted
        | Event::LapseCancelled
        | Event::Expire
        | Event::Cancel
        | Event::RequestCancel
        | Event::ForceCancel
        | Event::PostponeNow
        | Event::PostponeLater
        | Event::SignalAwaited
        | Event::RestartNow
        | Event::RestartBlocked => None,
    }
}

fn ended(event: Event) -> Option<Step> {
    match event {
        Event::RestartNow => to(State::Ready, &[Effect::Renew]),
        Event::RestartBlocked => to(State::Blocked, &[Effect::Renew]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn every_pair_of_state_and_event_is_as_written_down() {
        let mut table = String::new();
        for from in State::ALL {
            for event in Event::ALL {
                match transition(from, event) {
                    Some(step) => {
                        writeln!(
                            table,
                            "{from:<9} {:<15} -> {:<9} {:?}",
                            format!("{event:?}"),
                            step.to.word(),
                            step.effects
                        )
                    }
                    None => writeln!(table, "{from:<9} {:<15} -", format!("{event:?}")),
                }
                .unwrap();
            }
        }
        insta::assert_snapshot!("transitions", table);
    }

    #[test]
    fn a_final_state_is_left_by_a_restart_only() {
        for from in State::ALL.into_iter().filter(|state| state.is_final()) {
            for event in Event::ALL {
                let restart = matches!(event, Event::RestartNow | Event::RestartBlocked);
                let legal = restart && from != State::Succeeded;
                assert_eq!(transition(from, event).is_some(), legal, "{from} {event:?}");
            }
        }
    }

    #[test]
    fn only_a_claim_raises_the_fence_and_every_end_of_a_head_promotes() {
        for from in State::ALL {
            for event in Event::ALL {
                let Some(step) = transition(from, event) else { continue };
                assert_eq!(step.effects.contains(&Effect::RaiseFence), event == Event::Claim);
                let ends = step.to.is_final();
                assert_eq!(step.effects.contains(&Effect::Finish), ends, "{from} {event:?}");
                assert_eq!(step.effects.contains(&Effect::PromoteNext), ends && from.is_head(), "{from} {event:?}");
                let lets_go = from.is_held() && !step.to.is_held();
                assert_eq!(step.effects.contains(&Effect::EndLease), lets_go, "{from} {event:?}");
            }
        }
    }
}
