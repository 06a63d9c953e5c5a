#!/usr/bin/env bash
# with-openai.sh CMD...: runs CMD beside the stand-in for OpenAI (tests/src/stand_ins/openai.rs), told in OPENAI_BASE_URL.
# `cargo build --package sidetone-tests --bin openai-stand-in` makes it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
coproc stand_in { "${CARGO_TARGET_DIR:-$here/../../target}/debug/openai-stand-in"; }
process=$stand_in_PID
exec {held}>&"${stand_in[1]}" # it serves until this closes
read -r OPENAI_BASE_URL <&"${stand_in[0]}"
export OPENAI_BASE_URL OPENAI_API_KEY=sk-stand-in

status=0
"$@" {held}>&- || status=$?
exec {held}>&- {stand_in[1]}>&-
wait "$process"
exit "$status"
