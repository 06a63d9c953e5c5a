#!/usr/bin/env bash
# Runs the Worker built by .ci/worker in workerd, with its own D1 database, queue and cron in a temporary folder. When it is
# ready, the only line on standard output is its URL. It stops, with all of its processes, when standard input closes or on
# a signal, so that a killed test leaves nothing behind.
#
# All variables named SIDETONE_… and OTEL_… are passed to the Worker; its log goes to standard error.
# WORKER_CONSUMES=no removes the queue's consumer, so that every hint is lost.
# WORKER_ENTRY names a module in this folder that wraps the built one, such as faulty.mjs.
# SIDETONE_SHARDS names databases beside the first one: they and their directory are bound, too.
# WORKER_STATE names a folder for the Worker's state, to restart a Worker with the same state.
# A line `kill` on standard input kills all processes at once (SIGKILL), like a power failure.
# The cron sweep runs when `/__scheduled?cron=*+*+*+*+*` is requested.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
[[ -e $root/host-worker/build/index.js ]] || { echo 'the Worker is not built: run .ci/worker' >&2; exit 1; }
PATH=$("$root/.ci/node22"):$PATH
"$root/.ci/npm-packages" "$root/tests/worker"
wrangler=$root/tests/worker/node_modules/.bin/wrangler
export WRANGLER_SEND_METRICS=false CI=true WRANGLER_HIDE_BANNER=true

work=$(mktemp -d)
state=${WORKER_STATE:-$work/state}
server=
cleanup() {
  trap - EXIT INT TERM HUP
  # The server has its own process group: wrangler, esbuild and workerd.
  [[ -z $server ]] || kill -TERM -- "-$server" 2>/dev/null || true
  [[ -z $server ]] || wait "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 143' INT TERM HUP

# The same configuration without the build. wrangler writes next to it, so it needs its own folder.
mkdir "$work/app"
ln -s "${WORKER_BUILD:-$root/host-worker/build}" "$work/app/build"
sed -e '/^\[build\]/,/^$/d' -e 's|^main = .*|main = "build/index.js"|' \
  -e "s|^migrations_dir = .*|migrations_dir = \"$root/engine/migrations\"|" "$root/wrangler.toml" >"$work/app/wrangler.toml"
if [[ -n ${WORKER_ENTRY:-} ]]; then
  cp "$root/tests/worker/$WORKER_ENTRY" "$work/app/" # a link would be followed, and find no build beside it
  sed -i "s|^main = .*|main = \"$WORKER_ENTRY\"|" "$work/app/wrangler.toml"
fi
# database BINDING MIGRATIONS: binds another one.
database() {
  printf '[[d1_databases]]\nbinding = "%s"\ndatabase_name = "sidetone-%s"\ndatabase_id = "%s"\nmigrations_dir = "%s"\n\n' \
    "$1" "${1,,}" "00000000-0000-0000-0000-$(printf %s "$1" | sha256sum | head -c 12)" "$root/engine/$2" >>"$work/app/wrangler.toml"
}
shards=()
if [[ -n ${SIDETONE_SHARDS:-} ]]; then
  IFS=, read -ra shards <<<"$SIDETONE_SHARDS"
  echo >>"$work/app/wrangler.toml"
  for shard in "${shards[@]}"; do database "$shard" migrations; done
  database DIRECTORY directory
  shards+=(DIRECTORY)
fi
[[ ${WORKER_CONSUMES:-yes} == yes ]] || sed -i '/^\[\[queues.consumers\]\]/,/^$/d' "$work/app/wrangler.toml"
: "${SIDETONE_SECRET:=$(head -c 32 /dev/urandom | base64)}"
export SIDETONE_SECRET
(umask 077 && env | grep -E '^(SIDETONE|OTEL)_' >"$work/app/.dev.vars")

cd "$work/app"
for shard in DB "${shards[@]}"; do
  "$wrangler" d1 migrations apply "$shard" --local --persist-to "$state" >&2 </dev/null
done
port=$(python3 "$root/tests/clients/free_port.py")
set -m
"$wrangler" dev --local --ip 127.0.0.1 --port "$port" --inspector-port 0 --persist-to "$state" --test-scheduled \
  --show-interactive-dev-session=false >&2 </dev/null &
server=$!
set +m
for ((waited = 0; ; waited++)); do
  if python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' \
    "http://127.0.0.1:$port/healthz" 2>/dev/null; then
    break
  fi
  kill -0 "$server" 2>/dev/null || { echo 'workerd exited during its start' >&2; exit 1; }
  ((waited < 300)) || { echo 'the Worker did not start in time' >&2; exit 1; }
  sleep 0.2
done
echo "http://127.0.0.1:$port"
# Waits until standard input closes or the server exits.
while kill -0 "$server" 2>/dev/null; do
  if read -r -t 1 line; then
    [[ $line != kill ]] || { kill -KILL -- "-$server"; exit 0; }
  elif (($? <= 128)); then
    exit 0
  fi
done
echo 'workerd exited unexpectedly' >&2
exit 1
