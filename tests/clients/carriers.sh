#!/usr/bin/env bash
# carriers.sh NAME...: what the service says to these carriers (twilio, telnyx, plivo, vonage; all without a name), and what
# their fakes say to it, judged by the carriers' official packages: carrier_NAME.py reads the samples from standard
# input. `cargo build --package sidetone-tests --bin carrier-samples` makes the program that prints them.
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
