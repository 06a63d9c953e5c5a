//! Public-key cryptography with the platform's WebCrypto.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use sidetone_engine::ports::{BoxFuture, Keys};
use worker::js_sys::{self, Array, Object, Reflect, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;

/// Signs and verifies with WebCrypto.
pub struct PlatformKeys;

impl Keys for PlatformKeys {
    fn verify_ed25519(
        &self,
        public_key: [u8; 32],
        message: Bytes,
        signature: [u8; 64],
    ) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let algorithm = name("Ed25519");
            let verified = async {
                let key = import("raw", &public_key, &algorithm, "verify").await?;
                let arguments = Array::of4(&algorithm, &key, &bytes(&signature), &bytes(&message));
                subtle("verify", &arguments).await
            };
            verified.await.is_ok_and(|valid: JsValue| valid.is_truthy())
        })
    }

    fn verify_rs256(
        &self,
        modulus: &[u8],
        exponent: &[u8],
        message: Bytes,
        signature: &[u8],
    ) -> BoxFuture<'_, bool> {
        let (n, e, signature) =
            (URL_SAFE_NO_PAD.encode(modulus), URL_SAFE_NO_PAD.encode(exponent), signature.to_vec());
        Box::pin(async move {
            let verified = async {
                let algorithm = name("RSASSA-PKCS1-v1_5");
                Reflect::set(&algorithm, &"hash".into(), &"SHA-256".into())?;
                let jwk = Object::new();
                for (name, value) in [("kty", "RSA"), ("alg", "RS256"), ("n", &*n), ("e", &*e)] {
                    Reflect::set(&jwk, &name.into(), &value.into())?;
                }
                let usages = Array::of1(&"verify".into());
                let arguments = Array::of5(&"jwk".into(), &jwk, &algorithm, &false.into(), &usages);
                let key = subtle("importKey", &arguments).await?;
                subtle("verify", &Array::of4(&algorithm, &key, &bytes(&signature), &bytes(&message))).await
            };
            verified.await.is_ok_and(|valid: JsValue| valid.is_truthy())
        })
    }

    fn sign_rs256(&self, pkcs8: &[u8], message: Bytes) -> BoxFuture<'_, Result<Vec<u8>, String>> {
        let pkcs8 = pkcs8.to_vec();
        Box::pin(async move {
            let signed = async {
                let algorithm = name("RSASSA-PKCS1-v1_5");
                Reflect::set(&algorithm, &"hash".into(), &"SHA-256".into())?;
                let key = import("pkcs8", &pkcs8, &algorithm, "sign").await?;
                subtle("sign", &Array::of3(&algorithm, &key, &bytes(&message))).await
            };
            // The platform's error is dropped, because it may quote the key.
            let signature = signed.await.map_err(|_: JsValue| "the private key cannot be used".to_owned())?;
            Ok(Uint8Array::new(&signature).to_vec())
        })
    }
}

fn name(algorithm: &str) -> Object {
    let object = Object::new();
    // Setting a property of a plain object cannot fail.
    let _ = Reflect::set(&object, &"name".into(), &algorithm.into());
    object
}

fn bytes(bytes: &[u8]) -> Uint8Array {
    Uint8Array::from(bytes)
}

async fn import(format: &str, key: &[u8], algorithm: &Object, usage: &str) -> Result<JsValue, JsValue> {
    let usages = Array::of1(&usage.into());
    let arguments = Array::of5(&format.into(), &bytes(key), algorithm, &false.into(), &usages);
    subtle("importKey", &arguments).await
}

/// Calls `crypto.subtle.<method>(…)`.
async fn subtle(method: &str, arguments: &Array) -> Result<JsValue, JsValue> {
    let crypto = Reflect::get(&js_sys::global(), &"crypto".into())?;
    let subtle = Reflect::get(&crypto, &"subtle".into())?;
    let method: js_sys::Function = Reflect::get(&subtle, &method.into())?.dyn_into()?;
    let promise: js_sys::Promise = method.apply(&subtle, arguments)?.dyn_into()?;
    JsFuture::from(promise).await
}
