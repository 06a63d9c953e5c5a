#!/usr/bin/env bash
# Runs startup.mjs with the required version of Node and packages.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
PATH=$("$root/.ci/node22"):$PATH
"$root/.ci/npm-packages" "$root/tests/worker"
exec node "$root/tests/worker/bench/startup.mjs"
