#!/usr/bin/env bash
# Webhook deliveries and tool callbacks against the official Standard Webhooks libraries, on a separate server that may
# send to this machine.
set -euo pipefail
cd "$(dirname "$0")"
ci=../../.ci
"$ci/client-packages"
PATH=$("$ci/node22"):$PATH
python=$("$ci/python-env" requirements-webhooks.txt)/python
with=./with-server.sh
[[ ${SIDETONE_HOST:-} != worker ]] || with=../worker/with-worker.sh
export PYTHONDONTWRITEBYTECODE=1 SIDETONE_ALLOW_PRIVATE_TARGETS=1
exec "$with" "$python" "$PWD/deliveries.py"
