//! A snapshot as JSON.

use super::Snapshot;

impl Snapshot {
    /// The snapshot as JSON, as `schemas/snapshot.schema.json` describes it.
    ///
    /// Times are `{"secs_since_epoch": N, "nanos_since_epoch": N}`.
    ///
    /// # Errors
    /// A time before 1970.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}
