//! When a process is asked to end.

/// Resolves when the process is asked to end: by SIGTERM, or by Ctrl-C.
///
/// From the first poll on, the signals no longer end the process by themselves.
pub async fn shutdown_signal() {
    let interrupt = async {
        if let Err(fault) = tokio::signal::ctrl_c().await {
            tracing::error!(%fault, "Ctrl-C can't be listened to");
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupt => {}
        () = terminate() => {}
    }
}

#[cfg(unix)]
async fn terminate() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminations) => {
            terminations.recv().await;
        }
        Err(fault) => {
            tracing::error!(%fault, "SIGTERM can't be listened to");
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
async fn terminate() {
    std::future::pending::<()>().await;
}
