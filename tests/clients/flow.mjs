// The steps of every JavaScript client: lists the tools, then takes an assistant from its creation through a passed
// simulation to its deletion, including rejected calls.
// `client` offers listTools(cursor) and call(name, arguments), whichever SDK is behind it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

export const url = new URL('/mcp', required('SIDETONE_URL'));
export const headers = { Authorization: `Bearer ${required('SIDETONE_KEY')}` };

function required(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

/** Runs all steps; throws at the first failure. */
export async function check(client) {
  const count = await checkTools(client);
  await checkFlow(client);
  return `${count} tools, flow passed`;
}

async function checkTools(client) {
  const page = await client.listTools();
  assert.equal(page.nextCursor, undefined, 'all tools fit one page, since many clients read only one');
  assert.ok(page.tools.length >= 40, `only ${page.tools.length} tools`);
  for (const tool of page.tools) {
    assert.match(tool.name, /^[a-z][a-z0-9_]{0,39}$/);
    assert.ok(tool.description?.length > 0, `${tool.name} has no description`);
    assert.equal(tool.outputSchema, undefined, `${tool.name} declares an output schema`);
  }
  const names = page.tools.map((tool) => tool.name);
  assert.equal(new Set(names).size, names.length, 'a name occurs twice');
  return names.length;
}

async function checkFlow(client) {
  const ok = async (name, args = {}) => {
    const result = await client.call(name, args);
    assert.ok(!result.isError, `${name} failed: ${JSON.stringify(result.content)}`);
    return result.structuredContent;
  };
  // A rejection is a tool result with the REST error, never a protocol error.
  const refused = async (code, name, args) => {
    const result = await client.call(name, args);
    assert.equal(result.isError, true, `${name} succeeded: ${JSON.stringify(result)}`);
    assert.equal(result.structuredContent?.error?.code, code, JSON.stringify(result));
    assert.equal(JSON.parse(result.content[0].text).error.code, code, 'the text contains the same error');
    return result.structuredContent.error;
  };

  const created = await ok('create_assistant', {
    data: { name: 'Harbour Dental', instructions: 'You answer the phone of a dental practice.' },
  });
  assert.equal(created.name, 'Harbour Dental');
  const id = created.id;
  assert.deepEqual(await ok('get_assistant', { id }), created);

  const first_message = 'Good morning, Harbour Dental. How can I help?';
  const updated = await ok('update_assistant', { id, if_revision: created.revision, data: { first_message } });
  assert.equal(updated.first_message, first_message);
  assert.equal(updated.revision, created.revision + 1);
  const stale = await refused('revision_conflict', 'update_assistant', {
    id,
    if_revision: created.revision,
    data: { name: 'Too late' },
  });
  assert.equal(stale.details.current, updated.revision);
  const field = await refused('validation_failed', 'create_assistant', { data: { name: 'No instructions' } });
  assert.deepEqual(field.details.fields.map((f) => f.field), ['instructions']);

  const persona = await ok('create_simulation_persona', {
    data: { name: 'Polite caller', system_prompt: 'You are polite and brief.' },
  });
  // Some clients send objects as JSON text.
  const scenario = await ok('create_simulation_scenario', {
    data: JSON.stringify({
      name: 'Opening hours',
      instructions: 'Say "When are you open on Friday?" and then say goodbye.',
      evaluations: [
        { kind: 'transcript', role: 'assistant', includes: 'harbour dental' },
        { kind: 'transcript', role: 'user', includes: 'open on friday' },
      ],
    }),
  });
  const simulation = await ok('create_simulation', {
    data: { assistant_id: id, persona_id: persona.id, scenario_id: scenario.id },
  });

  await refused('confirmation_required', 'start_simulation_run', { id: simulation.id, data: { mode: 'chat' } });
  const started = await ok('start_simulation_run', { id: simulation.id, data: { mode: 'chat' }, confirm: true });
  assert.equal(started.simulation_id, simulation.id);
  const run = await finished(() => ok('get_simulation_run', { id: started.id }));
  assert.equal(run.status, 'completed', JSON.stringify(run));
  assert.equal(run.passed, true, JSON.stringify(run));
  assert.deepEqual(run.evaluations.map((e) => e.passed), [true, true]);
  assert.ok(run.call.transcript.length > 0, 'the call of the run contains the transcript');

  const list = await client.call('list_assistants', {});
  assert.ok(list.structuredContent.items.some((item) => item.id === id));
  assert.deepEqual(JSON.parse(list.content[0].text), list.structuredContent.items, 'the text is the REST response');

  await assert.rejects(client.call('no_such_tool', {}), 'an unknown tool is a protocol error');

  await ok('delete_simulation_run', { id: run.id });
  await ok('delete_assistant', { id, if_revision: updated.revision });
  await refused('not_found', 'get_assistant', { id });
  await ok('delete_simulation_persona', { id: persona.id });
  await ok('delete_simulation_scenario', { id: scenario.id });
}

/** Reads until the run has left `queued` and `running`. */
async function finished(read) {
  for (let waited = 0; waited < 30_000; waited += 100) {
    const run = await read();
    if (run.status !== 'queued' && run.status !== 'running') return run;
    await sleep(100);
  }
  throw new Error('the run did not finish in 30 s');
}
