#!/usr/bin/env bash
# openapi.sh 3.1|3.0: checks that the document is valid OpenAPI of that version, whatever version it says.
set -euo pipefail
cd "$(dirname "$0")"

bin=$(../../.ci/python-env requirements-openapi.txt)
document=$(mktemp --suffix .json)
trap 'rm -f "$document"' EXIT
case $1 in
  3.1) name=openapi.json ;;
  3.0) name=openapi-3.0.json ;;
esac
# Without a key, because the document is public.
python3 -c 'import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())' \
  "$SIDETONE_URL/$name" >"$document"
python3 -c 'import json, sys; v = json.load(open(sys.argv[1]))["openapi"]; assert v.startswith(sys.argv[2] + "."), v' \
  "$document" "$1"
"$bin/openapi-spec-validator" --schema "$1" --validation-errors all "$document"
