#!/usr/bin/env bash
# generated.sh typescript|python|java|go|rust: makes a client of the running server's OpenAPI document with a public
# generator, which must have nothing to complain of, and runs a flow with it.
set -euo pipefail
cd "$(dirname "$0")"

ci=$PWD/../../.ci
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sidetone-ci
mkdir -p "$cache"
work=$(mktemp -d -p "$PWD")
trap 'rm -rf "$work"' EXIT
document=$work/openapi.json
fetch() {
  python3 -c 'import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())' \
    "$SIDETONE_URL/$1" >"$document"
}
# without WORD...: leaves out of the document what the generator has no words for.
without() {
  python3 generated_filter.py "$@" <"$document" >"$work/filtered.json"
  mv "$work/filtered.json" "$document"
}

# without_warnings CMD...: shows what the command says, and fails if that is a warning. A line that only names a file is none.
without_warnings() {
  "$@" >"$work/said" 2>&1 || { cat "$work/said"; return 1; }
  cat "$work/said"
  ! grep -v '^\[main\] INFO ' "$work/said" | grep -iE 'warn|unsupported|error'
}

# openapi_generator LANGUAGE FOLDER OPTION...
openapi_generator() {
  bin=$("$ci/python-env" requirements-openapi-generator.txt)
  "$ci/java" >/dev/null
  without_warnings "$bin/openapi-generator-cli" generate --generator-name "$1" --input-spec "$document" --output "$2" \
    --global-property apiDocs=false,modelDocs=false,apiTests=false,modelTests=false "${@:3}"
}

case $1 in
  typescript)
    fetch openapi.json
    without_warnings node node_modules/openapi-typescript/bin/cli.js "$document" --output "$work/schema.ts"
    cp generated-flow.ts "$work/flow.ts"
    cat >"$work/tsconfig.json" <<'JSON'
{"compilerOptions": {"noEmit": true, "strict": true, "noUncheckedIndexedAccess": true, "skipLibCheck": true, "target": "esnext",
  "module": "nodenext", "allowImportingTsExtensions": true, "types": []}, "files": ["flow.ts"]}
JSON
    node node_modules/typescript/bin/tsc --project "$work"
    node --experimental-strip-types --no-warnings "$work/flow.ts"
    ;;
  python)
    fetch openapi.json
    bin=$("$ci/python-env" requirements-generated.txt)
    PATH=$bin:$PATH without_warnings openapi-python-client generate --config generated_flow.yml \
      --fail-on-warning --meta none --path "$document" \
      --output-path "$work/sidetone_client"
    PYTHONPATH=$work "$bin/python" generated_flow.py
    ;;
  # openapi-generator and progenitor read OpenAPI 3.0: the first calls its support of 3.1 a beta, the second has none.
  java)
    fetch openapi-3.0.json
    without deep-objects
    openapi_generator java "$work/java" --library native --additional-properties openApiNullable=false
    # The generator's own program brings Jackson.
    jackson=$("$bin/python" -c 'import openapi_generator_cli as cli; print(cli.__path__[0])')/openapi-generator.jar
    classes=$work/classes:$jackson:$("$ci/java")
    find "$work/java/src/main" -name '*.java' >"$work/sources"
    without_warnings javac -encoding UTF-8 -proc:none -cp "$classes" -d "$work/classes" @"$work/sources" GeneratedFlow.java
    java -XX:TieredStopAtLevel=1 -cp "$classes" GeneratedFlow
    ;;
  go)
    fetch openapi-3.0.json
    # Two names of parameters are words of Go's own, and enums share their names.
    openapi_generator go "$work/go" --git-host example.com --git-user-id sidetone --git-repo-id client \
      --additional-properties enumClassPrefix=true --parameter-name-mappings Range=byteRange,type=kind \
      --model-name-mappings type=EventType
    mkdir "$work/go/flow"
    cp generated_flow.go "$work/go/flow/main.go"
    export GOPROXY=off GOTOOLCHAIN=local GOENV=off GOCACHE=$cache/go CGO_ENABLED=0
    without_warnings "$bin/go" -C "$work/go" vet ./...
    "$bin/go" -C "$work/go" run ./flow
    ;;
  rust)
    fetch openapi-3.0.json
    without deep-objects no-content
    # Its dependencies are compiled once. Two runs at once take turns.
    CARGO_TARGET_DIR=$cache/progenitor-$(sha256sum progenitor/Cargo.lock | cut -c1-12)
    exec 9>"$CARGO_TARGET_DIR.lock"
    flock 9
    export CARGO_TARGET_DIR SIDETONE_OPENAPI=$document
    without_warnings cargo build --quiet --locked --manifest-path progenitor/Cargo.toml
    "$CARGO_TARGET_DIR/debug/progenitor-flow"
    ;;
  *) echo "no generator for $1"; exit 2 ;;
esac
