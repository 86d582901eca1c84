//! Looking at lanes.

use super::Rules;
use crate::error::Result;
use crate::explain::{LaneView, Pause};
use crate::name::Label;
use crate::rows::Rows;
use crate::store::LaneFilter;

impl<R: Rows> Rules<'_, R> {
    /// The lanes that have live members or are paused, by name.
    pub fn lanes(&mut self, filter: &LaneFilter) -> Result<Vec<LaneView>> {
        let lanes = match &filter.name {
            Some(name) => self.rows.lane(name)?.into_iter().collect(),
            None => self.rows.lanes(filter.after.as_ref(), filter.limit)?,
        };
        let mut views = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let head = match self.rows.lane_head(lane.number)? {
                Some((row, standing)) => Some(self.blocker(row, &standing)?),
                None => None,
            };
            let pause = if lane.paused { self.pause(Some(&lane.name))? } else { None };
            views.push(LaneView { name: lane.name, live: lane.live, paused: lane.paused, pause, head });
        }
        Ok(views)
    }

    /// Who paused the lane, or the namespace, when and why.
    pub fn pause(&mut self, lane: Option<&Label>) -> Result<Option<Pause>> {
        Ok(self.rows.last_hold(lane)?.as_ref().map(Pause::from))
    }
}
