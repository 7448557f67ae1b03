use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::*;

/// Counts how many of them are alive.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(alive: &'a AtomicUsize) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const STRANGE: [i64; 8] = [0, -1, 1, i64::MAX, i64::MIN, 0x7fff_dead_beef, 5, 1 << 40];

#[test]
fn numbers_that_are_no_handles_name_nothing() {
    let shared = Shared::<u8>::new(Kind::Context);
    let exclusive = Exclusive::<u8>::new();
    let handle = shared.add(Arc::new(7)).unwrap();
    let connection = exclusive.add(Kind::Connection, Box::new(8)).unwrap();
    assert!(handle > 0 && connection > 0);
    for strange in STRANGE.into_iter().chain([connection, handle + 1, handle | 1 << 23]) {
        assert!(shared.get(strange).is_none(), "{strange:#x}");
        assert!(shared.remove(strange).is_none(), "{strange:#x}");
    }
    for strange in STRANGE.into_iter().chain([handle, connection + 1, connection ^ (1 << 24)]) {
        assert!(exclusive.hold(strange, Kind::Connection).is_none(), "{strange:#x}");
        assert_eq!(exclusive.fact(strange, Kind::Connection, Fact::Readable), None);
    }
    assert_eq!(shared.get(handle).as_deref(), Some(&7));
    assert_eq!(exclusive.hold(connection, Kind::Connection).as_deref(), Some(&8));
}

#[test]
fn what_was_freed_is_named_no_more_though_its_slot_is_used_again() {
    let alive = AtomicUsize::new(0);
    let shared = Shared::new(Kind::Pool);
    let mut old = Vec::new();
    for _ in 0..1000 {
        let handle = shared.add(Arc::new(Counted::new(&alive))).unwrap();
        assert!(old.iter().all(|&old| shared.get(old).is_none()));
        assert!(shared.remove(handle).is_some());
        assert!(shared.remove(handle).is_none());
        assert_eq!(alive.load(Ordering::Relaxed), 0);
        old.truncate(20);
        old.push(handle);
    }

    let exclusive = Exclusive::new();
    for _ in 0..1000 {
        let handle = exclusive.add(Kind::Connection, Box::new(Counted::new(&alive))).unwrap();
        assert!(!old.contains(&handle));
        exclusive.hold(handle, Kind::Connection).unwrap().free();
        assert!(exclusive.hold(handle, Kind::Connection).is_none());
        assert_eq!(exclusive.fact(handle, Kind::Connection, Fact::Shutdown), None);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
        old.push(handle);
    }
}

#[test]
fn what_is_cleared_goes_and_its_handles_name_nothing() {
    let alive = AtomicUsize::new(0);
    let shared = Shared::new(Kind::Conf);
    let exclusive = Exclusive::new();
    let handles: Vec<_> =
        (0..600).map(|_| shared.add(Arc::new(Counted::new(&alive))).unwrap()).collect();
    let connections: Vec<_> = (0..600)
        .map(|_| exclusive.add(Kind::Connection, Box::new(Counted::new(&alive))).unwrap())
        .collect();
    assert_eq!(alive.load(Ordering::Relaxed), 1200);
    let kept = shared.get(handles[5]).unwrap();
    shared.clear();
    exclusive.clear();
    assert_eq!(alive.load(Ordering::Relaxed), 1, "what somebody uses goes when he is done");
    drop(kept);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    assert!(handles.iter().all(|&handle| shared.get(handle).is_none()));
    assert!(connections.iter().all(|&one| exclusive.hold(one, Kind::Connection).is_none()));
}

#[test]
fn both_handles_of_a_connection_name_it_and_no_others() {
    let exclusive = Exclusive::new();
    let handle = exclusive.add(Kind::Connection, Box::new(3)).unwrap();
    let network = Exclusive::<i32>::as_kind(handle, Kind::Connection, Kind::Network).unwrap();
    assert_ne!(handle, network);
    assert!(exclusive.hold(network, Kind::Connection).is_none());
    assert!(exclusive.hold(handle, Kind::Network).is_none());
    exclusive.hold(network, Kind::Network).unwrap().facts().set(Fact::ToSend, 9);
    assert_eq!(exclusive.fact(network, Kind::Network, Fact::ToSend), Some(9));
    assert_eq!(exclusive.fact(handle, Kind::Connection, Fact::ToSend), Some(9));
    assert_eq!(exclusive.fact(handle, Kind::Network, Fact::ToSend), None);
}

#[test]
fn one_that_is_freed_in_a_callback_goes_when_the_native_around_it_returns() {
    let alive = AtomicUsize::new(0);
    let exclusive = Exclusive::new();
    let handle = exclusive.add(Kind::Connection, Box::new(Counted::new(&alive))).unwrap();
    let outer = exclusive.hold(handle, Kind::Connection).unwrap();
    let inner = exclusive.hold(handle, Kind::Connection).unwrap();
    assert!(inner.is_inner() && !outer.is_inner());
    inner.free();
    assert_eq!(alive.load(Ordering::Relaxed), 1);
    drop(outer);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    assert!(exclusive.hold(handle, Kind::Connection).is_none());
}

#[test]
fn a_connection_is_one_threads_at_a_time() {
    let exclusive = Exclusive::new();
    let busy = AtomicBool::new(false);
    let uses = AtomicUsize::new(0);
    let handle = exclusive.add(Kind::Connection, Box::new(())).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let held = exclusive.hold(handle, Kind::Connection).unwrap();
                    assert!(!busy.swap(true, Ordering::Relaxed), "two threads have it");
                    uses.fetch_add(1, Ordering::Relaxed);
                    busy.store(false, Ordering::Relaxed);
                    drop(held);
                }
            });
        }
    });
    assert_eq!(uses.load(Ordering::Relaxed), 8000);
}

#[test]
fn freeing_races_with_everything_and_frees_each_once() {
    let alive = AtomicUsize::new(0);
    let shared = Shared::new(Kind::Context);
    let exclusive = Exclusive::new();
    for _ in 0..300 {
        let context = shared.add(Arc::new(Counted::new(&alive))).unwrap();
        let connection = exclusive.add(Kind::Connection, Box::new(Counted::new(&alive))).unwrap();
        let freed = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    drop(shared.get(context));
                    drop(exclusive.hold(connection, Kind::Connection));
                    freed.fetch_add(
                        usize::from(shared.remove(context).is_some()),
                        Ordering::Relaxed,
                    );
                    if let Some(held) = exclusive.hold(connection, Kind::Connection) {
                        held.free();
                        freed.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(freed.load(Ordering::Relaxed), 2);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}
