//! The drivers whose connections a caller's transaction may be on.

#[cfg(feature = "sqlx-postgres")]
mod sqlx;
#[cfg(feature = "tokio-postgres")]
mod tokio;
