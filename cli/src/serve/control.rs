//! Orders on standard input, one a line, and their answers on standard output, one line of JSON each.

use std::io::BufRead;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cure::Cure;
use super::{ServeError, Server, age, stats};
use crate::output;

/// Says one line.
///
/// # Errors
/// Standard output is closed.
pub fn say(value: &impl serde::Serialize) -> Result<(), ServeError> {
    let mut line = serde_json::to_string(value).map_err(std::io::Error::from)?;
    line.push('\n');
    Ok(output::say(&line)?)
}

/// Obeys until `quit` or the end of standard input.
///
/// # Errors
/// Standard input or output failed, or an order to age the server did.
pub fn obey(server: &Arc<Server>) -> Result<(), ServeError> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [] => {}
            ["stats"] => say(&server.stats.report(server))?,
            ["cpu"] => say(&json!({"event": "cpu", "cpu_ns": stats::cpu_ns()}))?,
            ["states"] => say(&states(server))?,
            ["cure", name] => say(&cure(server, name))?,
            ["age", count] => match count.parse() {
                Ok(count) => {
                    let age::Aged { threads, states } = age::age(server, count)?;
                    say(&json!({"event": "aged", "threads": threads, "states": states}))?;
                }
                Err(_) => say(&unknown(&line))?,
            },
            ["quit"] => return say(&json!({"event": "quit"})),
            _ => say(&unknown(&line))?,
        }
    }
    Ok(())
}

/// What changes while the server works, without the cost of a whole look at the process.
fn states(server: &Server) -> Value {
    json!({
        "event": "states",
        "live_threads": server.stats.live_threads(),
        "thread_states": server.stats.thread_states(server.library),
    })
}

fn cure(server: &Server, name: &str) -> Value {
    match Cure::named(name) {
        Some(cure) => {
            server.cure.set(cure);
            json!({"event": "cure", "cure": cure})
        }
        None => unknown(name),
    }
}

fn unknown(order: &str) -> Value {
    let known =
        "stats, cpu, states, cure none|clear-each-call|release-every-task|sweep, age N, quit";
    json!({"event": "error", "message": format!("{order:?} is not an order; there are: {known}")})
}
