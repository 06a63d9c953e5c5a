//! Spans of traces.

/// Spans that wait for a collector of traces on a host without a library for it; further ones are lost.
pub const TRACE_SPANS_MAX: usize = 2_048;
/// What they take.
pub const TRACE_BYTES_MAX: usize = 1024 * 1024;
/// Spans of one request to it.
pub const TRACE_SPANS_AT_ONCE: usize = 512;
/// How long it may take for a request.
pub const TRACE_DEADLINE_MS: u64 = 5_000;
