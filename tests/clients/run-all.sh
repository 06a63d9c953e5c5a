#!/usr/bin/env bash
# Checks a running server (SIDETONE_URL, SIDETONE_KEY) with third-party software: the official MCP
# clients, the Inspector, the conformance tool, and tools for openapi.json. Also checks the fakes, with the clients of
# the services they replace. Prints one line per check, then the totals.
# `run-all.sh clients` leaves out what needs a browser, and `run-all.sh pages` everything else.
set -euo pipefail
cd "$(dirname "$0")"

: "${SIDETONE_URL:?the address of a running server}" "${SIDETONE_KEY:?a key of that server}"
only=${1:-}
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C
ci=../../.ci
"$ci/client-packages"
PATH=$("$ci/node22"):$PATH
python_v1=$("$ci/python-env" requirements-mcp-v1.txt)/python
python_v2=$("$ci/python-env" requirements-mcp-v2.txt)/python
python_openai=$("$ci/python-env" requirements-openai.txt)/python
python_elevenlabs=$("$ci/python-env" requirements-elevenlabs.txt)/python
"$ci/python-env" requirements-openapi.txt >/dev/null

# A new server of the same host, with no data.
own=./with-server.sh
[[ ${SIDETONE_HOST:-} != worker ]] || own=../worker/with-worker.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0

# check NAME CMD...: runs it with no input, for 15 minutes at most; its output is shown only when it fails.
check() {
  local name=$1 start=$EPOCHREALTIME status=0 seconds
  shift
  timeout --kill-after=10 900 "$@" >"$log" 2>&1 </dev/null || status=$?
  seconds=$(python3 -c "print(f'{$EPOCHREALTIME - $start:.1f}')")
  if ((status == 0)); then
    passed=$((passed + 1))
    echo "ok      $name (${seconds} s)"
  else
    failed=$((failed + 1))
    echo "FAILED  $name (${seconds} s, status $status)"
    tail -n 60 "$log" | sed 's/^/        | /'
  fi
}

clients() {
  check 'tool schemas' node schema-lint.mjs
  check 'TypeScript client 1.x' node mcp-v1.mjs
  for mode in legacy auto 2026-07-28; do check "TypeScript client 2.x, $mode" node mcp-v2.mjs "$mode"; done
  check 'Python client 1.x' "$python_v1" mcp_v1.py
  for mode in legacy auto; do check "Python client 2.x, $mode" "$python_v2" mcp_v2.py "$mode"; done
  for era in legacy auto modern; do check "Inspector --strict, $era" ./inspector.sh "$era"; done
  for revision in 2025-11-25 2026-07-28; do check "MCP conformance $revision" ./conformance.sh "$revision"; done
  check "OpenAI's TypeScript client against its fake" ./with-openai.sh node fake-openai.mjs
  check "OpenAI's Python client against its fake" ./with-openai.sh "$python_openai" fake_openai.py
  check "speech providers' own clients against their fake" node fake-speech.mjs
  check "OpenAI's Python client against the fake of its Realtime API" "$python_openai" fake_realtime.py
  check "ElevenLabs' Python client against its fake" "$python_elevenlabs" fake_elevenlabs.py
  check "Twilio's own package" ./carriers.sh twilio
  check "Telnyx's own package" ./carriers.sh telnyx
  check "Plivo's own package" ./carriers.sh plivo
  check "Vonage's own packages" ./carriers.sh vonage
  check 'Standard Webhooks' ./deliveries.sh
  check 'README, the tour' python3 readme.py curl
  check 'docs/testing.md' "$own" python3 readme.py testing
  check 'docs/mcp.md' "$python_v2" readme.py mcp
  [[ ${SIDETONE_HOST:-} == worker ]] || check "a code by SMTP, to npm's server" ./smtp.sh
  for version in 3.1 3.0; do check "OpenAPI $version" ./openapi.sh "$version"; done
  check 'schemathesis' ./schemathesis.sh
  for language in typescript python java go rust; do check "a generated client, $language" ./generated.sh "$language"; done
}

pages() {
  local CHROMIUM
  CHROMIUM=$("$ci/chromium")
  export CHROMIUM
  check 'the test page in Chromium' node test-page.mjs
  check "the test page with the assistant's own voice" node spoken-page.mjs
  check "the test page with Deepgram's ears and ElevenLabs' voice" node provider-page.mjs
  check "the test page's audio thread" node page-audio.mjs
  check 'the API reference in Chromium' node docs.mjs
  check 'the dashboard in Chromium' node dashboard.mjs
  check 'the drafts of the dashboard' node dashboard-drafts.mjs
  check 'the dashboard by keyboard alone' node dashboard-keyboard.mjs
  check 'the dashboard, aloud' node dashboard-spoken.mjs
  check 'a webhook of the dashboard' env SIDETONE_ALLOW_PRIVATE_TARGETS=1 "$own" node dashboard-webhooks.mjs
  check "a newcomer's way" "$own" node newcomer.mjs
  for provider in oidc-provider oauth2-mock-server; do
    check "signing in at npm's $provider" ./oidc.sh "$provider"
  done
}

[[ $only == pages ]] || clients
[[ $only == clients ]] || pages
echo "$passed passed, $failed failed"
((failed == 0))
