//! The real reports of CASES.md that concern errors left by others, 1 to 20, each with a small input of
//! our own. docs/cases.md is the table of all cases.
//!
//! Each test first shows the fault without the guard, as the report has it, then its absence with the
//! guard, and what the ledger says about it. Where a release does not have the fault (any more), the
//! test asserts that too.

#[path = "../common/mod.rs"]
mod common;

mod case_01_refused_handshakes;
mod case_02_stale_error_closes_a_session;
mod case_03_would_block_read_as_failure;
mod case_04_failed_fetch;
mod case_05_success_leaves_errors;
mod case_06_interrupted_read;
mod case_07_library_below_rust;
mod case_08_truncation;
mod case_09_dying_peers;
mod case_10_nested_scopes;
mod case_11_bad_key_store;
mod case_12_timer_task;
mod case_13_shutdown_during_handshake;
mod case_14_ported_from_boringssl;
mod case_15_cooperative_tasks;
mod case_16_strict_check_at_start;
mod case_17_driver_and_application;
mod case_18_bundle_read_to_its_end;
mod case_19_clearing_in_a_callback;
mod case_20_library_clears_its_callers_errors;
