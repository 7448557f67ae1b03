//! The tasks that a thread has entered from C and not yet left.
//!
//! Calls are balanced even when they fail: an enter beyond the limit is counted without a guard, so that
//! its exit does not end a task that is still going on. Tasks that a thread never leaves end with the
//! thread, innermost first.

use std::cell::RefCell;

use super::EdgeError;
use crate::hygiene::{Guard, Task};

/// So many tasks can be nested on one thread.
pub(super) const DEEPEST: usize = 64;

#[derive(Default)]
struct Stack {
    guards: Vec<Guard>,
    /// Tasks that were entered beyond the limit, the innermost ones; they have no guard.
    beyond: usize,
}

impl Drop for Stack {
    fn drop(&mut self) {
        while let Some(guard) = self.guards.pop() {
            drop(guard);
        }
    }
}

thread_local! {
    static STACK: RefCell<Stack> = const { RefCell::new(Stack { guards: Vec::new(), beyond: 0 }) };
}

/// Enters a task on the calling thread.
pub(super) fn push(task: Task) -> Result<(), EdgeError> {
    // Before the stack is touched: thread-locals are dropped in the reverse order of their first use, and
    // hygiene's, which a thread's first guard uses before anything else, must outlive the guards that end
    // with the thread, to record what they find.
    let guard = Guard::enter(task);
    with(|stack| {
        if stack.guards.len() == DEEPEST {
            stack.beyond = stack.beyond.saturating_add(1);
            return Err(EdgeError::TooDeep);
        }
        stack.guards.push(guard);
        Ok(())
    })
}

/// Leaves the task that was entered last on the calling thread.
pub(super) fn pop() -> Result<(), EdgeError> {
    with(|stack| {
        if stack.beyond > 0 {
            stack.beyond -= 1;
            return Ok(());
        }
        stack.guards.pop().map(drop).ok_or(EdgeError::Unbalanced)
    })
}

fn with<R>(act: impl FnOnce(&mut Stack) -> Result<R, EdgeError>) -> Result<R, EdgeError> {
    STACK
        .try_with(|stack| {
            // A signal handler that interrupts us here must not call us (see the header); if it does,
            // it gets an error.
            let mut stack = stack.try_borrow_mut().map_err(|_| EdgeError::Internal)?;
            act(&mut stack)
        })
        .unwrap_or(Err(EdgeError::ThreadEnding))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enters_and_exits_stay_balanced_beyond_the_limit() {
        std::thread::spawn(|| {
            assert_eq!(pop(), Err(EdgeError::Unbalanced));
            for _ in 0..DEEPEST {
                assert_eq!(push(Task::new("deep")), Ok(()));
            }
            assert_eq!(push(Task::new("too deep")), Err(EdgeError::TooDeep));
            for _ in 0..=DEEPEST {
                assert_eq!(pop(), Ok(()));
            }
            assert_eq!(pop(), Err(EdgeError::Unbalanced));
        })
        .join()
        .unwrap();
    }
}
