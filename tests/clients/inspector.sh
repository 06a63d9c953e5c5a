#!/usr/bin/env bash
# inspector.sh ERA (legacy, auto, modern): the Inspector's command line lists the tools, strictly, and calls some.
set -euo pipefail
cd "$(dirname "$0")"

era=$1
HOME=$(mktemp -d) # the Inspector writes to the home folder
export HOME
trap 'rm -rf "$HOME"' EXIT

inspect() {
  node_modules/.bin/mcp-inspector --cli --server-url "$SIDETONE_URL/mcp" --transport http --protocol-era "$era" \
    --header "Authorization: Bearer $SIDETONE_KEY" --stored-auth-only --format json "$@"
}
field() { node -p "JSON.parse(require('fs').readFileSync(0, 'utf8')).$1"; }

# A finding with severity error causes status 6.
inspect --method tools/list --strict | field 'result.tools.length + " tools"'

call() { inspect --method tools/call --tool-name "$@"; }
id=$(call create_assistant --tool-args-json '{"data":{"name":"Inspected","instructions":"Say little."}}' |
  field result.structuredContent.id)
call get_assistant --tool-arg "id=$id" | field result.structuredContent.name
call list_assistants | field 'result.structuredContent.items.length > 0'
call delete_assistant --tool-args-json "{\"id\":\"$id\"}" >/dev/null

# A rejected call causes status 5 and prints the REST error.
status=0
refusal=$(call get_assistant --tool-arg "id=$id") || status=$?
echo "reading a deleted assistant: status $status, $(field result.structuredContent.error.code <<<"$refusal")"
[[ $status == 5 && $refusal == *not_found* ]]

# An invalid key causes status 3.
status=0
SIDETONE_KEY=wrong inspect --method tools/list >/dev/null 2>&1 || status=$?
echo "a wrong key: status $status"
[[ $status == 3 ]]
