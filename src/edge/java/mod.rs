//! The natives of `org.sslsweep.Natives`. What each does is said there.
//!
//! Those on the path of a task do not touch the JVM: they take numbers, give numbers, and act on the calling
//! thread. The crate `jni` makes the strings, the exceptions and the calls into Java of the others.

// The names are Java's.
#![allow(non_snake_case)]

mod env;
mod leftovers;
mod load;
mod pin;

use jni::objects::JString;
use jni::sys::{jboolean, jint, jlong, jobject};

pub(super) use env::enter;
pub(super) use load::is_refused;

use super::{EdgeError, c, stack};
use crate::hygiene::{self, Label, Policy, Release, Task};

jni_export! {
    /// See `Natives.label`.
    fn Java_org_sslsweep_Natives_label(env, text: JString<'local>) -> jint {
        let label = if text.is_null() {
            c::label(c::UNNAMED)
        } else {
            c::label(&text.try_to_string(env)?)
        };
        Ok(label.number() as jint)
    }

    /// See `Natives.enter`.
    fn Java_org_sslsweep_Natives_enter(label: jint, options: jint, connection: jlong) -> jlong {
        stack::push_token(|| task(label, options, connection))
    }

    /// See `Natives.exit`.
    fn Java_org_sslsweep_Natives_exit(token: jlong) -> jint {
        stack::pop_token(token).map(count)
    }

    /// See `Natives.enterRoot`.
    fn Java_org_sslsweep_Natives_enterRoot(label: jint, options: jint, connection: jlong) -> jint {
        stack::push_root(|| task(label, options, connection)).map(|()| 0)
    }

    /// See `Natives.exitRoot`.
    fn Java_org_sslsweep_Natives_exitRoot() -> jint {
        stack::pop_root().map(count)
    }

    /// See `Natives.checkpoint`.
    fn Java_org_sslsweep_Natives_checkpoint(label: jint, options: jint) -> jint {
        let recorded = match stack::checkpoint()? {
            Some(recorded) => Some(recorded),
            None => hygiene::sweep_arrivals(task(label, options, 0)),
        };
        recorded.map(count).ok_or(EdgeError::Unbalanced)
    }

    /// See `Natives.enterOperation`.
    fn Java_org_sslsweep_Natives_enterOperation(
        label: jint, options: jint, connection: jlong
    ) -> jlong {
        stack::push_operation(|| task(label, options, connection))
    }

    /// See `Natives.sweep`.
    fn Java_org_sslsweep_Natives_sweep(label: jint, options: jint) -> jint {
        hygiene::sweep(task(label, options, 0)).map(count).ok_or(EdgeError::Unbalanced)
    }

    /// See `Natives.threadCleanup`.
    fn Java_org_sslsweep_Natives_threadCleanup() -> jint {
        Ok(stack::clean_up()? as jint)
    }

    /// See `Natives.depth`.
    fn Java_org_sslsweep_Natives_depth() -> jint {
        Ok(hygiene::depth() as jint)
    }

    /// See `Natives.pin`.
    fn Java_org_sslsweep_Natives_pin(env) -> jboolean {
        pin::pin(env)
    }

    /// See `Natives.unpin`.
    fn Java_org_sslsweep_Natives_unpin(env) -> () {
        pin::unpin(env)
    }

    /// See `Natives.snapshot`.
    fn Java_org_sslsweep_Natives_snapshot(env) -> jobject {
        let json = serde_json::to_string(&c::snapshot()).map_err(|_| EdgeError::Internal)?;
        Ok(JString::from_str(env, json)?.into_raw())
    }

    /// See `Natives.prometheus`.
    fn Java_org_sslsweep_Natives_prometheus(env) -> jobject {
        Ok(JString::from_str(env, c::snapshot().to_prometheus())?.into_raw())
    }

    /// See `Natives.leftovers`.
    fn Java_org_sslsweep_Natives_leftovers(env, most: jint) -> jobject {
        Ok(leftovers::array(env, usize::try_from(most).unwrap_or(0))?.into_raw())
    }

    /// See `Natives.reset`.
    fn Java_org_sslsweep_Natives_reset() -> () {
        hygiene::reset();
        Ok(())
    }

    /// See `Natives.version`.
    fn Java_org_sslsweep_Natives_version(env) -> jobject {
        Ok(JString::from_str(env, env!("CARGO_PKG_VERSION"))?.into_raw())
    }

    /// See `Natives.nothing`.
    fn Java_org_sslsweep_Natives_nothing() -> () {
        Ok(())
    }
}

/// The task that Java means. Options are `Options.packed`: bits 0 and 1 are the policy, bits 2 to 4 the release,
/// in the order of Java's enumerations.
#[inline]
fn task(label: jint, options: jint, connection: jlong) -> Task {
    let mut task = Task::new(Label::numbered(label)).policy(match options & 3 {
        1 => Policy::RollBack,
        2 => Policy::Observe,
        // ASSERT clears as well, and it is Java that throws.
        _ => Policy::Clear,
    });
    let release = match options >> 2 & 7 {
        1 => Some(Release::EveryTask),
        2 => Some(Release::ThreadExit),
        3 => Some(Release::Park),
        4 => Some(Release::Never),
        _ => None,
    };
    if let Some(release) = release {
        task = task.release(release);
    }
    // Java has no unsigned number; a connection's is one of Java's own.
    if connection != 0 { task.connection(connection.cast_unsigned()) } else { task }
}

fn count(errors: u64) -> jint {
    jint::try_from(errors).unwrap_or(jint::MAX)
}
