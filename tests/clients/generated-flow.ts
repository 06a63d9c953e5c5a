// The flow of the client that openapi-typescript made: it compiles only if the document says what the service does.
import createClient from 'openapi-fetch';

import type { components, paths } from './schema.ts';

declare const process: { env: Record<string, string>; exit(code: number): never };
declare const console: { log(text: string): void };
declare const setTimeout: (then: () => void, ms: number) => void;

const { SIDETONE_URL, SIDETONE_KEY } = process.env;
const client = createClient<paths>({ baseUrl: SIDETONE_URL!, headers: { Authorization: `Bearer ${SIDETONE_KEY}` } });

function ok<T>(answer: { data?: T; error?: unknown; response: { status: number } }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}
function must(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

const assistant: components['schemas']['Assistant'] = ok(
  await client.POST('/assistants', { body: { name: 'Harbour Dental', instructions: 'You answer the telephone.', first_message: 'Harbour Dental, hello.' } }),
);
const listed = ok(await client.GET('/assistants', { params: { query: { limit: 20 } } }));
must(listed.some(({ id }) => id === assistant.id), 'the assistant is in the list');

const persona = ok(await client.POST('/simulations/personas', { body: { name: 'Mira', system_prompt: 'A caller in a hurry.' } }));
const scenario = ok(
  await client.POST('/simulations/scenarios', {
    body: { name: 'A greeting', instructions: 'Say: "Hello."', evaluations: [{ kind: 'transcript', role: 'assistant', includes: 'hello' }] },
  }),
);
const simulation = ok(
  await client.POST('/simulations', { body: { assistant_id: assistant.id, persona_id: persona.id, scenario_id: scenario.id } }),
);
const { id } = ok(await client.POST('/simulations/{id}/runs', { params: { path: { id: simulation.id } }, body: { mode: 'chat', seed: 7 } }));
let run = ok(await client.GET('/simulations/runs/{id}', { params: { path: { id } } }));
for (let tries = 0; run.status !== 'completed' && tries < 1200; tries += 1) {
  await new Promise<void>((then) => setTimeout(then, 100));
  run = ok(await client.GET('/simulations/runs/{id}', { params: { path: { id } } }));
}
must(run.passed === true, `the run has not passed: ${JSON.stringify(run)}`);
must(run.evaluations[0]?.passed === true && run.call?.transcript?.[0]?.role === 'assistant', 'the run has evaluations and its call a transcript');

const refused = await client.POST('/assistants', { body: { name: '', instructions: 'x' } });
must(refused.error?.error.code === 'validation_failed', 'an error has its type, too');
console.log(`openapi-typescript: a run of ${run.call?.transcript?.length} rows passed`);
