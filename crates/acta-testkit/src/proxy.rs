//! A network that a test cuts: a relay of connections that falls silent without a word to either side.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How the network is.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Bytes are held back: the ends see a peer that says nothing, and can't tell why.
    is_silent: bool,
    /// How often all connections were torn.
    torn: u64,
}

/// A relay to a server. Connections made through it live in the runtime that it was started in.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
}

impl Proxy {
    /// Starts one to the server at a port of this machine.
    pub async fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap_or_else(|fault| panic!("a port: {fault}"));
        let address = listener.local_addr().unwrap_or_else(|fault| panic!("its address: {fault}"));
        let (line, seen) = watch::channel(Line { is_silent: false, torn: 0 });
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let seen = seen.clone();
                tokio::spawn(async move {
                    let (from_near, to_near) = near.into_split();
                    // While the line is silent, a connection is accepted by the system and then hears nothing.
                    let mut line = seen.clone();
                    if line.wait_for(|line| !line.is_silent).await.is_err() {
                        return;
                    }
                    let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
                    let (from_far, to_far) = far.into_split();
                    tokio::join!(pass(from_near, to_far, line.clone()), pass(from_far, to_near, line));
                });
            }
        });
        Self { address, line }
    }

    /// The port that leads to the server.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Nothing passes any more, and nobody is told.
    pub fn silence(&self) {
        self.line.send_modify(|line| line.is_silent = true);
    }

    /// All passes again, what was held back first.
    pub fn resume(&self) {
        self.line.send_modify(|line| line.is_silent = false);
    }

    /// All passes again, but for the connections there were: those are gone.
    pub fn tear(&self) {
        self.line.send_modify(|line| *line = Line { is_silent: false, torn: line.torn + 1 });
    }
}

/// Passes bytes one way while the line is open, until either end closes or the line is torn.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut line: watch::Receiver<Line>) {
    let mut buffer = vec![0; 16 * 1024];
    let begun = line.borrow().torn;
    loop {
        let count = tokio::select! {
            count = from.read(&mut buffer) => count.unwrap_or(0),
            _ = line.wait_for(|line| line.torn != begun) => return,
        };
        let waited = line.wait_for(|line| !line.is_silent || line.torn != begun).await;
        let is_torn = waited.map_or(true, |line| line.torn != begun);
        if count == 0 || is_torn || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
