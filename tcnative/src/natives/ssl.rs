//! `org.apache.tomcat.jni.SSL`: the library itself, and connections.

use std::ffi::CStr;

use jni::objects::JString;
use jni::sys::{jint, jlong, jobject};

use crate::connection::{self, flow};
use crate::handle::Fact;
use crate::java::{self, Refusal};
use crate::{context, ffi, life, queue};

/// Whether the default provider is one that is validated for FIPS.
fn is_fips() -> bool {
    let nothing = std::ptr::null_mut();
    // SAFETY: both texts end with a NUL; EVP_MD_fetch(3).
    let digest = unsafe { ffi::EVP_MD_fetch(nothing, c"SHA2-512".as_ptr(), std::ptr::null()) };
    if digest.is_null() {
        return false;
    }
    // SAFETY: the digest is live.
    let provider = unsafe { ffi::EVP_MD_get0_provider(digest) };
    let name = if provider.is_null() {
        std::ptr::null()
    } else {
        // SAFETY: the digest keeps its provider alive.
        unsafe { ffi::OSSL_PROVIDER_get0_name(provider) }
    };
    let fips = if name.is_null() {
        false
    } else {
        // SAFETY: not null: a text of the provider's, which is still alive.
        let name = unsafe { CStr::from_ptr(name) };
        name == c"fips"
    };
    // SAFETY: fetched above, and given back once.
    unsafe { ffi::EVP_MD_free(digest) };
    fips
}

natives! {
    class SSL;

    /// OpenSSL's version number.
    fn version() -> jint |native| {
        // SAFETY: takes nothing. Java takes 32 bits.
        Ok(unsafe { ffi::OpenSSL_version_num() } as jint)
    }

    /// OpenSSL's version as a text.
    fn versionString(env) -> jobject |native| {
        // SAFETY: takes a number, and gives a constant text.
        let text = unsafe { ffi::OpenSSL_version(ffi::OPENSSL_VERSION) };
        // SAFETY: as above.
        java::string(env, unsafe { CStr::from_ptr(text) })
    }

    /// Initialises OpenSSL. An engine's name is ignored.
    fn initialize(_engine: jobject) -> jint |native| {
        life::initialize_ssl()?;
        Ok(0)
    }

    /// 1 where the default provider is a FIPS one.
    fn fipsModeGet() -> jint |native| { Ok(is_fips().into()) }

    /// OpenSSL 3 has providers instead.
    fn fipsModeSet(_mode: jint) -> jint |native| {
        Err(Refusal::exception(
            "FIPS mode cannot be set with OpenSSL 3: configure the FIPS provider in openssl.cnf",
        ))
    }

    /// OpenSSL seeds itself.
    hot fn randSet(_file: jobject) -> () {}

    /// Gives back what OpenSSL keeps for the calling thread, its error queue too. For threads of an application that
    /// end without telling OpenSSL so.
    fn threadCleanup() -> () |native| {
        if native.is_outermost() {
            // SAFETY: takes nothing; no call of OpenSSL's is going on in this thread, as there would be in a callback.
            unsafe { ffi::OPENSSL_thread_stop() };
        }
        Ok(())
    }

    /// Completed handshakes.
    fn getHandshakeCount(ssl: jlong) -> jint, else -1 |native| {
        Ok(connection::get(ssl)?.handshakes())
    }

    /// Makes a connection.
    fn newSSL(context: jlong, server: bool) -> jlong |native| {
        connection::make(context::get(context)?, server)
    }

    /// Frees a connection.
    fn freeSSL(ssl: jlong) -> () |native| {
        connection::free(ssl);
        Ok(())
    }

    /// Makes a connection's side towards the network.
    fn makeNetworkBIO(ssl: jlong) -> jlong |native| { connection::get(ssl)?.make_network() }

    /// Lets go of it.
    fn freeBIO(bio: jlong) -> () |native| {
        connection::free_network(bio);
        Ok(())
    }

    /// Bytes that wait to be sent.
    hot fn pendingWrittenBytesInBIO(bio: jlong) -> jint {
        connection::network_fact(bio, Fact::ToSend)
    }

    /// Bytes that can be read without more from the network.
    hot fn pendingReadableBytesInSSL(ssl: jlong) -> jint {
        connection::fact(ssl, Fact::Readable)
    }

    /// Takes ciphertext from the network.
    lazy fn writeToBIO(bio: jlong, address: jlong, length: jint) -> jint |native| {
        flow::write_network(native, &connection::of_network(bio)?, address, length)
    }

    /// Gives ciphertext to the network.
    lazy fn readFromBIO(bio: jlong, address: jlong, length: jint) -> jint |native| {
        flow::read_network(&connection::of_network(bio)?, address, length)
    }

    /// Takes plaintext.
    fn writeToSSL(ssl: jlong, address: jlong, length: jint) -> jint |native| {
        flow::write(native, &connection::get(ssl)?, address, length)
    }

    /// Gives plaintext.
    lazy fn readFromSSL(ssl: jlong, address: jlong, length: jint) -> jint |native| {
        flow::read(native, &connection::get(ssl)?, address, length)
    }

    /// 1: our end has been said, 2: the peer's.
    hot fn getShutdown(ssl: jlong) -> jint { connection::fact(ssl, Fact::Shutdown) }

    /// Says our end.
    fn shutdownSSL(ssl: jlong) -> jint |native| { flow::shut_down(&connection::get(ssl)?) }

    /// The first error of the last TLS call, once; 0 for none.
    hot fn getLastErrorNumber() -> jint { queue::take_last().cast_signed() }

    /// What an error number means.
    fn getErrorString(env, number: jlong) -> jobject |native| {
        // Numbers of 32 bits, which Java has given a sign.
        java::string(env, &queue::text(number.cast_unsigned() & u64::from(u32::MAX)))
    }

    /// OpenSSL's name of the cipher.
    fn getCipherForSSL(env, ssl: jlong) -> jobject |native| {
        java::string(env, connection::get(ssl)?.cipher())
    }

    /// The protocol.
    fn getVersion(env, ssl: jlong) -> jobject |native| {
        java::string(env, connection::get(ssl)?.version())
    }

    /// Begins, or goes on with, a handshake.
    fn doHandshake(ssl: jlong) -> jint |native| {
        flow::handshake(native, &connection::get(ssl)?)
    }

    /// Asks for another handshake (up to TLS 1.2).
    fn renegotiate(ssl: jlong) -> jint |native| {
        flow::renegotiate(native, &connection::get(ssl)?)
    }

    /// Whether that has not been done yet.
    fn renegotiatePending(ssl: jlong) -> jint |native| {
        Ok(connection::get(ssl)?.renegotiate_pending())
    }

    /// Asks a client for its certificate after the handshake (TLS 1.3).
    fn verifyClientPostHandshake(ssl: jlong) -> jint |native| {
        let connection = connection::get(ssl)?;
        let answer = connection.ask_after_handshake();
        if answer <= 0 {
            native.tls();
        }
        Ok(answer)
    }

    /// Whether the client has not answered yet.
    fn getPostHandshakeAuthInProgress(ssl: jlong) -> jint |native| {
        Ok(connection::get(ssl)?.is_pha_in_progress().into())
    }

    /// Java's trust manager has seen the answer.
    fn markPostHandshakeAuthComplete(ssl: jlong) -> () |native| {
        connection::get(ssl)?.complete_pha();
        Ok(())
    }

    /// Whether a handshake is going on.
    fn isInInit(ssl: jlong) -> jint |native| { Ok(connection::get(ssl)?.in_handshake()) }

    /// The application protocol that both sides agreed on.
    fn getAlpnSelected(env, ssl: jlong) -> jobject |native| {
        let connection = connection::get(ssl)?;
        let name = connection.application_protocol().ok_or(Refusal::Silent)?;
        Ok(JString::from_str(env, String::from_utf8_lossy(name))?.into_raw())
    }

    /// When the session began, in seconds since 1970.
    fn getTime(ssl: jlong) -> jlong |native| {
        connection::get(ssl)?
            .session_time()
            .ok_or_else(|| Refusal::exception("the SSL connection has no session"))
    }

    /// The session's id.
    fn getSessionId(env, ssl: jlong) -> jobject |native| {
        let connection = connection::get(ssl)?;
        java::bytes_of(env, connection.session_id().ok_or(Refusal::Silent)?)
    }

    /// Options of `SSL_OP_*`, of 32 bits: with the sign, as the C library does.
    fn setOptions(ssl: jlong, options: jint) -> () |native| {
        connection::get(ssl)?.add_options(i64::from(options).cast_unsigned());
        Ok(())
    }

    /// The lower 32 bits of the options.
    fn getOptions(ssl: jlong) -> jint |native| { Ok(connection::get(ssl)?.options() as jint) }

    /// All 64 bits.
    fn setOptionsLong(ssl: jlong, options: jlong) -> () |native| {
        connection::get(ssl)?.add_options(options.cast_unsigned());
        Ok(())
    }

    /// All 64 bits.
    fn getOptionsLong(ssl: jlong) -> jlong |native| {
        Ok(connection::get(ssl)?.options().cast_signed())
    }

    /// The names of the ciphers that are allowed.
    fn getCiphers(env, ssl: jlong) -> jobject |native| {
        let connection = connection::get(ssl)?;
        // SAFETY: the SSL is live, and this thread uses it.
        let ciphers = unsafe { ffi::SSL_get_ciphers(connection.ssl()) };
        context::ciphers::array(env, ciphers)
    }

    /// Allows these ciphers (up to TLS 1.2).
    fn setCipherSuites(env, ssl: jlong, ciphers: JString<'local>) -> bool |native| {
        let connection = connection::get(ssl)?;
        context::ciphers::set_on_connection(env, &connection, &ciphers)
    }

    /// Allows these cipher suites of TLS 1.3.
    fn setCipherSuitesEx(env, ssl: jlong, suites: JString<'local>) -> bool |native| {
        let connection = connection::get(ssl)?;
        context::ciphers::set_suites_on_connection(env, &connection, &suites)
    }
}
