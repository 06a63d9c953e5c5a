#!/usr/bin/env bash
# with-openai.sh CMD...: runs CMD with the fake for OpenAI (tests/src/fakes/openai.rs), in OPENAI_BASE_URL.
# `cargo build --package sidetone-tests --bin fake-openai` builds it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
coproc fake { "${CARGO_TARGET_DIR:-$here/../../target}/debug/fake-openai"; }
process=$fake_PID
exec {held}>&"${fake[1]}" # it serves until this closes
read -r OPENAI_BASE_URL <&"${fake[0]}"
export OPENAI_BASE_URL OPENAI_API_KEY=sk-fake

status=0
"$@" {held}>&- || status=$?
exec {held}>&- {fake[1]}>&-
wait "$process"
exit "$status"
