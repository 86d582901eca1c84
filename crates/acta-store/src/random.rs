//! Randomness from the machine.

use acta_core::{Error, Result, Seeded};

/// A source of random numbers that starts from the operating system's.
pub fn system_random() -> Result<Seeded> {
    let mut seed = [0_u8; 8];
    getrandom::fill(&mut seed)
        .map_err(|fault| Error::Unavailable { place: "the system's random numbers".into(), why: fault.to_string() })?;
    Ok(Seeded::new(u64::from_le_bytes(seed)))
}
