//! `buildout`: items into a queue, and a robot's words about the items that it has claimed.

mod add;
mod claim;
mod holder;
mod lines;

pub(crate) use add::add;
pub(crate) use claim::claim;
pub(crate) use holder::{heartbeat, report, settle};
