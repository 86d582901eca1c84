//! Named points between the steps of every write, where a crash test lets the process die.

/// Ends the process, without any clean-up, if the environment's `ACTA_FAILPOINT` names this point.
///
/// `ACTA_FAILPOINT=save` dies at the first `save`, `ACTA_FAILPOINT=save:7` at the seventh. Without the feature
/// `failpoints` this is nothing at all.
#[inline]
pub fn failpoint(name: &str) {
    #[cfg(feature = "failpoints")]
    armed::reach(name);
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Armed {
        name: String,
        left: AtomicU64,
    }

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

    pub(super) fn reach(name: &str) {
        let armed = ARMED.get_or_init(|| {
            let text = std::env::var("ACTA_FAILPOINT").ok()?;
            let (name, count) = text.split_once(':').unwrap_or((&text, "1"));
            Some(Armed { name: name.to_owned(), left: AtomicU64::new(count.parse().unwrap_or(1)) })
        });
        if let Some(armed) = armed
            && armed.name == name
            && armed.left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            std::process::abort();
        }
    }
}
