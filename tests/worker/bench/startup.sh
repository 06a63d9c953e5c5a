#!/usr/bin/env bash
# startup.mjs with the Node and the packages it needs.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
PATH=$("$root/.ci/node22"):$PATH
"$root/.ci/npm-packages" "$root/tests/worker"
exec node "$root/tests/worker/bench/startup.mjs"
