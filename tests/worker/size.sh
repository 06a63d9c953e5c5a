#!/usr/bin/env bash
# What is in the Worker: the code of each crate in what .ci/worker linked last. That has to have kept its names:
# CARGO_PROFILE_WORKER_STRIP=debuginfo .ci/worker. wasm-opt takes about a fifth of it later.
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/sidetone-ci
linked=${CARGO_TARGET_DIR:-$cache/target}/worker/wasm32-unknown-unknown/worker/sidetone_worker.wasm
[[ -e $linked ]] || { echo 'the Worker is not built: run .ci/worker' >&2; exit 1; }
exec python3 tests/worker/size.py "$linked"
