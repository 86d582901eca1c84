//! What can go wrong, said once for every substrate.

use crate::id::JobId;
use crate::state::State;

/// The result of every fallible call of this crate and of the stores.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call changed nothing.
///
/// A refused call of one job leaves that job, and every other one, as it was. Match on the predicates
/// ([`Error::is_lease_lost`] and its kin) rather than on the variants where only the kind matters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument that can never be accepted; the text says which and why.
    #[error("{what} {given:?} {why}")]
    Invalid {
        /// The argument's name.
        what: &'static str,
        /// What was given, cut to a line.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// A name that an existing one equals but for upper and lower case.
    #[error("{what} {given:?} differs from the existing {existing:?} only by case")]
    CaseDiffers {
        /// Which kind of name it is.
        what: &'static str,
        /// What was given.
        given: String,
        /// The one that exists.
        existing: String,
    },
    /// There is no such job (or lane, or queue).
    #[error("there is no {what} {given:?}")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Its id or name as given.
        given: String,
    },
    /// The job's state does not allow this.
    #[error("job {id} is {state}: {why}")]
    Refused {
        /// The job.
        id: JobId,
        /// Its state now.
        state: State,
        /// What was asked, and why it is refused.
        why: String,
    },
    /// The caller no longer holds the job, or never did. Nothing was changed.
    #[error("lease lost: job {id} is no longer held under {given}; it is {state}, claim {fence}{}", held_by(holder.as_deref()))]
    LeaseLost {
        /// The job.
        id: JobId,
        /// What the caller named: a fence, a robot, or both.
        given: String,
        /// The job's current fence.
        fence: u64,
        /// Its state now.
        state: State,
        /// Who claimed it last.
        holder: Option<String>,
    },
    /// One element of a batch was refused, and with it the whole batch.
    #[error("element {index}: {source}")]
    At {
        /// Its position, from 0.
        index: usize,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// The ledger takes no writes: it was copied, or is being copied.
    #[error("{place} {why}")]
    Closed {
        /// The ledger.
        place: String,
        /// Why, and what to do.
        why: String,
    },
    /// What a substrate holds can't be understood: a foreign, newer or damaged ledger.
    #[error("{place}: {why}")]
    Unreadable {
        /// File, row or column.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The substrate could not do it now. The call is not done and may be repeated.
    #[error("{place}: {why}")]
    Unavailable {
        /// File or address.
        place: String,
        /// What it said.
        why: String,
    },
}

fn held_by(holder: Option<&str>) -> String {
    holder.map(|robot| format!(" by {robot:?}")).unwrap_or_default()
}

/// Cuts what a caller gave to something that fits a line of an error.
fn shortened(given: &str) -> String {
    const MOST: usize = 80;
    if given.chars().count() <= MOST {
        return given.to_owned();
    }
    let start: String = given.chars().take(MOST).collect();
    format!("{start}… ({} bytes)", given.len())
}

impl Error {
    /// An argument that can never be accepted.
    pub fn invalid(what: &'static str, given: &str, why: impl Into<String>) -> Self {
        Self::Invalid { what, given: shortened(given), why: why.into() }
    }

    /// There is no such thing.
    pub fn not_found(what: &'static str, given: &str) -> Self {
        Self::NotFound { what, given: shortened(given) }
    }

    /// The same error, said of one element of a batch.
    pub fn at(self, index: usize) -> Self {
        Self::At { index, source: Box::new(self) }
    }

    /// The error without the batch position around it: for whoever knows of no batch.
    pub fn alone(self) -> Self {
        match self {
            Self::At { source, .. } => source.alone(),
            other => other,
        }
    }

    /// The same, borrowed.
    fn root(&self) -> &Self {
        match self {
            Self::At { source, .. } => source.root(),
            other => other,
        }
    }

    /// It concerns what was asked of one job, not the substrate: the rest of a batch goes on.
    pub fn is_of_one_job(&self) -> bool {
        !matches!(self.root(), Self::Closed { .. } | Self::Unreadable { .. } | Self::Unavailable { .. })
    }

    /// The caller's claim is over: stop the work, do not report its result.
    pub fn is_lease_lost(&self) -> bool {
        matches!(self.root(), Self::LeaseLost { .. })
    }

    /// The ledger was copied, or is being copied, and takes no writes.
    pub fn is_closed(&self) -> bool {
        matches!(self.root(), Self::Closed { .. })
    }

    /// The job's state does not allow it.
    pub fn is_refused(&self) -> bool {
        matches!(self.root(), Self::Refused { .. })
    }

    /// There is no such job, lane or queue.
    pub fn is_not_found(&self) -> bool {
        matches!(self.root(), Self::NotFound { .. })
    }

    /// The argument can never be accepted.
    pub fn is_invalid(&self) -> bool {
        matches!(self.root(), Self::Invalid { .. } | Self::CaseDiffers { .. })
    }

    /// The substrate is out of reach or busy: the same call may succeed later.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.root(), Self::Unavailable { .. })
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self.root() {
            Self::CaseDiffers { existing, .. } => Some(format!("write {existing:?}")),
            Self::LeaseLost { .. } => {
                Some("somebody else may have the job now: stop this work, do not repeat its effects".into())
            }
            Self::NotFound { what: "job", .. } => Some("a pruned job is gone; `jobs list` shows what is there".into()),
            Self::Unavailable { .. } => Some("nothing was changed; try again".into()),
            Self::Invalid { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::Closed { .. }
            | Self::Unreadable { .. }
            | Self::At { .. } => None,
        }
    }
}
