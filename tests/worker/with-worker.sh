#!/usr/bin/env bash
# with-worker.sh CMD...: runs CMD with a new Worker in workerd, which has an empty database and a new key, in
# SIDETONE_URL and SIDETONE_KEY. The counterpart of tests/clients/with-server.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# The format of a key: a prefix, 32 random bytes in base62, and a checksum of both.
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
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A caller that is a Node process and talks with CMD over IPC has put the channel into the environment. The Worker's own
# Node would take messages from it.
coproc worker { unset NODE_CHANNEL_FD; SIDETONE_BOOTSTRAP_KEYS=$SIDETONE_KEY SIDETONE_TRUSTED_PROXIES=127.0.0.1 "$here/serve.sh" 2>"$log"; }
script=$worker_PID
exec {held}>&"${worker[1]}"
read -r SIDETONE_URL <&"${worker[0]}" || { tail -n 40 "$log" >&2; exit 1; }
export SIDETONE_URL SIDETONE_KEY SIDETONE_HOST=worker SIDETONE_LOG=$log

status=0
"$@" {held}>&- || status=$?

exec {held}>&- {worker[1]}>&- # the script ends with its standard input
ended=0
wait "$script" || ended=$?
((ended == 0)) || { echo "the Worker's script ended with status $ended; the end of its log:" >&2; tail -n 40 "$log" >&2; exit 1; }
exit "$status"
