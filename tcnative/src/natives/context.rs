//! `org.apache.tomcat.jni.SSLContext`, but for certificates.

use std::sync::Arc;

use jni::objects::{JByteArray, JObjectArray, JString};
use jni::sys::{jint, jlong, jobject};

use crate::context::{self, CONTEXTS, Context, Counter, Fallback, ciphers};
use crate::java::{self, Refusal};
use crate::pool::{self, Owned};
use crate::{ffi, life};

fn counter(context: jlong, counter: Counter) -> Result<jlong, Refusal> {
    Ok(context::get(context)?.session_counter(counter))
}

natives! {
    class SSLContext;

    /// Makes a context for protocols of `SSL.SSL_PROTOCOL_*`, which belongs to a pool.
    fn make(pool: jlong, protocols: jint, mode: jint) -> jlong |native| {
        life::initialized()?;
        let pool = pool::get(pool)
            .ok_or_else(|| Refusal::exception(format!("{pool:#x} is no pool, or one that was destroyed")))?;
        let handle = CONTEXTS
            .add(Arc::new(Context::make(protocols, mode)?))
            .ok_or_else(|| Refusal::exception("there are too many SSL contexts"))?;
        if !pool.add(Owned::Context(handle)) {
            drop(CONTEXTS.remove(handle));
            return Err(Refusal::exception("the pool is being destroyed"));
        }
        Ok(handle)
    }

    /// Frees a context; its connections keep what they need.
    fn free(context: jlong) -> jint |native| {
        drop(CONTEXTS.remove(context));
        Ok(0)
    }

    /// Options of `SSL_OP_*`, of 32 bits: with the sign, as the C library does.
    fn setOptions(context: jlong, options: jint) -> () |native| {
        context::add_options(&*context::get(context)?, i64::from(options).cast_unsigned());
        Ok(())
    }

    /// The lower 32 bits of the options.
    fn getOptions(context: jlong) -> jint |native| { Ok(context::get(context)?.options() as jint) }

    /// As `setOptions`.
    fn clearOptions(context: jlong, options: jint) -> () |native| {
        context::remove_options(&*context::get(context)?, i64::from(options).cast_unsigned());
        Ok(())
    }

    /// All 64 bits.
    fn setOptionsLong(context: jlong, options: jlong) -> () |native| {
        context::add_options(&*context::get(context)?, options.cast_unsigned());
        Ok(())
    }

    /// All 64 bits.
    fn getOptionsLong(context: jlong) -> jlong |native| {
        Ok(context::get(context)?.options().cast_signed())
    }

    /// All 64 bits.
    fn clearOptionsLong(context: jlong, options: jlong) -> () |native| {
        context::remove_options(&*context::get(context)?, options.cast_unsigned());
        Ok(())
    }

    /// The names of the ciphers that are allowed.
    fn getCiphers(env, context: jlong) -> jobject |native| {
        let context = context::get(context)?;
        let reading = context.reading();
        // SAFETY: the context is live, and not being changed meanwhile.
        let list = unsafe { ffi::SSL_CTX_get_ciphers(reading.context) };
        ciphers::array(env, list)
    }

    /// Allows these ciphers (up to TLS 1.2).
    fn setCipherSuite(env, context: jlong, list: JString<'local>) -> bool |native| {
        ciphers::set_on_context(env, &*context::get(context)?, &list)
    }

    /// Allows these cipher suites of TLS 1.3.
    fn setCipherSuitesEx(env, context: jlong, list: JString<'local>) -> bool |native| {
        ciphers::set_suites_on_context(env, &*context::get(context)?, &list)
    }

    /// Turns the session cache on, with so much room; returns what it had.
    fn setSessionCacheSize(context: jlong, size: jlong) -> jlong |native| {
        Ok(context::get(context)?.set_session_cache_size(size))
    }

    /// The room of the session cache.
    fn getSessionCacheSize(context: jlong) -> jlong |native| {
        Ok(context::get(context)?.session_cache_size())
    }

    /// How long sessions last, in seconds; returns what it was.
    fn setSessionCacheTimeout(context: jlong, seconds: jlong) -> jlong |native| {
        Ok(context::get(context)?.set_session_timeout(seconds))
    }

    /// How long sessions last, in seconds.
    fn getSessionCacheTimeout(context: jlong) -> jlong |native| {
        Ok(context::get(context)?.session_timeout())
    }

    /// 0: off, 2: on; returns what it was.
    fn setSessionCacheMode(context: jlong, mode: jlong) -> jlong |native| {
        Ok(context::get(context)?.set_session_cache_mode(mode))
    }

    /// 0: off, 2: on.
    fn getSessionCacheMode(context: jlong) -> jlong |native| {
        Ok(context::get(context)?.session_cache_mode())
    }

    /// SSL_CTX_sess_accept(3).
    fn sessionAccept(context: jlong) -> jlong |native| { counter(context, Counter::Accept) }

    /// SSL_CTX_sess_accept_good(3).
    fn sessionAcceptGood(context: jlong) -> jlong |native| {
        counter(context, Counter::AcceptGood)
    }

    /// SSL_CTX_sess_accept_renegotiate(3).
    fn sessionAcceptRenegotiate(context: jlong) -> jlong |native| {
        counter(context, Counter::AcceptRenegotiate)
    }

    /// SSL_CTX_sess_cache_full(3).
    fn sessionCacheFull(context: jlong) -> jlong |native| { counter(context, Counter::CacheFull) }

    /// SSL_CTX_sess_cb_hits(3).
    fn sessionCbHits(context: jlong) -> jlong |native| { counter(context, Counter::CallbackHits) }

    /// SSL_CTX_sess_connect(3).
    fn sessionConnect(context: jlong) -> jlong |native| { counter(context, Counter::Connect) }

    /// SSL_CTX_sess_connect_good(3).
    fn sessionConnectGood(context: jlong) -> jlong |native| {
        counter(context, Counter::ConnectGood)
    }

    /// SSL_CTX_sess_connect_renegotiate(3).
    fn sessionConnectRenegotiate(context: jlong) -> jlong |native| {
        counter(context, Counter::ConnectRenegotiate)
    }

    /// SSL_CTX_sess_hits(3).
    fn sessionHits(context: jlong) -> jlong |native| { counter(context, Counter::Hits) }

    /// SSL_CTX_sess_misses(3).
    fn sessionMisses(context: jlong) -> jlong |native| { counter(context, Counter::Misses) }

    /// SSL_CTX_sess_number(3).
    fn sessionNumber(context: jlong) -> jlong |native| { counter(context, Counter::Number) }

    /// SSL_CTX_sess_timeouts(3).
    fn sessionTimeouts(context: jlong) -> jlong |native| { counter(context, Counter::Timeouts) }

    /// 80 bytes.
    fn setSessionTicketKeys(env, context: jlong, keys: JByteArray<'local>) -> () |native| {
        let context = context::get(context)?;
        context.set_ticket_keys(java::bytes(env, "the array of session ticket keys", &keys)?)
    }

    /// Application protocols, the best first; 1: without a common one the last is taken.
    fn setAlpnProtos(
        env, context: jlong, names: JObjectArray<'local, JString<'local>>, failure: jint
    ) -> () |native| {
        let context = context::get(context)?;
        let Some(names) = java::texts(env, &names)? else { return Ok(()) };
        let fallback = if failure == 1 { Fallback::Last } else { Fallback::None };
        context.set_protocols(&names, fallback)
    }

    /// At most 32 bytes.
    fn setSessionIdContext(env, context: jlong, id: JByteArray<'local>) -> bool |native| {
        let context = context::get(context)?;
        Ok(context.set_session_id_context(&java::bytes(env, "the session id context", &id)?))
    }
}
