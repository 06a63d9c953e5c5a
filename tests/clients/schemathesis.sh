#!/usr/bin/env bash
# Sends generated requests, valid and invalid, to every operation in openapi.json, and validates each response.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$("$here/../../.ci/python-env" "$here/requirements-openapi.txt")
work=$(mktemp -d) # schemathesis writes to the current folder
trap 'rm -rf "$work"' EXIT
cd "$work"

export SCHEMATHESIS_HOOKS=schemathesis_hooks PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
options=(
  --header "Authorization: Bearer $SIDETONE_KEY"
  --max-examples "${SIDETONE_EXAMPLES:-30}"
  --generation-deterministic # the same requests in every run
  --request-timeout 10
  --no-color
  --warnings off # about data that it could not make up, such as public URLs
  --checks all
  # Needs a second identity that must not see what the first one has; the contract's own tests do that.
  --exclude-checks object_level_authorization
  # It would revoke the key that the run itself uses.
  --exclude-operation-id revoke_api_key
)
"$bin/schemathesis" --config-file "$here/schemathesis.toml" run "${options[@]}" "$SIDETONE_URL/openapi.json"
