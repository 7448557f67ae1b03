//! `org.apache.tomcat.jni.Pool`.

use jni::sys::jlong;

use crate::java::Refusal;
use crate::{life, pool};

natives! {
    class Pool;

    /// Makes a pool inside another one; 0 is the library's own.
    fn create(parent: jlong) -> jlong |native| {
        life::initialized()?;
        pool::create(parent)
            .ok_or_else(|| Refusal::exception(format!("{parent:#x} is no pool, or one that was destroyed")))
    }

    /// Destroys a pool and what belongs to it.
    fn destroy(pool: jlong) -> () |native| {
        pool::destroy(pool);
        Ok(())
    }
}
