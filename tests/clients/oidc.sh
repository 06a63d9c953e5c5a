#!/usr/bin/env bash
# oidc.sh PROVIDER: signs in to a new service at an OpenID provider from npm, `oidc-provider` or `oauth2-mock-server`. The
# service runs on the host that SIDETONE_HOST names, the binary or `worker`.
set -euo pipefail
cd "$(dirname "$0")"

port=$(python3 free_port.py)
with=./with-server.sh
[[ ${SIDETONE_HOST:-} != worker ]] || with=../worker/with-worker.sh
# The provider starts later: its registration names the service's address. The service asks it at the first sign-in.
export SIDETONE_GOOGLE_ISSUER=http://127.0.0.1:$port SIDETONE_GOOGLE_CLIENT_ID=sidetone \
  SIDETONE_GOOGLE_CLIENT_SECRET='a secret:with/more'
"$with" node oidc.mjs "$1"
