//! `SSLConf`: OpenSSL's own configuration commands (SSL_CONF_cmd(3)), which an operator writes into `server.xml`.

use std::ffi::{CStr, c_int};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jni::sys::jlong;

use crate::context::{self, Context};
use crate::ffi::{self, SSL_CONF_CTX};
use crate::handle::{Kind, Shared};
use crate::java::Refusal;
use crate::queue;
use crate::verify::Ocsp;

/// All configurations that Java has.
pub(crate) static CONFS: Shared<Conf> = Shared::new(Kind::Conf);

/// A configuration, whose commands act on the context that it was given.
pub(crate) struct Conf(Mutex<Inner>);

struct Inner {
    conf: *mut SSL_CONF_CTX,
    /// The one that it acts on. It must not go before the configuration.
    context: Option<Arc<Context>>,
    ocsp: Ocsp,
}

// SAFETY: no thread owns an SSL_CONF_CTX; the mutex lets one use it at a time.
unsafe impl Send for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: made by SSL_CONF_CTX_new, and given back once, before the context.
        unsafe { ffi::SSL_CONF_CTX_free(self.conf) };
    }
}

/// The configuration that a handle names.
pub(crate) fn get(handle: jlong) -> Result<Arc<Conf>, Refusal> {
    CONFS.get(handle).ok_or_else(|| {
        Refusal::exception(format!("{handle:#x} is no SSL configuration, or one that was freed"))
    })
}

/// What OCSP is to be like after a command that tomcat-native adds to those of OpenSSL; nothing for another command.
fn ocsp(before: Ocsp, name: &CStr, value: Option<&CStr>) -> Result<Option<Ocsp>, Refusal> {
    let is_false = value.is_some_and(|value| value.to_bytes().eq_ignore_ascii_case(b"false"));
    let number = |least: i32| {
        let value = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.trim().parse::<i32>().ok().filter(|&number| number >= least).ok_or_else(|| {
            Refusal::exception(format!(
                "{}={value}: the value must be a whole number, {least} or more",
                name.to_string_lossy()
            ))
        })
    };
    Ok(Some(match name.to_bytes() {
        b"NO_OCSP_CHECK" => Ocsp { asks: is_false, ..before },
        b"OCSP_SOFT_FAIL" => Ocsp { soft_fail: !is_false, ..before },
        b"OCSP_TIMEOUT" => {
            let timeout = Duration::from_millis(number(1)?.unsigned_abs().into());
            Ocsp { timeout, ..before }
        }
        b"OCSP_VERIFY_FLAGS" => Ocsp { flags: number(0)?.unsigned_abs().into(), ..before },
        _ => return Ok(None),
    }))
}

/// A file or folder that a command names must be there, or the command fails without saying why.
fn check_path(kind: c_int, name: &CStr, value: Option<&CStr>) -> Result<(), Refusal> {
    let wanted = match kind {
        ffi::SSL_CONF_TYPE_FILE => "a file that is not empty",
        ffi::SSL_CONF_TYPE_DIR => "a folder",
        _ => return Ok(()),
    };
    let path = Path::new(std::ffi::OsStr::from_bytes(value.map_or(b"", CStr::to_bytes)));
    let good = fs::metadata(path).is_ok_and(|found| match kind {
        ffi::SSL_CONF_TYPE_FILE => found.is_file() && found.len() > 0,
        _ => found.is_dir(),
    });
    if good {
        return Ok(());
    }
    Err(Refusal::exception(format!(
        "SSL configuration command {}: {} is not {wanted}",
        name.to_string_lossy(),
        path.display()
    )))
}

fn failed(what: &str, name: &CStr) -> Refusal {
    Refusal::exception(format!(
        "{what} SSL configuration command {} failed: {}",
        name.to_string_lossy(),
        queue::pop_text()
    ))
}

fn pointer(value: Option<&CStr>) -> *const std::ffi::c_char {
    value.map_or(std::ptr::null(), CStr::as_ptr)
}

impl Conf {
    /// Makes one with flags of SSL_CONF_CTX_set_flags(3).
    pub(crate) fn make(flags: i32) -> Result<Self, Refusal> {
        // SAFETY: takes nothing.
        let conf = unsafe { ffi::SSL_CONF_CTX_new() };
        if conf.is_null() {
            return Err(Refusal::exception(format!(
                "the SSL configuration cannot be made: {}",
                queue::pop_text()
            )));
        }
        // SAFETY: made above.
        unsafe { ffi::SSL_CONF_CTX_set_flags(conf, flags.cast_unsigned()) };
        Ok(Self(Mutex::new(Inner { conf, context: None, ocsp: Ocsp::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a command of OCSP; returns whether it is one. Tomcat checks all before it assigns a context.
    fn set_ocsp(&self, name: &CStr, value: Option<&CStr>) -> Result<bool, Refusal> {
        let mut inner = self.lock();
        let Some(after) = ocsp(inner.ocsp, name, value)? else { return Ok(false) };
        inner.ocsp = after;
        if let Some(context) = &inner.context {
            context.set_ocsp(after);
        }
        Ok(true)
    }

    /// Whether a command is known and its value may be right; changes nothing but what is to be with OCSP.
    pub(crate) fn check(&self, name: &CStr, value: Option<&CStr>) -> Result<i32, Refusal> {
        if self.set_ocsp(name, value)? {
            return Ok(1);
        }
        // SAFETY: the configuration is live, and ours meanwhile; the name ends with a NUL.
        let kind = unsafe { ffi::SSL_CONF_cmd_value_type(self.lock().conf, name.as_ptr()) };
        if kind == ffi::SSL_CONF_TYPE_UNKNOWN {
            return Err(Refusal::exception(format!(
                "SSL configuration command {} is not known to OpenSSL",
                name.to_string_lossy()
            )));
        }
        check_path(kind, name, value)?;
        Ok(1)
    }

    /// Gives it the context that its commands act on.
    pub(crate) fn assign(&self, context: Arc<Context>) {
        let mut inner = self.lock();
        let changing = context.changing();
        // SAFETY: both are live; the context is kept for as long as the configuration has it.
        unsafe { ffi::SSL_CONF_CTX_set_ssl_ctx(inner.conf, changing.context) };
        drop(changing);
        context.set_ocsp(inner.ocsp);
        let before = inner.context.replace(context);
        drop(inner);
        drop(before);
    }

    /// Does a command.
    pub(crate) fn apply(&self, name: &CStr, value: Option<&CStr>) -> Result<i32, Refusal> {
        if self.set_ocsp(name, value)? {
            return Ok(1);
        }
        let ciphers = value
            .filter(|_| name.to_bytes().eq_ignore_ascii_case(b"CipherString"))
            .map(context::ciphers::permitted);
        let value = ciphers.as_deref().or(value);
        let inner = self.lock();
        let _changing = inner.context.as_ref().map(|context| context.changing());
        // SAFETY: configuration and context are live, and ours meanwhile; both texts end with a NUL.
        let done = unsafe { ffi::SSL_CONF_cmd(inner.conf, name.as_ptr(), pointer(value)) };
        if done > 0 && queue::is_empty() { Ok(done) } else { Err(failed("applying", name)) }
    }

    /// Ends it: what was put off is done.
    pub(crate) fn finish(&self) -> Result<i32, Refusal> {
        let inner = self.lock();
        let _changing = inner.context.as_ref().map(|context| context.changing());
        // SAFETY: configuration and context are live, and ours meanwhile.
        let done = unsafe { ffi::SSL_CONF_CTX_finish(inner.conf) };
        if done > 0 && queue::is_empty() { Ok(done) } else { Err(failed("finishing the", c"")) }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    /// As Tomcat gives: file, server, certificate, show errors.
    const FLAGS: i32 = 0x3a;

    fn said(result: Result<i32, Refusal>) -> String {
        result.map_or_else(|refusal| refusal.to_string(), |done| done.to_string())
    }

    #[test]
    fn commands_act_on_the_context_and_mistakes_are_named() {
        let context = Arc::new(Context::make(48, 1).unwrap());
        let conf = Conf::make(FLAGS).unwrap();
        conf.assign(context.clone());
        assert_eq!(said(conf.check(c"Protocol", Some(c"-TLSv1.3"))), "1");
        assert!(conf.apply(c"Protocol", Some(c"-TLSv1.3")).unwrap() > 0);
        assert!(conf.apply(c"CipherString", Some(c"ECDHE-RSA-AES128-GCM-SHA256")).unwrap() > 0);
        assert!(conf.finish().is_ok());
        assert_ne!(context.options() & ffi::SSL_OP_NO_TLSv1_3, 0);

        assert!(said(conf.check(c"Nonsense", None)).contains("Nonsense is not known"));
        assert!(
            said(conf.apply(c"CipherString", Some(c"no-such"))).contains("CipherString failed")
        );
        assert!(
            said(conf.check(c"DHParameters", Some(c"/no/such"))).contains("/no/such is not a file")
        );
        let folder = CString::new("/").unwrap();
        assert!(said(conf.check(c"DHParameters", Some(&folder))).contains("/ is not a file"));
        queue::clear();
    }

    #[test]
    fn what_is_said_of_ocsp_is_the_contexts_whenever_it_is_assigned() {
        let conf = Conf::make(FLAGS).unwrap();
        assert_eq!(said(conf.check(c"NO_OCSP_CHECK", Some(c"FALSE"))), "1");
        assert_eq!(said(conf.check(c"OCSP_TIMEOUT", Some(c"500"))), "1");
        assert!(said(conf.check(c"OCSP_TIMEOUT", Some(c"soon"))).contains("whole number"));
        assert!(said(conf.check(c"OCSP_TIMEOUT", Some(c"0"))).contains("1 or more"));
        let context = Arc::new(Context::make(32, 1).unwrap());
        assert!(!context.ocsp().asks);
        conf.assign(Arc::clone(&context));
        assert_eq!(said(conf.apply(c"OCSP_SOFT_FAIL", Some(c"false"))), "1");
        assert_eq!(said(conf.apply(c"OCSP_VERIFY_FLAGS", Some(c"4"))), "1");
        let timeout = Duration::from_millis(500);
        assert_eq!(context.ocsp(), Ocsp { asks: true, soft_fail: false, timeout, flags: 4 });
        assert_eq!(said(conf.apply(c"NO_OCSP_CHECK", Some(c"true"))), "1");
        assert!(!context.ocsp().asks);
    }
}
