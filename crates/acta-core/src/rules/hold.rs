//! Pausing a whole namespace or one lane.

use super::Rules;
use crate::error::{Error, Result};
use crate::history::{Entry, Happening};
use crate::rows::{Lane, Rows};
use crate::store::Hold;

impl<R: Rows> Rules<'_, R> {
    /// Pauses or resumes; doing it again changes nothing.
    pub fn hold(&mut self, hold: &Hold) -> Result<()> {
        super::operate::check_reason(hold.reason.as_deref())?;
        let changed = match &hold.lane {
            None => {
                let changed = self.rows.queue().paused != hold.paused;
                self.rows.set_queue_paused(hold.paused)?;
                changed
            }
            Some(name) => {
                let lane = match self.rows.lane(name)? {
                    Some(lane) => lane,
                    // A lane can be paused before its first job comes, but what is not there can't be resumed.
                    None if hold.paused => self.rows.add_lane(name)?,
                    None => return Err(Error::not_found("lane", name.as_str())),
                };
                self.hold_lane(lane, hold.paused)?
            }
        };
        if !changed {
            return Ok(());
        }
        if !hold.paused {
            self.rows.wake();
        }
        self.rows.record(&Entry {
            at: self.now,
            event: if hold.paused { Happening::Paused } else { Happening::Resumed },
            row: None,
            lane: hold.lane.clone(),
            fence: None,
            actor: hold.actor.clone(),
            reason: hold.reason.clone(),
            run_at: None,
            exception: None,
        })
    }

    fn hold_lane(&mut self, lane: Lane, paused: bool) -> Result<bool> {
        if lane.paused == paused {
            return Ok(false);
        }
        if lane.live == 0 && !paused {
            self.rows.remove_lane(lane.number)?;
            return Ok(true);
        }
        // The head carries the pause too, so that the claim scan never steps over paused lanes.
        if let Some((row, mut head)) = self.rows.lane_head(lane.number)? {
            head.lane_paused = paused;
            self.rows.save(row, &head)?;
        }
        self.rows.save_lane(&Lane { paused, ..lane })?;
        Ok(true)
    }
}
