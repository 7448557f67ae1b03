//! `org.apache.tomcat.jni.SSLConf`.

use std::sync::Arc;

use jni::objects::JString;
use jni::sys::{jint, jlong};

use crate::conf::{self, CONFS, Conf};
use crate::java::{self, Refusal};
use crate::pool::{self, Owned};
use crate::{context, life};

natives! {
    class SSLConf;

    /// Makes a configuration, which belongs to a pool.
    fn make(pool: jlong, flags: jint) -> jlong |native| {
        life::initialized()?;
        let pool = pool::get(pool)
            .ok_or_else(|| Refusal::exception(format!("{pool:#x} is no pool, or one that was destroyed")))?;
        let handle = CONFS
            .add(Arc::new(Conf::make(flags)?))
            .ok_or_else(|| Refusal::exception("there are too many SSL configurations"))?;
        if !pool.add(Owned::Conf(handle)) {
            drop(CONFS.remove(handle));
            return Err(Refusal::exception("the pool is being destroyed"));
        }
        Ok(handle)
    }

    /// Frees it.
    fn free(conf: jlong) -> () |native| {
        drop(CONFS.remove(conf));
        Ok(())
    }

    /// Whether a command is known.
    fn check(env, conf: jlong, name: JString<'local>, value: JString<'local>) -> jint, else -9 |native| {
        let conf = conf::get(conf)?;
        let name = java::text(env, "the name of the SSL configuration command", &name)?;
        let value = java::optional_text(env, "the value of the command", &value)?;
        conf.check(&name, value.as_deref())
    }

    /// Gives it the context that its commands act on.
    fn assign(conf: jlong, context: jlong) -> () |native| {
        conf::get(conf)?.assign(context::get(context)?);
        Ok(())
    }

    /// Does a command.
    fn apply(env, conf: jlong, name: JString<'local>, value: JString<'local>) -> jint, else -9 |native| {
        let conf = conf::get(conf)?;
        let name = java::text(env, "the name of the SSL configuration command", &name)?;
        let value = java::optional_text(env, "the value of the command", &value)?;
        conf.apply(&name, value.as_deref())
    }

    /// Does what commands have put off.
    fn finish(conf: jlong) -> jint, else -9 |native| { conf::get(conf)?.finish() }
}
