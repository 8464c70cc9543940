// Responses: whole, streamed, with tools, forms and reasoning, and gone on from.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import OpenAI from 'openai';

import {serve} from './server.mjs';

const server = await serve();
const client = server.client();
const model = 'gauntlet-tiny';
const input = 'Tell me about a cat.';
const tools = [{
  type: 'function',
  name: 'get_weather',
  description: 'The weather of a city.',
  parameters: {
    type: 'object',
    properties: {city: {type: 'string', maxLength: 12}},
    required: ['city'],
    additionalProperties: false,
  },
  strict: true,
}];
const format = {
  type: 'json_schema',
  name: 'person',
  strict: true,
  schema: {
    type: 'object',
    properties: {age: {type: 'integer', minimum: 0, maximum: 150}},
    required: ['age'],
    additionalProperties: false,
  },
};

test('answers', async () => {
  const response = await client.responses.create(
      {model, input, instructions: 'Be brief.', max_output_tokens: 24, metadata: {a: 'b'}, user: 'me'});
  assert.match(response.id, /^resp_/);
  assert.equal(response.object, 'response');
  assert.ok(['completed', 'incomplete'].includes(response.status));
  assert.equal(typeof response.output_text, 'string');
  assert.equal(response.usage.total_tokens, response.usage.input_tokens + response.usage.output_tokens);
  assert.equal(typeof response.usage.input_tokens_details.cached_tokens, 'number');
  assert.deepEqual(response.metadata, {a: 'b'});
  if (response.status === 'incomplete') assert.equal(response.incomplete_details.reason, 'max_output_tokens');
});

test("streams what the client's own gathering understands", async () => {
  const request = {model, input, max_output_tokens: 40, seed: 7};
  const whole = await client.responses.create(request);
  const stream = client.responses.stream(request);
  let number = 0;
  let text = '';
  for await (const event of stream) {
    assert.equal(event.sequence_number, number++);
    if (event.type === 'response.output_text.delta') text += event.delta;
  }
  const gathered = await stream.finalResponse();
  assert.equal(text, whole.output_text);
  assert.equal(gathered.output_text, whole.output_text);
  assert.equal(gathered.status, whole.status);
});

test('calls a function, and goes on with what that gave', async () => {
  const first = await client.responses.create({model, input, tools, tool_choice: 'required', max_output_tokens: 300});
  const call = first.output.find(({type}) => type === 'function_call');
  assert.equal(call.name, 'get_weather');
  assert.deepEqual(Object.keys(JSON.parse(call.arguments)), ['city']);
  const output = {type: 'function_call_output', call_id: call.call_id, output: '{"degrees": 21}'};
  const kept = await client.responses.create(
      {model, input: [output], tools, previous_response_id: first.id, max_output_tokens: 8});
  const sent = await client.responses.create(
      {model, input: [{role: 'user', content: input}, ...first.output, output], tools, store: false, max_output_tokens: 8});
  assert.equal(kept.usage.input_tokens, sent.usage.input_tokens);
  assert.equal(kept.previous_response_id, first.id);

  const streamed = await client.responses.stream(
      {model, input, tools, tool_choice: {type: 'function', name: 'get_weather'}, max_output_tokens: 300}).finalResponse();
  JSON.parse(streamed.output.find(({type}) => type === 'function_call').arguments);
});

test('satisfies a schema, after reasoning and without', async () => {
  for (const more of [{}, {reasoning: {effort: 'low'}}]) {
    const response = await client.responses.parse({model, input, text: {format}, max_output_tokens: 400, ...more});
    assert.equal(response.status, 'completed');
    assert.ok(Number.isInteger(JSON.parse(response.output_text).age));
  }
});

test('takes its reasoning back', async () => {
  const reasoning = {type: 'reasoning', id: 'rs_1', summary: [], content: [{type: 'reasoning_text', text: 'A call is needed.'}]};
  const call = {type: 'function_call', call_id: 'c1', name: 'get_weather', arguments: '{"city":"Oslo"}'};
  const output = {type: 'function_call_output', call_id: 'c1', output: 'rain'};
  const ask = async (...items) => (await client.responses.create(
      {model, input: [{role: 'user', content: input}, ...items], tools, max_output_tokens: 1})).usage.input_tokens;
  assert.ok(await ask(reasoning, call, output) > await ask(call, output));
});

test('keeps a response until it is deleted', async () => {
  const {id, output_text} = await client.responses.create({model, input, max_output_tokens: 8});
  assert.equal((await client.responses.retrieve(id)).output_text, output_text);
  await assert.rejects(client.responses.cancel(id), OpenAI.BadRequestError);
  await client.responses.delete(id);
  await assert.rejects(client.responses.retrieve(id), OpenAI.NotFoundError);
  const unkept = await client.responses.create({model, input, store: false, max_output_tokens: 8});
  await assert.rejects(client.responses.retrieve(unkept.id), OpenAI.NotFoundError);
});
