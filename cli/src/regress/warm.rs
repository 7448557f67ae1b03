//! Warming a JVM up: a fixed amount of work before anything is measured.
//!
//! A JVM interprets first, compiles what is called often, and compiles it again, better, when it is called
//! more often. On a Tomcat the CPU time of a small PUT fell from 470 us to 45 us, and was flat after some
//! 80,000 requests. How much is enough is said in requests, not in seconds, which a busy machine stretches.

use super::RegressError;
use super::client::{Client, Finished};
use super::progress::Progress;
use super::server::Server;
use crate::report::model::WarmUp;

/// Small PUTs of each connector.
pub const REQUESTS: u64 = 100_000;
/// Rounds, in which the connectors take turns: what the JVM learns it learns of all of them.
const ROUNDS: u64 = 10;
/// Bytes of a large body.
const LARGE: u64 = 4_000_000;

/// The work for so many small PUTs.
pub fn size(requests: u64) -> WarmUp {
    let requests = requests.next_multiple_of(ROUNDS);
    // A large PUT for each 320 small ones; as many in each round.
    let megabytes = (requests / 80).max(1).next_multiple_of(ROUNDS * LARGE / 1_000_000);
    WarmUp { requests, new_connections: requests / ROUNDS / 20 * ROUNDS, megabytes }
}

/// Warms up each of the ways of serving.
pub fn up(
    line: &str,
    server: &Server,
    ways: &[&str],
    size: WarmUp,
    progress: &mut Progress,
) -> Result<Vec<Finished>, RegressError> {
    progress.step(format!("{line}: warm-up of {}", ways.join(", ")), ROUNDS);
    let requests = size.requests / ROUNDS;
    let share = size.new_connections as f64 / size.requests.max(1) as f64;
    let small = format!("--threads 16 --new-connections {share} --chunked 0.5");
    let large = format!("--threads 4 --body {LARGE} --keep-alive");
    let bodies = size.megabytes * 1_000_000 / LARGE / ROUNDS;
    let mut clients = Vec::new();
    for way in ways {
        let address = server.address_for(way)?;
        clients.push(Client::start_at(address, server, "small", requests, &small)?);
        clients.push(Client::start_at(address, server, "large", bodies, &large)?);
    }
    for round in 1..=ROUNDS {
        for client in &mut clients {
            client.round(&mut |_| {})?;
        }
        progress.set(round);
    }
    progress.done(&format!("{} small PUTs a connector", size.requests));
    clients.into_iter().map(Client::finish).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_whole() {
        for requests in [1, 10, 1_000, REQUESTS] {
            let size = size(requests);
            assert!(size.requests >= requests && size.requests.is_multiple_of(ROUNDS), "{size:?}");
            assert!(
                size.megabytes > 0 && (size.megabytes * 1_000_000).is_multiple_of(LARGE * ROUNDS)
            );
        }
        let WarmUp { new_connections, megabytes, .. } = size(REQUESTS);
        assert_eq!((new_connections, megabytes), (5_000, 1_280));
    }
}
