// The official TypeScript client, 2.x. Argument: legacy (starts with `initialize`), auto (negotiates the
// revision) or a required revision, such as 2026-07-28.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { check, headers, url } from './flow.mjs';

const [mode = 'auto'] = process.argv.slice(2);
const versionNegotiation = { mode: /^\d/.test(mode) ? { pin: mode } : mode };
const client = new Client({ name: 'sidetone-check', version: '2' }, { versionNegotiation });
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
const revision = client.getNegotiatedProtocolVersion();
assert.equal(revision, mode === 'legacy' ? '2025-11-25' : '2026-07-28');
const done = await check({
  listTools: () => client.listTools(),
  call: (name, args) => client.callTool({ name, arguments: args }),
});
console.log(`revision ${revision}, ${done}`);
await client.close();
