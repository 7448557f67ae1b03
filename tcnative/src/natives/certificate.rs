//! The natives of `SSLContext` and `SSL` about certificates.

use std::ffi::CString;

use jni::Env;
use jni::objects::{JByteArray, JObject, JString};
use jni::sys::{jint, jlong};

use crate::certificate::{Content, Secret};
use crate::java::{self, Refusal};
use crate::verify::{self, Level, Verifier};
use crate::{certificate, context};

/// A file and a folder of Java's; without both of them there is nothing to do.
fn paths(
    env: &mut Env<'_>,
    file: &JString<'_>,
    folder: &JString<'_>,
) -> Result<(Option<CString>, Option<CString>), Refusal> {
    let file = java::optional_text(env, "the file's path", file)?;
    let folder = java::optional_text(env, "the folder's path", folder)?;
    if file.is_none() && folder.is_none() {
        return Err(Refusal::Silent);
    }
    Ok((file, folder))
}

fn level(number: jint) -> Result<Level, Refusal> {
    Level::of(number).ok_or_else(|| {
        Refusal::exception(format!("{number} is no way to verify clients (SSL.SSL_CVERIFY_*)"))
    })
}

natives! {
    class SSLContext;

    /// Takes a certificate and its key from files.
    fn setCertificate(
        env, context: jlong, certificate: JString<'local>, key: JString<'local>,
        password: JString<'local>, slot: jint
    ) -> bool |native| {
        let context = context::get(context)?;
        let certificate = java::text(env, "the path of the certificate", &certificate)?;
        let key = java::optional_text(env, "the path of the key", &key)?;
        let password = java::optional_text(env, "the password", &password)?.map(Secret::from);
        certificate::set_from_files(
            &context, &certificate, key.as_deref(), password.as_deref(), slot
        )
    }

    /// Takes a certificate in DER and its key in PEM text.
    fn setCertificateRaw(
        env, context: jlong, certificate: JByteArray<'local>, key: JByteArray<'local>, slot: jint
    ) -> bool |native| {
        let context = context::get(context)?;
        let certificate = java::bytes(env, "the certificate", &certificate)?;
        let key = Content::from(java::bytes(env, "the key", &key)?);
        certificate::set_raw(&context, &certificate, &key, slot)?;
        Ok(true)
    }

    /// Takes the chain from a PEM file.
    fn setCertificateChainFile(
        env, context: jlong, file: JString<'local>, skip_first: bool
    ) -> bool |native| {
        let context = context::get(context)?;
        let file = java::optional_text(env, "the path of the chain", &file)?;
        Ok(file.is_some_and(|file| certificate::set_chain_file(&context, &file, skip_first)))
    }

    /// Adds a certificate in DER to the chain.
    fn addChainCertificateRaw(
        env, context: jlong, certificate: JByteArray<'local>
    ) -> bool |native| {
        let context = context::get(context)?;
        let certificate = java::bytes(env, "the certificate", &certificate)?;
        certificate::add_chain_raw(&context, &certificate)?;
        Ok(true)
    }

    /// Adds an authority that clients are told of.
    fn addClientCACertificateRaw(
        env, context: jlong, certificate: JByteArray<'local>
    ) -> bool |native| {
        let context = context::get(context)?;
        let certificate = java::bytes(env, "the certificate", &certificate)?;
        certificate::add_client_ca_raw(&context, &certificate)?;
        Ok(true)
    }

    /// Trusts authorities.
    fn setCACertificate(
        env, context: jlong, file: JString<'local>, folder: JString<'local>
    ) -> bool |native| {
        let context = context::get(context)?;
        let (file, folder) = paths(env, &file, &folder)?;
        verify::set_authorities(&context, file.as_deref(), folder.as_deref())?;
        Ok(true)
    }

    /// Checks certificates against revocation lists.
    fn setCARevocation(
        env, context: jlong, file: JString<'local>, folder: JString<'local>
    ) -> bool |native| {
        let context = context::get(context)?;
        let (file, folder) = paths(env, &file, &folder)?;
        verify::set_revocation(&context, file.as_deref(), folder.as_deref())?;
        Ok(true)
    }

    /// How clients are asked for certificates.
    fn setVerify(context: jlong, how: jint, depth: jint) -> () |native| {
        let context = context::get(context)?;
        verify::set_for_context(&context, level(how)?, depth);
        Ok(())
    }

    /// Lets Java verify peers.
    fn setCertVerifyCallback(env, context: jlong, verifier: JObject<'local>) -> () |native| {
        let context = context::get(context)?;
        let verifier =
            if verifier.is_null() { None } else { Some(Verifier::new(env, &verifier)?) };
        verify::set_verifier(&context, verifier);
        Ok(())
    }
}

/// Those of a connection.
mod ssl {
    use jni::sys::{jint, jlong, jobject};

    use super::level;
    use crate::java::{self, Refusal};
    use crate::{connection, verify};

    natives! {
        class SSL;

        /// How this client is asked for a certificate.
        fn setVerify(ssl: jlong, how: jint, depth: jint) -> () |native| {
            let connection = connection::get(ssl)?;
            verify::set_for_connection(&connection, level(how)?, depth);
            Ok(())
        }

        /// The peer's certificate.
        fn getPeerCertificate(env, ssl: jlong) -> jobject |native| {
            let connection = connection::get(ssl)?;
            let shown = verify::peer_certificate(&connection).ok_or(Refusal::Silent)?;
            java::bytes_of(env, &shown)
        }

        /// The peer's chain.
        fn getPeerCertChain(env, ssl: jlong) -> jobject |native| {
            let connection = connection::get(ssl)?;
            let chain = verify::peer_chain(&connection).ok_or(Refusal::Silent)?;
            Ok(java::array_of_bytes(env, &chain)?.into_raw())
        }
    }
}
