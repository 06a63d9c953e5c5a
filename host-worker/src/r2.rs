//! Recordings at the edge: a blob is an object of an R2 bucket. R2 is strongly consistent, and an object is there
//! whole or not at all.
use bytes::Bytes;
use sidetone_engine::blobs::Slice;
use sidetone_engine::ports::{BlobError, BlobKey, Blobs, BoxFuture, ByteRange};
use worker::web_sys::ReadableStream;
use worker::{Bucket, Object, Range, ResponseBody};

/// The bucket behind a binding.
pub struct R2(Bucket);

impl R2 {
    /// Takes the binding over.
    pub fn new(binding: Bucket) -> Self {
        Self(binding)
    }

    /// A slice as the platform's own stream: it goes from the bucket to the client without passing through here,
    /// which costs no processor time however long it is. `None`: there is no such object.
    pub async fn stream(&self, slice: &Slice) -> Result<Option<ReadableStream>, BlobError> {
        let Some(object) = self.object(&slice.key, slice.range).await? else { return Ok(None) };
        match object.body().map(|body| body.response_body()).transpose().map_err(error)? {
            Some(ResponseBody::Stream(stream)) => Ok(Some(stream)),
            _ => Err(BlobError(format!("{} came without a body", slice.key.as_str()))),
        }
    }

    async fn object(&self, key: &BlobKey, range: ByteRange) -> Result<Option<Object>, BlobError> {
        let range = Range::OffsetWithLength { offset: range.first, length: range.bytes };
        self.0.get(key.as_str()).range(range).execute().await.map_err(error)
    }
}

impl Blobs for R2 {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            let put = self.0.put(key.as_str(), bytes.to_vec());
            put.execute().await.map(drop).map_err(error)
        })
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            let object = self.0.head(key.as_str()).await.map_err(error)?;
            Ok(object.map(|object| object.size()))
        })
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            let Some(object) = self.object(&key, range).await? else { return Ok(None) };
            match object.body() {
                Some(body) => Ok(Some(body.bytes().await.map_err(error)?.into())),
                None => Err(BlobError(format!("{} came without a body", key.as_str()))),
            }
        })
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move { self.0.delete(key.as_str()).await.map_err(error) })
    }
}

fn error(error: worker::Error) -> BlobError {
    BlobError(error.to_string())
}
