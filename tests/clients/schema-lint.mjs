// Checks every tool against the strictest clients and model APIs: one unsupported schema makes some
// of them drop the tool, others the whole list. The Inspector's own `--strict` covers only part of this.
import assert from 'node:assert/strict';
import { headers, url } from './flow.mjs';

const KEYWORDS = new Set(
  ('type properties required items enum description minimum maximum minLength maxLength pattern ' +
    'additionalProperties format').split(' '),
);
const TYPES = new Set('object array string integer number boolean'.split(' '));
const PAID = new Set(['create_outbound_call', 'start_simulation_run', 'start_simulation_batch', 'start_inline_simulation']);
const findings = [];

async function list(params, extra = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, ...extra, 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params }),
  });
  const { result } = await response.json();
  assert.ok(result, `tools/list answered ${response.status}`);
  return result;
}

function lintSchema(where, schema) {
  const say = (what) => findings.push(`${where}: ${what}`);
  if (schema === null || typeof schema !== 'object' || Array.isArray(schema)) return say('is not a plain schema');
  for (const keyword of Object.keys(schema)) {
    if (!KEYWORDS.has(keyword)) say(`has "${keyword}"`);
  }
  const { type, properties, required, items } = schema;
  if (!TYPES.has(type)) return say(`type is ${JSON.stringify(type)}, not one plain type`);
  if ('format' in schema && schema.format !== 'date-time') say(`format "${schema.format}"`);
  if ('enum' in schema) {
    const good = type === 'string' && schema.enum.length > 0 && schema.enum.every((v) => typeof v === 'string');
    if (!good) say('an enum of something other than strings');
  }
  if (type === 'array') items === undefined ? say('an array without items') : lintSchema(`${where}[]`, items);
  if (type !== 'object') return;
  if (properties === undefined) return say('an object without properties');
  if (!['boolean', 'undefined'].includes(typeof schema.additionalProperties)) say('additionalProperties is a schema');
  if (schema.additionalProperties && Object.keys(properties).length > 0) say('additionalProperties beside properties');
  for (const name of required ?? []) {
    if (!(name in properties)) say(`requires "${name}", which is not a property`);
  }
  for (const [name, property] of Object.entries(properties)) {
    if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(name)) say(`the property name "${name}"`);
    lintSchema(`${where}.${name}`, property);
  }
}

function lintTool(tool) {
  const say = (what) => findings.push(`${tool.name}: ${what}`);
  if (!/^[a-z][a-z0-9_]{0,39}$/.test(tool.name)) say('the name');
  for (const [key, value] of Object.entries(tool)) if (value === null) say(`"${key}" is null`);
  if (typeof tool.title !== 'string') say('no title');
  if (typeof tool.description !== 'string' || tool.description === '') say('no description');
  if (tool.description?.length > 2048) say('a description that clients cut off at 2048 characters');
  if ('outputSchema' in tool) say('an output schema, which makes a client reject error results');
  // Missing hints default to destructive and open-world.
  for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint']) {
    if (typeof tool.annotations?.[hint] !== 'boolean') say(`${hint} is not said`);
  }
  const { inputSchema: schema } = tool;
  lintSchema(tool.name, schema);
  if (schema.type !== 'object' || schema.additionalProperties !== false) say('the root is not a closed object');
  if (!Array.isArray(schema.required)) say('the root does not say what is required');
  const { data, if_revision, confirm } = schema.properties ?? {};
  if (data && data.type !== 'object') say('data is not an object');
  if (if_revision && if_revision.type !== 'integer') say('if_revision is not an integer');
  if (confirm && confirm.type !== 'boolean') say('confirm is not a boolean');
  if (PAID.has(tool.name) !== Boolean(confirm && schema.required?.includes('confirm'))) {
    say('confirm belongs to paid actions, and is required there');
  }
}

const legacy = await list({}, { 'MCP-Protocol-Version': '2025-11-25' });
const modern = await list(
  {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
  { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' },
);
assert.deepEqual(legacy.tools, modern.tools, 'both eras list the same tools');
const { tools } = modern;
if ('nextCursor' in modern || 'nextCursor' in legacy) findings.push('there is a nextCursor: not all tools are on one page');
if (tools.length > 128) findings.push(`${tools.length} tools; some clients take no more than 128`);
if (new Set(tools.map((tool) => tool.name)).size !== tools.length) findings.push('a name occurs twice');
tools.forEach(lintTool);

for (const finding of findings) console.error(finding);
console.log(`${tools.length} tools, ${JSON.stringify(tools).length} bytes, ${findings.length} findings`);
process.exitCode = findings.length ? 1 : 0;
