//! The guard of every write that ends or extends a claim.

use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::Standing;
use crate::store::Claimant;

/// How a claimant stands to a job.
pub(super) enum Claimancy {
    /// It holds the job.
    Holds,
    /// It held the job under the current fence, and has settled it.
    HasSettled,
}

/// Whether `claimant` may act on the job: the one guard of every write that ends or extends a claim.
///
/// A lapsed lease that nobody has taken over is still its holder's: expiry changes no row.
pub(super) fn claimancy(id: &JobId, standing: &Standing, claimant: &Claimant) -> Result<Claimancy> {
    if claimant.fence.is_none() && claimant.robot.is_none() {
        return Err(Error::invalid("claimant", "", "names neither a fence nor a robot"));
    }
    if standing.fence == 0 {
        let why = "it was never claimed".into();
        return Err(Error::Refused { id: id.clone(), state: standing.state, why });
    }
    let fence_fits = claimant.fence.is_none_or(|fence| fence == standing.fence);
    let robot_fits = claimant.robot.is_none() || claimant.robot == standing.claimed_by;
    if !fence_fits || !robot_fits {
        return Err(lease_lost(id, standing, claimant));
    }
    match (standing.state.is_held(), standing.settled) {
        (true, _) => Ok(Claimancy::Holds),
        (false, Some(_)) => Ok(Claimancy::HasSettled),
        (false, None) => Err(lease_lost(id, standing, claimant)),
    }
}

/// The answer to whoever does not hold the job any more.
pub(super) fn lease_lost(id: &JobId, standing: &Standing, claimant: &Claimant) -> Error {
    Error::LeaseLost {
        id: id.clone(),
        given: said_by(claimant),
        fence: standing.fence,
        state: standing.state,
        holder: standing.claimed_by.as_ref().map(ToString::to_string),
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
