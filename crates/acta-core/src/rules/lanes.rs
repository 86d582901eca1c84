//! Looking at lanes.

use super::Rules;
use crate::error::Result;
use crate::explain::LaneView;
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
            views.push(LaneView { name: lane.name, live: lane.live, paused: lane.paused, head });
        }
        Ok(views)
    }
}
