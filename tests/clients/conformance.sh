#!/usr/bin/env bash
# conformance.sh REVISION: the MCP conformance tool, with all requirements of that revision of the protocol.
set -euo pipefail
cd "$(dirname "$0")"

export REVISION=$1
# shellcheck disable=SC2016 # the proxy's address is known only inside
conformance() {
  node authproxy.mjs bash -c 'node_modules/.bin/conformance server --url "$SIDETONE_PROXY_URL/mcp" --timeout 8000 "$@"' \
    conformance --expected-failures conformance-baseline.yml "$@"
}
conformance --requirements "$REVISION"
# The command above runs this too, but ignores its failures.
if [[ $REVISION == 2026-07-28 ]]; then
  conformance --scenario http-header-validation --spec-version "$REVISION"
fi
