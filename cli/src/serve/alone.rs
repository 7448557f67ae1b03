//! A thread that serves one connection from its beginning to its end.

use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Server;
use super::connection::{Interest, Next, Served};
use super::worker::Worker;

/// Serves a connection on a thread of its own.
///
/// # Errors
/// The thread could not be started.
pub fn spawn(server: &Arc<Server>, served: Box<Served>) -> std::io::Result<()> {
    let server = Arc::clone(server);
    let thread = std::thread::Builder::new().name("connection".to_owned());
    thread.spawn(move || serve(&mut Worker::begin(&server), served)).map(drop)
}

/// Serves a connection on the calling thread until it ends or the server stops.
pub fn serve(worker: &mut Worker, mut served: Box<Served>) {
    while let Next::Wait(interest) = served.work(worker) {
        let Some(socket) = served.socket() else { return };
        let flags = match interest {
            Interest::Readable => PollFlags::IN,
            Interest::Writable => PollFlags::OUT,
        };
        let stop = worker.server.poller.stopped();
        let mut waited =
            [PollFd::from_borrowed_fd(socket, flags), PollFd::new(&stop, PollFlags::IN)];
        loop {
            match poll(&mut waited, None) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => {
                    eprintln!("sslsweep: a connection was closed, as poll failed: {error}");
                    return;
                }
            }
        }
        if !waited[1].revents().is_empty() {
            return;
        }
    }
}
