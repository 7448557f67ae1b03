//! `org.apache.tomcat.jni.Library`.

use jni::sys::{jint, jobject};

use crate::{java, life};

/// The API that this is: that of tomcat-native 2.0.16.
const VERSION: [jint; 3] = [2, 0, 16];
/// There is no APR; Java wants one of 1.x.
const APR: [jint; 3] = [1, 7, 2];

natives! {
    class Library;

    /// Begins.
    fn initialize() -> bool |native| {
        life::initialize();
        Ok(true)
    }

    /// Ends, with all that is left.
    fn terminate() -> () |native| {
        life::terminate();
        Ok(())
    }

    /// Version numbers by selector.
    hot fn version(what: jint) -> jint {
        let [major, minor, patch] = VERSION;
        let [apr_major, apr_minor, apr_patch] = APR;
        match what {
            0x01 => major,
            0x02 => minor,
            0x03 => patch,
            0x11 => apr_major,
            0x12 => apr_minor,
            0x13 => apr_patch,
            _ => 0,
        }
    }

    /// For the log.
    fn versionString(env) -> jobject |native| {
        let text = concat!("2.0.16 (sslsweep ", env!("CARGO_PKG_VERSION"), ")");
        Ok(jni::objects::JString::from_str(env, text)?.into_raw())
    }

    /// For the log.
    fn aprVersionString(env) -> jobject |native| { java::string(env, c"1.7.2") }

    /// What APR can do, which Tomcat 9 asks for. It refuses a library without threads; the rest are what this platform
    /// has, except sockets and files, which are for the APR connector alone.
    hot fn has(what: jint) -> bool {
        // IPv6, threads, file names in Unicode, users, large files, files shared among threads, Unix sockets.
        matches!(what, 0 | 2 | 10 | 12 | 13 | 14 | 22)
            // Big endian.
            || (what == 16 && cfg!(target_endian = "big"))
    }

    /// Sizes of APR, which Tomcat 9 asks for.
    hot fn size(what: jint) -> jint {
        match what {
            1 => size_of::<usize>() as jint,
            2 => libc::PATH_MAX,
            3 => 256,
            4 => 1024,
            5 => 30,
            _ => 0,
        }
    }
}
