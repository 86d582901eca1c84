//! Relays as processes.

use std::process::{Child, Command, Stdio};

use crate::common::Desk;
use crate::shop::Shop;

/// A relay that is killed and begun again.
pub(crate) struct Relay {
    pub(crate) child: Child,
}

impl Relay {
    pub(crate) fn start(desk: &Desk, shop: &Shop) -> Self {
        Self::start_with(desk, shop, "1s", &[])
    }

    pub(crate) fn start_with(desk: &Desk, shop: &Shop, hold: &str, environment: &[(&str, &str)]) -> Self {
        let child = desk
            .command(&["outbox", "relay", "--source", &shop.url(), "--hold", hold])
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Makes it stand still, or go on.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success(), "{signal}");
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
