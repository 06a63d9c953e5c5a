#!/usr/bin/env bash
# Checks that /openapi.json is valid OpenAPI 3.1, independently of the version in the document.
set -euo pipefail
cd "$(dirname "$0")"

bin=$(../../.ci/python-env requirements-openapi.txt)
document=$(mktemp --suffix .json)
trap 'rm -f "$document"' EXIT
# Without a key, because the document is public.
python3 -c 'import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())' \
  "$SIDETONE_URL/openapi.json" >"$document"
python3 -c 'import json, sys; v = json.load(open(sys.argv[1]))["openapi"]; assert v.startswith("3.1."), v' "$document"
"$bin/openapi-spec-validator" --schema 3.1 --validation-errors all "$document"
