//! Blobs as objects of an R2 bucket. R2 is strongly consistent, and writes are atomic.
use bytes::Bytes;
use sidetone_engine::ports::blobs::{Piece, Slice};
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange};
use worker::Bucket;
use worker::js_sys::{self, Array, Promise, Uint8Array};
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
        let found = answer(join(&self.0, &pieces(slice.clone()), slice.range.bytes as f64)).await?;
        Ok((!found.is_null()).then(|| found.unchecked_into()))
    }
}

/// What to send one after the other: bytes, or a key, an offset and a length. A segment is one request.
fn pieces(mut slice: Slice) -> Array {
    let pieces = Array::new();
    while let Some(piece) = slice.next_piece(u64::MAX) {
        match piece {
            Piece::Bytes(bytes) => pieces.push(&Uint8Array::from(bytes.as_ref())),
            Piece::Blob(key, range) => pieces.push(&Array::of3(
                &key.as_str().into(),
                &(range.first as f64).into(),
                &(range.bytes as f64).into(),
            )),
        };
    }
    pieces
}

// Only the required part of R2: the bindings of the `worker` crate are ten times as large.
#[wasm_bindgen(wasm_bindgen = worker::wasm_bindgen, inline_js = r#"
const range = (offset, length) => ({ range: { offset, length } });
export const keep = (bucket, key, bytes) => bucket.put(key, bytes);
export const size = async (bucket, key) => (await bucket.head(key))?.size ?? null;
const open = async (bucket, key, first, bytes) => (await bucket.get(key, range(first, bytes)))?.body ?? null;
export const read = async (bucket, key, first, bytes) =>
  (await (await bucket.get(key, range(first, bytes)))?.arrayBuffer()) ?? null;
const send = async (bucket, pieces, stream) => {
  for (const piece of pieces) {
    if (piece instanceof Uint8Array) {
      const writer = stream.getWriter();
      await writer.write(piece);
      writer.releaseLock();
      continue;
    }
    const body = await open(bucket, ...piece);
    if (body === null) throw new Error("a segment is missing");
    await body.pipeTo(stream, { preventClose: true });
  }
  await stream.close();
};
export const join = async (bucket, pieces, bytes) => {
  const stored = pieces.find((piece) => !(piece instanceof Uint8Array));
  if (stored && (await bucket.head(stored[0])) === null) return null;
  const { readable, writable } = new FixedLengthStream(bytes);
  // Whoever reads sees the failure; who has gone away does not want to.
  send(bucket, pieces, writable).catch((error) => writable.abort(error).catch(() => {}));
  return readable;
};
export const remove = (bucket, key) => bucket.delete(key);
"#)]
extern "C" {
    fn keep(bucket: &JsValue, key: &str, bytes: &Uint8Array) -> Promise;
    fn size(bucket: &JsValue, key: &str) -> Promise;
    fn read(bucket: &JsValue, key: &str, first: f64, bytes: f64) -> Promise;
    fn join(bucket: &JsValue, pieces: &Array, bytes: f64) -> Promise;
    fn remove(bucket: &JsValue, key: &str) -> Promise;
    #[wasm_bindgen(js_name = remove)]
    fn remove_all(bucket: &JsValue, keys: &Array) -> Promise;
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

    fn is_metered(&self) -> bool {
        true
    }

    /// R2 removes up to 1,000 objects in one request.
    fn delete_all(&self, keys: Vec<BlobKey>) -> BoxFuture<'_, Result<(), BlobError>> {
        let removed: Vec<Promise> = keys
            .chunks(1_000)
            .map(|keys| remove_all(&self.0, &keys.iter().map(|key| JsValue::from(key.as_str())).collect()))
            .collect();
        Box::pin(async move {
            for removed in removed {
                answer(removed).await?;
            }
            Ok(())
        })
    }
}

async fn answer(promise: Promise) -> Result<JsValue, BlobError> {
    let message = |thrown: JsValue| match thrown.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => format!("{thrown:?}"),
    };
    JsFuture::from(promise).await.map_err(|thrown| BlobError(message(thrown)))
}
