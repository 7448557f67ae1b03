//! What tasks have left, each kind as a JSON object for Java.

use std::time::{SystemTime, UNIX_EPOCH};

use jni::Env;
use jni::objects::{JObjectArray, JString};
use serde::Serialize;

use super::env::JavaError;
use crate::edge::EdgeError;
use crate::hygiene::{self, LabelFigures};

/// One kind of leftover of one label, and the last one of it. `Natives.leftovers` names the fields.
#[derive(Serialize)]
struct Leftover<'a> {
    label: &'a str,
    library: &'a str,
    code: u64,
    reason: &'a str,
    benign: Option<&'a str>,
    leftovers: u64,
    arrivals: u64,
    at_least: bool,
    thread: &'a str,
    thread_id: u64,
    file: &'a str,
    line: u32,
    function: Option<&'a str>,
    data: Option<&'a str>,
    first_ms: i64,
    last_ms: i64,
    connection: Option<i64>,
}

impl<'a> Leftover<'a> {
    fn new(label: &'a str, kind: &'a hygiene::Leftover) -> Self {
        let last = &kind.last;
        Self {
            label,
            library: &kind.library,
            code: kind.code,
            reason: &kind.reason,
            benign: kind.benign,
            leftovers: kind.leftovers,
            arrivals: kind.arrivals,
            at_least: kind.at_least,
            thread: &last.thread,
            thread_id: last.thread_id,
            file: &last.file,
            line: last.line,
            function: last.function.as_deref(),
            data: last.data.as_deref(),
            first_ms: milliseconds(kind.first),
            last_ms: milliseconds(last.time),
            // As Java gave it.
            connection: last.connection.map(u64::cast_signed),
        }
    }
}

/// As `System.currentTimeMillis` counts.
fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// At most `most` kinds, the most frequent first.
fn texts(labels: &[LabelFigures], most: usize) -> Result<Vec<String>, EdgeError> {
    let mut kinds: Vec<_> = labels
        .iter()
        .flat_map(|label| label.entries.iter().map(|kind| Leftover::new(label.label, kind)))
        .collect();
    // A stable sort: those of one label stay in the ledger's order.
    kinds.sort_by_key(|kind| std::cmp::Reverse((kind.leftovers, kind.arrivals)));
    kinds.truncate(most);
    kinds.iter().map(|kind| serde_json::to_string(kind).map_err(|_| EdgeError::Internal)).collect()
}

pub(super) fn array<'local>(
    env: &mut Env<'local>,
    most: usize,
) -> Result<JObjectArray<'local, JString<'local>>, JavaError> {
    let texts = texts(&hygiene::ledger().labels, most)?;
    let array = JObjectArray::<JString>::new(env, texts.len(), JString::null())?;
    for (place, text) in texts.iter().enumerate() {
        // Local references are few: each goes at once.
        let text = JString::from_str(env, text)?;
        array.set_element(env, place, &text)?;
        env.delete_local_ref(text);
    }
    Ok(array)
}
