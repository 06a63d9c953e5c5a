#!/usr/bin/env bash
# with-server.sh CMD...: runs CMD with a new server on a free port, which has an empty data folder and a new
# key, in SIDETONE_URL and SIDETONE_KEY; SIDETONE_LOG is its log. The server must also stop gracefully.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
binary=${SIDETONE_BIN:-${CARGO_TARGET_DIR:-$here/../../target}/debug/sidetone}
work=$(mktemp -d)
server=
cleanup() {
  [[ -z $server ]] || kill -KILL "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
complain() {
  echo "$1; the end of its log:" >&2
  tail -n 40 "$work/log" >&2
  exit 1
}

port=$(python3 "$here/free_port.py")
export SIDETONE_URL=http://127.0.0.1:$port
# The form of a key: a prefix, 32 random bytes in base62, and a checksum of all that.
SIDETONE_KEY=$(python3 - <<'PY'
import secrets, zlib

digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

def base62(number, width):
    text = ""
    while number:
        number, digit = divmod(number, 62)
        text = digits[digit] + text
    return text.rjust(width, "0")

key = "sidetone_" + base62(secrets.randbits(256), 43)
print(key + base62(zlib.crc32(key.encode()), 6))
PY
)
export SIDETONE_KEY

SIDETONE_LISTEN=127.0.0.1:$port SIDETONE_DATA=$work/data SIDETONE_BOOTSTRAP_KEYS=$SIDETONE_KEY \
  SIDETONE_TRUSTED_PROXIES=127.0.0.1 SIDETONE_LATE_PERCENT=100 \
  env -u SIDETONE_URL -u SIDETONE_KEY -u SIDETONE_BIN "$binary" >"$work/log" 2>&1 </dev/null &
server=$!
for ((waited = 0; ; waited++)); do
  if python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "$SIDETONE_URL/healthz" 2>/dev/null; then
    break
  fi
  kill -0 "$server" 2>/dev/null || complain 'the server ended at once'
  ((waited < 100)) || complain 'the server did not answer within its time'
  sleep 0.1
done

status=0
SIDETONE_LOG=$work/log "$@" || status=$?

kill -TERM "$server" 2>/dev/null || complain 'the server was gone before it was asked to stop'
for ((waited = 0; waited < 150; waited++)); do
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
kill -KILL "$server" 2>/dev/null || true
ended=0
wait "$server" || ended=$?
server=
((ended == 0)) || complain "asked to stop, the server ended with status $ended"
exit "$status"
