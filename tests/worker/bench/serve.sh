#!/usr/bin/env bash
# Runs serve.mjs with the required version of Node and packages.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
[[ -e ${WORKER_BUILD:-$root/host-worker/build}/index.js ]] || { echo 'the Worker is not built: run .ci/worker' >&2; exit 1; }
PATH=$("$root/.ci/node22"):$PATH
"$root/.ci/npm-packages" "$root/tests/worker"
exec node "$root/tests/worker/bench/serve.mjs"
