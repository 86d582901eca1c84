//! The guard of every write that ends or extends a claim.

use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::Standing;
use crate::name::Label;
use crate::state::State;
use crate::store::Claimant;

/// How a claimant stands to a job.
pub(super) enum Claimancy {
    /// It holds the job.
    Holds,
    /// It held the job under the current fence, and has settled it.
    HasSettled,
}

/// Why a claimant may not act on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It names neither a fence nor a robot.
    NamesNothing,
    /// The job was never claimed.
    NeverClaimed,
    /// It does not hold the job any more.
    LeaseLost,
    /// It has settled the job already, with another outcome.
    OtherOutcome,
}

impl Refusal {
    /// The error that says so, of the job `id`, which is in `state` after `fence` claims, the last one by `holder`.
    pub fn error(self, id: &JobId, state: State, fence: u64, holder: Option<&Label>, claimant: &Claimant) -> Error {
        let refused = |why: &str| Error::Refused { id: id.clone(), state, why: why.into() };
        match self {
            Self::NamesNothing => Error::invalid("claimant", "", "names neither a fence nor a robot"),
            Self::NeverClaimed => refused("it was never claimed"),
            Self::OtherOutcome => refused("this claim was settled already, with another outcome"),
            Self::LeaseLost => Error::LeaseLost {
                id: id.clone(),
                given: said_by(claimant),
                fence,
                state,
                holder: holder.map(ToString::to_string),
            },
        }
    }

    pub(super) fn of(self, id: &JobId, standing: &Standing, claimant: &Claimant) -> Error {
        self.error(id, standing.state, standing.fence, standing.claimed_by.as_ref(), claimant)
    }
}

/// Whether `claimant` may act on the job: the one guard of every write that ends or extends a claim.
///
/// A lapsed lease that nobody has taken over is still its holder's: expiry changes no row.
pub(super) fn claimancy(id: &JobId, standing: &Standing, claimant: &Claimant) -> Result<Claimancy> {
    if claimant.fence.is_none() && claimant.robot.is_none() {
        return Err(Refusal::NamesNothing.of(id, standing, claimant));
    }
    if standing.fence == 0 {
        return Err(Refusal::NeverClaimed.of(id, standing, claimant));
    }
    let fence_fits = claimant.fence.is_none_or(|fence| fence == standing.fence);
    let robot_fits = claimant.robot.is_none() || claimant.robot == standing.claimed_by;
    if !fence_fits || !robot_fits {
        return Err(Refusal::LeaseLost.of(id, standing, claimant));
    }
    match (standing.state.is_held(), standing.settled) {
        (true, _) => Ok(Claimancy::Holds),
        (false, Some(_)) => Ok(Claimancy::HasSettled),
        (false, None) => Err(Refusal::LeaseLost.of(id, standing, claimant)),
    }
}

fn said_by(claimant: &Claimant) -> String {
    match (claimant.fence, &claimant.robot) {
        (Some(fence), Some(robot)) => format!("fence {fence} by {:?}", robot.as_str()),
        (Some(fence), None) => format!("fence {fence}"),
        (None, Some(robot)) => format!("the name {:?}", robot.as_str()),
        (None, None) => "nothing".into(),
    }
}
