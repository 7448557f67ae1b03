//! The tasks that a thread has entered from C or Java and not yet left.
//!
//! Calls from C are balanced even when they fail: an enter beyond the limit is counted without a guard, so
//! that its exit does not end a task that is still going on. Java gets a token for each task instead, which
//! fits no other task of any thread. Tasks that a thread never leaves end with the thread, innermost first.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};
use std::sync::atomic::{AtomicI64, Ordering};

use super::EdgeError;
use crate::hygiene::{self, Guard, Task};
use crate::sys::thread::Shortcut;

/// So many tasks can be nested on one thread.
pub(super) const DEEPEST: usize = 64;

/// So many tokens a thread takes at a time.
const TOKENS: i64 = 1 << 16;
/// The first token that no thread has taken.
static TOKEN: AtomicI64 = AtomicI64::new(1);

/// Names a task: more than 0, and never given out again.
pub(super) type Token = i64;
/// That of a worker's task, which nobody is given.
const ROOT: Token = 0;

struct Entry {
    guard: Guard,
    token: Token,
}

struct Stack {
    /// Has room from the thread's first task on until its end ([`AtEnd`]).
    entries: ManuallyDrop<Vec<Entry>>,
    /// Tasks that were entered beyond the limit, the innermost ones; they have no guard.
    beyond: usize,
    /// Tokens that the thread may give out.
    tokens: std::ops::Range<Token>,
    /// The thread is in a worker's task and in no other, and the queue was clean when it was looked at last: what
    /// an operation has to know, in the one place that it reads anyhow.
    lone_root: bool,
}

impl Stack {
    fn token(&mut self) -> Token {
        if let Some(token) = self.tokens.next() {
            return token;
        }
        let first = TOKEN.fetch_add(TOKENS, Ordering::Relaxed);
        self.tokens = first + 1..first + TOKENS;
        first
    }

    #[inline(always)]
    fn push(&mut self, task: Task, token: Token) -> Result<(), EdgeError> {
        if self.entries.capacity() == 0 {
            begin_thread()?;
        }
        self.entries.push(Entry { guard: Guard::begin(task), token });
        if let Some(entry) = self.entries.last_mut() {
            entry.guard.arrive();
        }
        self.lone_root = token == ROOT && self.is_lone_root();
        Ok(())
    }

    fn is_lone_root(&self) -> bool {
        matches!(self.entries.as_slice(), [entry] if entry.token == ROOT && !entry.guard.keeps())
    }

    /// An operation that [`push_operation`] has found to be more than a look.
    #[cold]
    #[inline(never)]
    fn enter_operation(&mut self, task: Task) -> Result<Token, EdgeError> {
        self.checkpoint_all();
        self.lone_root = self.is_lone_root();
        if self.lone_root { Ok(ROOT) } else { self.enter(|| task) }
    }

    #[inline(always)]
    fn enter(&mut self, task: impl FnOnce() -> Task) -> Result<Token, EdgeError> {
        if self.entries.len() == DEEPEST {
            return Err(EdgeError::TooDeep);
        }
        let token = self.token();
        self.push(task(), token)?;
        Ok(token)
    }

    /// Ends the tasks from `depth` on, innermost first. All but the outermost of them have been forgotten.
    fn end(&mut self, depth: usize) -> u64 {
        self.beyond = 0;
        self.lone_root = false;
        while self.entries.len() > depth + 1 {
            drop(self.entries.pop());
            hygiene::count_not_left();
        }
        // Where it is: to move it costs as much as to close it.
        let left = self.entries.last().map_or(0, |entry| entry.guard.close_in_place());
        mem::forget(self.entries.pop());
        self.forget_what_is_gone();
        left
    }

    /// Records what all tasks have left so far. Only here: a task that is entered in a callback of OpenSSL's
    /// must not touch what the caller has in the queue.
    #[inline]
    fn checkpoint(&mut self) -> Option<u64> {
        if self.lone_root && !hygiene::any_dirty() {
            return Some(0);
        }
        self.checkpoint_all()
    }

    #[inline(never)]
    fn checkpoint_all(&mut self) -> Option<u64> {
        if self.entries.is_empty() {
            return None;
        }
        let clean = !hygiene::any_dirty() && !self.entries.iter().any(|entry| entry.guard.keeps());
        Some(if clean { 0 } else { self.settle() })
    }

    /// As if all tasks ended, the innermost first, and were entered again: each looks at its own errors alone,
    /// and afterwards none counts on errors that another has cleared.
    #[cold]
    #[inline(never)]
    fn settle(&mut self) -> u64 {
        self.lone_root = false;
        let left = self.entries.iter_mut().rev().map(|entry| entry.guard.settle()).sum();
        self.entries.iter_mut().for_each(|entry| entry.guard.keep());
        left
    }

    /// Somebody may have emptied the queue in a task that has just ended.
    #[inline(always)]
    fn forget_what_is_gone(&mut self) {
        for entry in self.entries.iter_mut().filter(|entry| entry.guard.keeps()) {
            entry.guard.keep_no_more();
        }
    }
}

/// Ends the tasks that the thread has never left.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        let mut entries = STACK.with(|stack| match stack.try_borrow_mut() {
            Ok(mut stack) => {
                stack.lone_root = false;
                mem::take(&mut *stack.entries)
            }
            Err(_) => Vec::new(),
        });
        while let Some(entry) = entries.pop() {
            drop(entry);
            hygiene::count_not_left();
        }
    }
}

thread_local! {
    /// Without a destructor, so that it is there whenever it is asked for, at no cost.
    static STACK: RefCell<Stack> =
        const { RefCell::new(Stack { entries: ManuallyDrop::new(Vec::new()),
            beyond: 0,
            tokens: 0..0,
            lone_root: false,
        }) };
    static AT_END: AtEnd = const { AtEnd };
}

static WAY: Shortcut<RefCell<Stack>> = Shortcut::new(&STACK);

/// Before a thread's first task: thread-locals are dropped in the reverse order of their first use, and
/// hygiene's must outlive the guards that end with the thread, to record what they find.
#[cold]
#[inline(never)]
fn begin_thread() -> Result<(), EdgeError> {
    hygiene::begin_thread();
    AT_END.try_with(|_| ()).map_err(|_| EdgeError::ThreadEnding)
}

#[cold]
fn unbalanced() -> EdgeError {
    begin_thread().err().unwrap_or(EdgeError::Unbalanced)
}

/// Enters a task on the calling thread; one beyond the limit is entered without a guard, and to be left
/// all the same.
pub(super) fn push(task: Task) -> Result<(), EdgeError> {
    let pushed = push_token(|| task);
    if pushed == Err(EdgeError::TooDeep) {
        with(|stack| {
            stack.beyond = stack.beyond.saturating_add(1);
            Ok(())
        })?;
    }
    pushed.map(drop)
}

/// Leaves the task that was entered last on the calling thread.
pub(super) fn pop() -> Result<(), EdgeError> {
    with(|stack| {
        if stack.beyond > 0 {
            stack.beyond -= 1;
            return Ok(());
        }
        stack.lone_root = false;
        drop(stack.entries.pop().ok_or_else(unbalanced)?);
        stack.forget_what_is_gone();
        Ok(())
    })
}

/// Enters a task on the calling thread. On an error there is none to leave.
///
/// The task is made where the guard is: passed through memory, it stalls on stores that are narrower than the
/// loads.
#[inline(always)]
pub(super) fn push_token(task: impl FnOnce() -> Task) -> Result<Token, EdgeError> {
    with(|stack| stack.enter(task))
}

/// Enters an operation in which somebody else empties the queue, after a [`checkpoint`]. As [`push_token`], but
/// directly in a worker's task the answer is [`ROOT`], and there is nothing to leave: the queue is clean, and
/// what the operation leaves is the worker's task's. That saves a server a guard for each operation.
#[inline(always)]
pub(super) fn push_operation(task: impl FnOnce() -> Task) -> Result<Token, EdgeError> {
    with(|stack| {
        if stack.lone_root && !hygiene::any_dirty() {
            return Ok(ROOT);
        }
        stack.enter_operation(task())
    })
}

/// Leaves the task of a token, and those that were entered in it and not left; returns how many errors it
/// left.
#[inline]
pub(super) fn pop_token(token: Token) -> Result<u64, EdgeError> {
    with(|stack| {
        let own = |entry: &Entry| entry.token == token && token != ROOT;
        let depth = stack.entries.iter().rposition(own);
        Ok(stack.end(depth.ok_or_else(unbalanced)?))
    })
}

/// Enters the task of a worker, which is in none: tasks that it has not left end first. As [`push_token`].
#[inline(always)]
pub(super) fn push_root(task: impl FnOnce() -> Task) -> Result<(), EdgeError> {
    with(|stack| {
        if !stack.entries.is_empty() {
            hygiene::count_not_left();
            stack.end(0);
        }
        stack.push(task(), ROOT)
    })
}

/// Leaves the task of [`push_root`] and all that were entered in it and not left; returns how many errors it
/// left.
#[inline]
pub(super) fn pop_root() -> Result<u64, EdgeError> {
    with(|stack| match stack.entries.first() {
        Some(entry) if entry.token == ROOT => Ok(stack.end(0)),
        _ => Err(unbalanced()),
    })
}

/// Records what each of the thread's tasks has left so far, under its own label; returns how many errors that
/// were, or nothing where the thread is in no task.
#[inline]
pub(super) fn checkpoint() -> Result<Option<u64>, EdgeError> {
    with(|stack| Ok(stack.checkpoint()))
}

/// Empties the thread's queues and gives its states back, after a [`checkpoint`]; returns how many errors went
/// without a record.
pub(super) fn clean_up() -> Result<usize, EdgeError> {
    with(|stack| {
        stack.checkpoint();
        let depth = hygiene::depth();
        hygiene::release_all();
        stack.forget_what_is_gone();
        Ok(depth)
    })
}

#[inline(always)]
fn with<R>(act: impl FnOnce(&mut Stack) -> Result<R, EdgeError>) -> Result<R, EdgeError> {
    WAY.with(|stack| {
        // A signal handler that interrupts us here must not call us (see the header); if it does,
        // it gets an error.
        let mut stack = stack.try_borrow_mut().map_err(|_| EdgeError::Internal)?;
        act(&mut stack)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        std::thread::spawn(work).join().unwrap()
    }

    #[test]
    fn enters_and_exits_stay_balanced_beyond_the_limit() {
        on_a_thread(|| {
            assert_eq!(pop(), Err(EdgeError::Unbalanced));
            for _ in 0..DEEPEST {
                assert_eq!(push(Task::new("deep")), Ok(()));
            }
            assert_eq!(push(Task::new("too deep")), Err(EdgeError::TooDeep));
            for _ in 0..=DEEPEST {
                assert_eq!(pop(), Ok(()));
            }
            assert_eq!(pop(), Err(EdgeError::Unbalanced));
        });
    }

    #[test]
    fn a_token_fits_its_task_alone() {
        let kept = on_a_thread(|| push_token(|| Task::new("elsewhere")).unwrap());
        on_a_thread(move || {
            assert_eq!(pop_token(1), Err(EdgeError::Unbalanced));
            let outer = push_token(|| Task::new("outer")).unwrap();
            let inner = push_token(|| Task::new("inner")).unwrap();
            let innermost = push_token(|| Task::new("innermost")).unwrap();
            assert!(0 < outer && outer < inner && inner < innermost);
            for other in [kept, 0, -1, innermost + 1] {
                assert_eq!(pop_token(other), Err(EdgeError::Unbalanced), "{other}");
            }
            assert_eq!(on_a_thread(move || pop_token(outer)), Err(EdgeError::Unbalanced));
            // With its outer one the innermost ends too.
            assert_eq!(pop_token(inner), Ok(0));
            assert_eq!(pop_token(innermost), Err(EdgeError::Unbalanced));
            assert_eq!(pop_token(inner), Err(EdgeError::Unbalanced));
            assert_eq!(pop_token(outer), Ok(0));
            assert_eq!(checkpoint(), Ok(None), "the thread is in no task");
        });
    }

    #[test]
    fn a_worker_starts_afresh() {
        on_a_thread(|| {
            assert_eq!(pop_root(), Err(EdgeError::Unbalanced));
            let forgotten = push_token(|| Task::new("forgotten")).unwrap();
            assert_eq!(pop_root(), Err(EdgeError::Unbalanced), "no worker's task");
            assert_eq!(push_root(|| Task::new("worker")), Ok(()));
            assert_eq!(pop_token(forgotten), Err(EdgeError::Unbalanced));
            let inner = push_token(|| Task::new("inner")).unwrap();
            assert_eq!(checkpoint(), Ok(Some(0)));
            assert_eq!(pop_root(), Ok(0));
            assert_eq!(pop_token(inner), Err(EdgeError::Unbalanced));
            assert_eq!(pop_root(), Err(EdgeError::Unbalanced));
        });
    }

    #[test]
    fn a_token_beyond_the_limit_needs_no_exit() {
        on_a_thread(|| {
            assert_eq!(push_root(|| Task::new("worker")), Ok(()));
            let outer = push_token(|| Task::new("outer")).unwrap();
            for _ in 2..DEEPEST {
                assert!(push_token(|| Task::new("deep")).is_ok());
            }
            assert_eq!(push_token(|| Task::new("too deep")), Err(EdgeError::TooDeep));
            assert_eq!(push(Task::new("too deep, from C")), Err(EdgeError::TooDeep));
            assert_eq!(pop_token(outer), Ok(0));
            assert_eq!(pop_root(), Ok(0));
        });
    }
}
