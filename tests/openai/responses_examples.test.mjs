// OpenAI's own examples of responses: text, streams, tools, forms read by zod, reasoning sent back, and what is kept.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import OpenAI from 'openai';
import {zodResponsesFunction, zodTextFormat} from 'openai/helpers/zod';
import {z} from 'zod';

import {serve} from './server.mjs';

const server = await serve();
const client = server.client();
const model = 'gauntlet-tiny';

const MathResponse = z.object({
  steps: z.array(z.object({explanation: z.string().max(12), output: z.string().max(8)})).max(2),
  final_answer: z.string().max(8),
});
const Query = z.object({
  table_name: z.enum(['orders', 'customers', 'products']),
  columns: z.array(z.enum(['id', 'status', 'expected_delivery_date'])).max(2),
  conditions: z.array(z.object({
    column: z.string().max(6),
    operator: z.enum(['=', '>', '<', '<=', '>=', '!=']),
    value: z.union([z.string().max(6), z.number(), z.object({column_name: z.string().max(6)})]),
  })).max(1),
  order_by: z.enum(['asc', 'desc']),
});
const query = zodResponsesFunction({name: 'query', parameters: Query});
const system = 'You are a helpful assistant. The current date is August 6, 2024.';
const orders = 'look up all my orders in november of last year';

/** What must hold of a stream's events in their order, whatever they say. Returns the last one's response. */
function check_events(events) {
  assert.deepEqual(events.map(({sequence_number}) => sequence_number), events.map((_, i) => i));
  assert.deepEqual(events.slice(0, 2).map(({type}) => type), ['response.created', 'response.in_progress']);
  assert.match(events.at(-1).type, /^response\.(completed|incomplete|failed)$/);
  const items = [];
  let open;  // what the item under way is made of
  for (const event of events.slice(2, -1)) {
    if (event.type === 'response.output_item.added') {
      assert.equal(open, undefined, 'an item begins within another');
      assert.equal(event.output_index, items.length);
      assert.equal(event.item.status, 'in_progress');
      open = {item: event.item, text: '', parts: 0, ended: 0};
      continue;
    }
    assert.ok(open, `${event.type} outside an item`);
    assert.equal(event.output_index, items.length);
    if (event.type === 'response.output_item.done') {
      const {item} = event;
      assert.equal(item.id, open.item.id);
      assert.equal(open.ended, 1, 'its text was not said to be done');
      const said = item.type === 'function_call' ? item.arguments : item.content[0].text;
      assert.equal(open.text, said);
      assert.equal(open.parts, item.type === 'function_call' ? 0 : 2);
      items.push(item);
      open = undefined;
      continue;
    }
    assert.equal(event.item_id, open.item.id);
    const [kind, phase] = {
      message: ['response.output_text', 'text'],
      reasoning: ['response.reasoning_text', 'text'],
      function_call: ['response.function_call_arguments', 'arguments'],
    }[open.item.type];
    if (event.type === `${kind}.delta`) {
      assert.ok(!open.ended);
      open.text += event.delta;
    } else if (event.type === `${kind}.done`) {
      assert.equal(event[phase], open.text);
      ++open.ended;
    } else {
      assert.match(event.type, /^response\.content_part\.(added|done)$/);
      assert.equal(event.content_index, 0);
      ++open.parts;
    }
  }
  assert.equal(open, undefined, 'an item never ends');
  const {response} = events.at(-1);
  assert.deepEqual(response.output, items);
  assert.equal(`response.${response.status}`, events.at(-1).type);
  return response;
}

async function events_of(request) {
  const events = [];
  for await (const event of await client.responses.create({...request, stream: true})) events.push(event);
  return events;
}

test('text', async () => {
  const response = await client.responses.create({
    model, instructions: 'You are a coding assistant that talks like a pirate.',
    input: 'Are semicolons optional in JavaScript?', max_output_tokens: 30, temperature: 0,
  });
  assert.ok(response.output_text.length > 0);
  assert.equal(response.error, null);
  assert.ok(response.usage.input_tokens_details.cached_tokens >= 0);
  assert.ok(response.usage.output_tokens_details.reasoning_tokens >= 0);
  const again = await client.responses.create({
    model, instructions: 'You are a coding assistant that talks like a pirate.',
    input: 'Are semicolons optional in JavaScript?', max_output_tokens: 30, temperature: 0,
  });
  assert.equal(again.output_text, response.output_text);
  assert.ok(again.usage.input_tokens_details.cached_tokens > 0, 'the same prompt was computed twice');
});

test('stream, whose events tell how the whole answer comes about', async () => {
  for (let seed = 0; seed < 20; ++seed) {
    const request = {model, input: 'Say "Sheep sleep deep" ten times fast!', max_output_tokens: 40, seed};
    const [events, whole] = [await events_of(request), await client.responses.create(request)];
    const response = check_events(events);
    assert.deepEqual(response.output.map(({id, ...item}) => item), whole.output.map(({id, ...item}) => item));
    assert.deepEqual({...response.usage, input_tokens_details: 0}, {...whole.usage, input_tokens_details: 0});
  }
});

test('stream with helpers and a form', async () => {
  const deltas = [];
  const runner = client.responses.stream({
    model, input: 'solve 8x + 31 = 2', text: {format: zodTextFormat(MathResponse, 'math_response')}, max_output_tokens: 900, seed: 1,
  }).on('response.output_text.delta', ({delta, snapshot}) => deltas.push([delta, snapshot]));
  const result = await runner.finalResponse();
  assert.equal(result.status, 'completed');
  MathResponse.parse(result.output_parsed);
  assert.equal(deltas.map(([delta]) => delta).join(''), result.output_text);
  assert.equal(deltas.at(-1)[1], result.output_text);
});

test('structured outputs', async () => {
  for (const more of [{}, {reasoning: {effort: 'low'}}, {reasoning: {effort: 'high', summary: 'auto'}}]) {
    const response = await client.responses.parse({
      model, input: 'solve 8x + 31 = 2', text: {format: zodTextFormat(MathResponse, 'math_response')}, max_output_tokens: 1200, ...more,
    });
    assert.equal(response.status, 'completed');
    MathResponse.parse(response.output_parsed);
    // As it came, with what the client made of it.
    const next = await client.responses.create(
        {model, input: [{role: 'user', content: 'solve 8x + 31 = 2'}, ...response.output, {role: 'user', content: 'And then?'}], max_output_tokens: 4});
    assert.ok(next.usage.input_tokens > response.usage.input_tokens);
  }
});

test('structured outputs of tools', async () => {
  const response = await client.responses.parse({
    model, input: [{role: 'system', content: system}, {role: 'user', content: orders}], tools: [query], tool_choice: 'required',
    max_output_tokens: 900,
  });
  const call = response.output.find(({type}) => type === 'function_call');
  Query.parse(call.parsed_arguments);
  const next = await client.responses.create({
    model, tools: [query], max_output_tokens: 4,
    input: [{role: 'user', content: orders}, ...response.output, {type: 'function_call_output', call_id: call.call_id, output: '[]'}],
  });
  assert.equal(next.object, 'response');
});

test('streaming tools', async () => {
  for (let seed = 0; seed < 5; ++seed) {
    const request = {model, input: orders, tools: [query], tool_choice: 'required', max_output_tokens: 900, seed};
    const response = check_events(await events_of(request));
    assert.equal(response.status, 'completed');
    Query.parse(JSON.parse(response.output.at(-1).arguments));
    const stream = client.responses.stream(request);
    const final = await stream.finalResponse();
    Query.parse(final.output.at(-1).parsed_arguments);
  }
});

test('a loop of calls and their outputs, by items and by id', async () => {
  const tools = [{
    type: 'function', name: 'get_weather', description: null, strict: true,
    parameters: {type: 'object', properties: {city: {type: 'string', maxLength: 8}}, required: ['city'], additionalProperties: false},
  }];
  const input = [{role: 'user', content: 'What is the weather like in Paris today?'}];
  const seen = [];
  let previous;
  for (let turn = 0; turn < 3; ++turn) {
    const request = {model, tools, tool_choice: 'required', parallel_tool_calls: false, max_output_tokens: 200, seed: turn};
    const response = await client.responses.create({...request, input});
    seen.push(response.usage.input_tokens);
    const call = response.output.at(-1);
    assert.equal(call.type, 'function_call');
    const output = {type: 'function_call_output', call_id: call.call_id, output: JSON.stringify({degrees: turn})};
    const chained = await client.responses.create({...request, previous_response_id: response.id, input: [output]});
    previous = chained;
    input.push(...response.output, output);
    const sent = await client.responses.create({...request, input});
    assert.equal(chained.usage.input_tokens, sent.usage.input_tokens);
    assert.equal(chained.output.at(-1).arguments, sent.output.at(-1).arguments);
  }
  assert.ok(seen[0] < seen[1] && seen[1] < seen[2]);
  assert.ok(previous.previous_response_id);
});

test('reasoning is replayed by items, by id, by name, and by what a client cannot read', async () => {
  const tools = [{type: 'function', name: 'f', parameters: {type: 'object', properties: {}, additionalProperties: false}}];
  const input = [{role: 'user', content: 'Go.'}];
  const logit_bias = await server.toward_reasoning();
  let replayed = 0;
  for (let seed = 0; seed < 3; ++seed) {
    const request = {model, tools, tool_choice: 'required', reasoning: {effort: 'low'}, max_output_tokens: 200, seed, logit_bias};
    const first = await client.responses.create({...request, input, include: ['reasoning.encrypted_content']});
    const [reasoning, call] = [first.output.find(({type}) => type === 'reasoning'), first.output.at(-1)];
    if (!reasoning || call.type !== 'function_call') continue;
    ++replayed;
    assert.ok(first.usage.output_tokens_details.reasoning_tokens > 0);
    const output = {type: 'function_call_output', call_id: call.call_id, output: 'done'};
    const tokens = async (more) => (await client.responses.create({...request, ...more, max_output_tokens: 1})).usage.input_tokens;
    const by_items = await tokens({input: [...input, ...first.output, output]});
    assert.ok(by_items > await tokens({input: [...input, call, output]}));
    assert.equal(await tokens({input: [output], previous_response_id: first.id}), by_items);
    const names = first.output.map(({id}) => ({type: 'item_reference', id}));
    assert.equal(await tokens({input: [...input, ...names, output]}), by_items);
    const {id, encrypted_content} = reasoning;
    const unread = {type: 'reasoning', id, summary: [], encrypted_content};
    assert.equal(await tokens({input: [...input, unread, call, output], store: false}), by_items);
  }
  assert.equal(replayed, 3, 'it did not reason');
});

test('retrieve, cancel and delete', async () => {
  const stream = await client.responses.create({model, input: 'Go on.', max_output_tokens: 3000, ignore_eos: true, stream: true});
  let id;
  const events = [];
  for await (const event of stream) {
    events.push(event);
    if (event.type === 'response.created') {
      ({response: {id}} = event);
      assert.equal((await client.responses.retrieve(id)).status, 'in_progress');
      assert.equal((await client.responses.cancel(id)).status, 'cancelled');
    }
  }
  assert.equal(check_events(events).status, 'failed');
  await assert.rejects(client.responses.retrieve(id), OpenAI.NotFoundError);

  const kept = await client.responses.create({model, input: 'Hi.', max_output_tokens: 8});
  const {output_text, ...found} = await client.responses.retrieve(kept.id);
  assert.equal(output_text, kept.output_text);
  assert.deepEqual(found.output, kept.output);
  await client.responses.delete(kept.id);
  await assert.rejects(client.responses.delete(kept.id), OpenAI.NotFoundError);
  await assert.rejects(client.responses.create({model, input: 'Hi.', previous_response_id: kept.id}), OpenAI.NotFoundError);
});

test('what changes nothing is taken, and the tier is said', async () => {
  const response = await client.responses.create({
    model, input: 'Hi.', max_output_tokens: 4, service_tier: 'flex', text: {verbosity: 'low'}, prompt_cache_key: 'k', prompt_cache_retention: '24h',
    safety_identifier: 's', metadata: {a: 'b'}, truncation: 'disabled', max_tool_calls: 3, background: false, conversation: null,
    stream_options: null, reasoning: {effort: 'minimal', summary: 'auto', context: 'auto'},
  });
  assert.equal(response.service_tier, 'default');
  assert.equal(response.text.verbosity, 'low');
  assert.equal(response.reasoning.effort, 'minimal');
});
