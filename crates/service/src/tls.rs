//! How we speak to web servers that we call: with the cryptography that is linked anyway, trusting whom the machine
//! trusts.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

pub(crate) fn config() -> TlsConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    TlsConfig::builder().root_certs(roots()).unversioned_rustls_crypto_provider(provider).build()
}

/// Whom the machine trusts, so that a server of a company's own works as it does for other programs. A container often
/// trusts nobody, for want of a list; there the one of Mozilla's is taken that comes with us.
fn roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return RootCerts::WebPki;
    }
    let owned = found.iter().map(|certificate| Certificate::from_der(certificate).to_owned());
    RootCerts::from(owned)
}
