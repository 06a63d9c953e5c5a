#!/usr/bin/env bash
# Clones the repository and runs the commands of docs/deploying-at-the-edge.md that try the Worker locally, unchanged, in
# the clone; then the README's tour and the script of docs/mcp.md against that Worker. It removes everything it
# creates except build caches.
#
# On a machine that meets the guide's requirements (rustup's wasm target, Node 22) it needs nothing else. Elsewhere it uses
# the tools of .ci: through the environment, and as a `node_modules` next to the clone, where `npx` finds wrangler.
set -euo pipefail
exec </dev/null

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
server=
cleanup() {
  trap - EXIT INT TERM HUP
  # The server has its own process group: npx, wrangler, the build, workerd.
  [[ -z $server ]] || kill -TERM -- "-$server" 2>/dev/null || true
  [[ -z $server ]] || wait "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 143' INT TERM HUP
say() { echo "=== [${SECONDS} s] $1"; }

say 'git clone'
git clone --quiet "$root" "$work/sidetone"
cd "$work/sidetone"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sidetone-ci
export CI=true WRANGLER_SEND_METRICS=false
# Shares built dependencies between clones.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}

# The guide's commands without comments.
commands=$(python3 - <<'PY'
import re
guide = open("docs/deploying-at-the-edge.md", encoding="utf-8").read()
deploy, local = re.findall(r"```sh\n(.*?)```", guide, re.S)[:2]
secrets = [line for line in deploy.splitlines() if "-- secrets" in line]
for line in secrets + local.splitlines():
    print(re.sub(r"\s+#.*", "", line))
PY
)
mapfile -t command <<<"$commands"
((${#command[@]} == 3)) || { echo "expected three commands: $commands"; exit 1; }

say "${command[0]}"
bash -euc "${command[0]}"
SIDETONE_KEY=$(sed -n 's/^SIDETONE_BOOTSTRAP_KEYS="\{0,1\}\([^",]*\).*/\1/p' .dev.vars)
[[ $SIDETONE_KEY == sidetone_* ]] || { echo 'no key in .dev.vars'; exit 1; }

if [[ -z $(find "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib" -name 'libstd-*' 2>/dev/null) ]]; then
  say 'without the wasm target of rustup: the toolchain and the tools of .ci stand in'
  rust=$("$root/.ci/wasm-toolchain")
  tools=$("$root/.ci/worker-tools")
  "$root/.ci/npm-packages" "$root/tests/worker"
  npm=$root/tests/worker/node_modules
  ln -s "$(readlink -f "$npm")" "$work/node_modules"
  # A separate target folder, because two compilers in one cause "duplicate lang item".
  export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/worker RUSTC=$rust/rustc CARGO_INSTALL_ROOT=${tools%/bin}
  export WASM_BINDGEN_BIN=$tools/wasm-bindgen WASM_OPT_BIN=$npm/.bin/wasm-opt ESBUILD_BIN=$npm/.bin/esbuild
  PATH=$rust:$tools:$PATH
fi
PATH=$("$root/.ci/node22"):$PATH
export PATH

say "${command[1]}"
bash -euc "${command[1]}" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

say "${command[2]}"
set -m
bash -euc "${command[2]}" >"$work/log" 2>&1 &
server=$!
set +m
# If the guide's port is in use, wrangler prints another one.
for ((waited = 0; ; waited++)); do
  SIDETONE_URL=$(sed -n 's|.*Ready on \(http://[0-9.]*:[0-9]*\).*|\1|p' "$work/log" | tail -n 1)
  [[ -z $SIDETONE_URL ]] || break
  kill -0 "$server" 2>/dev/null || { echo 'the server exited during its start:'; cat "$work/log"; exit 1; }
  ((waited < 1200)) || { echo 'the server did not start in time:'; tail -n 60 "$work/log"; exit 1; }
  sleep 1
done
export SIDETONE_URL SIDETONE_KEY

say "the README's tour against $SIDETONE_URL"
python3 tests/clients/readme.py curl >"$work/tour" 2>&1 || { cat "$work/tour"; tail -n 40 "$work/log"; exit 1; }
say 'the MCP client of docs/mcp.md'
python=$(.ci/python-env tests/clients/requirements-mcp-v2.txt)/python
"$python" tests/clients/readme.py mcp >"$work/tour" 2>&1 || { cat "$work/tour"; tail -n 40 "$work/log"; exit 1; }
[[ -z $(git status --porcelain) ]] || { echo 'the clone has changed:'; git status --short; exit 1; }
say 'the tour came to its end, and the clone is as it was'
