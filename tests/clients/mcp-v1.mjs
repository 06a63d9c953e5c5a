// The official TypeScript client, 1.x (starts with `initialize`).
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { check, headers, url } from './flow.mjs';

const client = new Client({ name: 'sidetone-check', version: '1' });
await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
console.log(
  await check({
    listTools: () => client.listTools(),
    call: (name, args) => client.callTool({ name, arguments: args }),
  }),
);
await client.close();
