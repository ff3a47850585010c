//! A small issuer over loopback HTTP, which can also behave badly, and keys that really sign.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair,
};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A pair of keys with a name.
pub(super) struct Pair {
    pub(super) algorithm: Algorithm,
    pub(super) id: &'static str,
    pub(super) private: EncodingKey,
}

impl Pair {
    pub(super) fn new(algorithm: Algorithm, id: &'static str) -> Self {
        let private = match algorithm {
            Algorithm::ES256 => {
                let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
                EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref())
            }
            Algorithm::EdDSA => {
                let pair = Ed25519KeyPair::generate().unwrap();
                EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref())
            }
            _ => {
                let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
                let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
                // What stands in front of the key itself always has this length.
                EncodingKey::from_rsa_der(&der.as_ref()[26..])
            }
        };
        Self { algorithm, id, private }
    }

    /// The public one, as an issuer publishes it.
    pub(super) fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.private, self.algorithm).unwrap();
        key.common.key_id = Some(self.id.to_owned());
        json!(key)
    }

    pub(super) fn header(&self) -> Header {
        Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) }
    }

    pub(super) fn sign(&self, claims: &Value) -> String {
        encode(&self.header(), claims, &self.private).unwrap()
    }
}

/// How an issuer behaves.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mode {
    Good,
    /// It describes itself only as OpenID Connect has it, behind its path.
    OpenId,
    /// It closes every connection.
    Dead,
    /// It takes this long before it answers.
    Slow(Duration),
    Status(u16),
    /// It answers everything with this.
    Text(&'static str),
    /// It sends everybody to where the answer would be.
    Redirecting,
    /// It never stops to send.
    Endless,
    /// It says that it is another one.
    Pretending,
}

#[derive(Clone)]
pub(super) struct Issuer {
    pub(super) url: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    mode: Mode,
    keys: Vec<Value>,
    /// How often the keys were asked for.
    asked: usize,
}

impl Issuer {
    /// At some port, with this path.
    pub(super) fn start(path: &str, pairs: &[&Pair]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        let shared = Arc::new(Mutex::new(Shared { mode: Mode::Good, keys: Vec::new(), asked: 0 }));
        let issuer = Self { url, shared };
        issuer.publish(pairs);
        let answering = issuer.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let answering = answering.clone();
                // A client that goes away in the middle is nothing to complain about.
                std::thread::spawn(move || drop(answering.answer(stream.unwrap())));
            }
        });
        issuer
    }

    pub(super) fn publish(&self, pairs: &[&Pair]) {
        self.shared.lock().keys = pairs.iter().map(|pair| pair.public()).collect();
    }

    pub(super) fn behave(&self, mode: Mode) {
        self.shared.lock().mode = mode;
    }

    pub(super) fn asked(&self) -> usize {
        self.shared.lock().asked
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let path = requested(&mut stream)?;
        let (mode, keys) = {
            let mut shared = self.shared.lock();
            shared.asked += usize::from(path.ends_with("/keys"));
            (shared.mode.clone(), shared.keys.clone())
        };
        let host_at = self.url.find("://").unwrap() + 3;
        let own_path = self.url[host_at..].find('/').map_or("", |at| &self.url[host_at + at..]);
        let issuer = if mode == Mode::Pretending { "https://other.example" } else { &self.url };
        let description = json!({"issuer": issuer, "jwks_uri": format!("{}/keys", self.url)});
        let place = if mode == Mode::OpenId {
            format!("{own_path}/.well-known/openid-configuration")
        } else {
            format!("/.well-known/oauth-authorization-server{own_path}")
        };
        let (mut status, mut more, mut body) = (200, String::new(), String::new());
        if path == format!("{own_path}/keys") {
            body = json!({"keys": keys}).to_string();
        } else if path == place {
            body = description.to_string();
        } else if path != "/elsewhere" {
            status = 404;
        }
        match mode {
            Mode::Good | Mode::OpenId | Mode::Pretending => {}
            Mode::Dead => return Ok(()),
            Mode::Slow(time) => std::thread::sleep(time),
            Mode::Status(other) => status = other,
            Mode::Text(text) => (status, body) = (200, text.to_owned()),
            Mode::Redirecting if path != "/elsewhere" => {
                (status, more) = (302, "location: /elsewhere\r\n".to_owned());
            }
            Mode::Redirecting => body = description.to_string(),
            Mode::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"keys\": [")?;
                for _ in 0..1600 {
                    stream.write_all(&[b' '; 64 * 1024])?;
                }
                return Ok(());
            }
        }
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {length}\r\n{more}");
        stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes())
    }
}

fn requested(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    Ok(head.split(' ').nth(1).unwrap_or_default().to_owned())
}
