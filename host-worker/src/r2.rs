//! Blobs as objects of an R2 bucket. R2 is strongly consistent, and writes are atomic.
use bytes::Bytes;
use sidetone_engine::ports::blobs::Slice;
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange};
use worker::Bucket;
use worker::js_sys::{self, Promise, Uint8Array};
use worker::wasm_bindgen::prelude::wasm_bindgen;
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::ReadableStream;

/// The bucket of a binding.
pub struct R2(JsValue);

impl R2 {
    /// Wraps the binding.
    pub fn new(binding: Bucket) -> Self {
        Self(binding.into())
    }

    /// A slice as a stream of the platform, which sends it to the client without using processor time here. `None`: the
    /// object does not exist.
    pub async fn stream(&self, slice: &Slice) -> Result<Option<ReadableStream>, BlobError> {
        let Slice { key, range } = slice;
        let found = answer(open(&self.0, key.as_str(), range.first as f64, range.bytes as f64)).await?;
        Ok((!found.is_null()).then(|| found.unchecked_into()))
    }
}

// Only the required part of R2: the bindings of the `worker` crate are ten times as large.
#[wasm_bindgen(wasm_bindgen = worker::wasm_bindgen, inline_js = r#"
const range = (offset, length) => ({ range: { offset, length } });
export const keep = (bucket, key, bytes) => bucket.put(key, bytes);
export const size = async (bucket, key) => (await bucket.head(key))?.size ?? null;
export const open = async (bucket, key, first, bytes) => (await bucket.get(key, range(first, bytes)))?.body ?? null;
export const read = async (bucket, key, first, bytes) =>
  (await (await bucket.get(key, range(first, bytes)))?.arrayBuffer()) ?? null;
export const remove = (bucket, key) => bucket.delete(key);
"#)]
extern "C" {
    fn keep(bucket: &JsValue, key: &str, bytes: &Uint8Array) -> Promise;
    fn size(bucket: &JsValue, key: &str) -> Promise;
    fn open(bucket: &JsValue, key: &str, first: f64, bytes: f64) -> Promise;
    fn read(bucket: &JsValue, key: &str, first: f64, bytes: f64) -> Promise;
    fn remove(bucket: &JsValue, key: &str) -> Promise;
}

impl Blobs for R2 {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let put = keep(&self.0, key.as_str(), &Uint8Array::from(bytes.as_ref()));
        Box::pin(async move { answer(put).await.map(drop) })
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        let asked = size(&self.0, key.as_str());
        Box::pin(async move { Ok(answer(asked).await?.as_f64().map(|bytes| bytes as u64)) })
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        let asked = read(&self.0, key.as_str(), range.first as f64, range.bytes as f64);
        Box::pin(async move {
            let found = answer(asked).await?;
            Ok((!found.is_null()).then(|| Uint8Array::new(&found).to_vec().into()))
        })
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        let removed = remove(&self.0, key.as_str());
        Box::pin(async move { answer(removed).await.map(drop) })
    }
}

async fn answer(promise: Promise) -> Result<JsValue, BlobError> {
    let message = |thrown: JsValue| match thrown.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => format!("{thrown:?}"),
    };
    JsFuture::from(promise).await.map_err(|thrown| BlobError(message(thrown)))
}
