#!/usr/bin/env bash
# carriers.sh NAME...: validates the service's messages to these carriers (twilio, telnyx, plivo, vonage; default: all) and
# the messages of their fakes with the carriers' official packages: carrier_NAME.py reads the samples from standard
# input. `cargo build --package sidetone-tests --bin carrier-samples` builds the program that prints them.
set -euo pipefail
cd "$(dirname "$0")"

(($#)) || set -- twilio telnyx plivo vonage
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C
samples=$(mktemp)
trap 'rm -f "$samples"' EXIT
"${CARGO_TARGET_DIR:-../../target}/debug/carrier-samples" >"$samples"
for name; do
  python=$(../../.ci/python-env "requirements-$name.txt")/python
  "$python" "carrier_$name.py" <"$samples"
done
