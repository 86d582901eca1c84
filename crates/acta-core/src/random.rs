//! Randomness, handed in like time, so that two substrates can be compared byte for byte.

/// A source of random numbers for ids and jitter. Nothing here guards a secret.
pub trait Random: Send {
    /// The next number, uniform over all of `u64`.
    fn next_u64(&mut self) -> u64;
}

/// `SplitMix64`: the same numbers for the same seed.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// A source that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Random for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
