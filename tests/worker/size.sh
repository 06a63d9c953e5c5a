#!/usr/bin/env bash
# The code size of each crate in the Worker that .ci/worker linked last. The module must contain its names:
# CARGO_PROFILE_WORKER_STRIP=debuginfo .ci/worker. wasm-opt later removes about a fifth.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/sidetone-ci
linked=${CARGO_TARGET_DIR:-$cache/target}/worker/wasm32-unknown-unknown/worker/sidetone_worker.wasm
[[ -e $linked ]] || { echo 'the Worker is not built: run .ci/worker' >&2; exit 1; }
exec python3 tests/worker/size.py "$linked"
