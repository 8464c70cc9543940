// Models and conversations.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {eventually, serve} from './server.mjs';

const server = await serve();
const client = server.client();
const model = 'gauntlet-tiny';
const messages = [{role: 'system', content: 'Be brief.'}, {role: 'user', content: 'Tell me about a cat.'}];

test('lists its model', async () => {
  const ids = [];
  for await (const one of client.models.list()) ids.push(one.id);
  assert.deepEqual(ids, [model]);
  assert.equal((await client.models.retrieve(model)).object, 'model');
});

test('answers', async () => {
  const {data, response} = await client.chat.completions
      .create({model, messages, max_completion_tokens: 24, seed: 1}).withResponse();
  assert.match(data.id, /^chatcmpl-/);
  assert.equal(data.object, 'chat.completion');
  assert.equal(data.model, model);
  assert.equal(data.choices.length, 1);
  const [{message, finish_reason}] = data.choices;
  assert.equal(message.role, 'assistant');
  assert.equal(typeof message.content, 'string');
  assert.ok(['stop', 'length'].includes(finish_reason));
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
  assert.ok(data.usage.completion_tokens <= 24);
  assert.ok(response.headers.get('x-request-id'));
});

test('says the same again by a seed, and in a stream', async () => {
  const request = {model, messages, max_tokens: 40, seed: 7, temperature: 0.8};
  const [first, second] = await Promise.all([1, 2].map(() => client.chat.completions.create(request)));
  assert.equal(first.choices[0].message.content, second.choices[0].message.content);

  let content = '';
  let finish_reason;
  let usage;
  let num_roles = 0;
  const stream = await client.chat.completions.create({...request, stream: true, stream_options: {include_usage: true}});
  for await (const chunk of stream) {
    assert.equal(chunk.object, 'chat.completion.chunk');
    if (chunk.choices.length === 0) {
      usage = chunk.usage;
      continue;
    }
    assert.equal(usage, undefined, 'usage comes last');
    const [choice] = chunk.choices;
    if (choice.delta.role) ++num_roles;
    content += choice.delta.content ?? '';
    finish_reason ??= choice.finish_reason;
  }
  assert.equal(num_roles, 1);
  assert.equal(content, first.choices[0].message.content);
  assert.equal(finish_reason, first.choices[0].finish_reason);
  assert.equal(usage.total_tokens, first.usage.total_tokens);
});

test("is understood by the client's own gathering of a stream", async () => {
  const runner = client.chat.completions.stream({model, messages, n: 2, max_tokens: 30, seed: 3});
  const gathered = await runner.finalChatCompletion();
  const whole = await client.chat.completions.create({model, messages, n: 2, max_tokens: 30, seed: 3});
  assert.deepEqual(gathered.choices.map(({index, message}) => [index, message.content]),
                   whole.choices.map(({index, message}) => [index, message.content]));
});

test('takes content in parts, and earlier turns', async () => {
  const answer = await client.chat.completions.create({
    model, max_tokens: 4,
    messages: [{role: 'user', content: [{type: 'text', text: 'A '}, {type: 'text', text: 'cat.'}]},
               {role: 'assistant', content: 'Yes?'}, {role: 'user', content: 'Where?', name: 'bob'}],
  });
  assert.equal(answer.choices[0].message.role, 'assistant');
});

test('shows log-probabilities of what it says', async () => {
  const {choices: [{message, logprobs}]} = await client.chat.completions.create({
    model, messages, temperature: 0, max_tokens: 60, logprobs: true, top_logprobs: 4,
    response_format: {type: 'json_schema', json_schema: {name: 'it', schema: {enum: ['one', 'two words', 'three']}}},
  });
  assert.equal(Buffer.from(logprobs.content.flatMap(({bytes}) => bytes)).toString(), message.content);
  assert.equal(logprobs.content.map(({token}) => token).join(''), message.content);
  for (const {logprob, top_logprobs} of logprobs.content) {
    assert.ok(logprob <= 0);
    assert.equal(top_logprobs.length, 4);
    const all = top_logprobs.map((top) => top.logprob);
    assert.deepEqual(all, [...all].sort((a, b) => b - a));
    assert.ok(all[0] >= logprob);
  }
});

test('frees the pages of a reader that goes away', async () => {
  const stream = await client.chat.completions.create(
      {model, messages, stream: true, max_tokens: 3500, seed: 2, ignore_eos: true});
  let num_chunks = 0;
  for await (const chunk of stream) {
    assert.equal(chunk.choices[0].finish_reason, null);
    if (++num_chunks === 3) break;  // which aborts the request
  }
  await eventually('nothing runs', async () => await server.metric('gauntlet:num_requests_running') === 0);
  assert.equal(await server.metric('gauntlet:kv_cache_usage_perc'), 0);

  const controller = new AbortController();
  const answer = client.chat.completions.create(
      {model, messages, max_tokens: 3500, ignore_eos: true}, {signal: controller.signal});
  await eventually('it runs', async () => await server.metric('gauntlet:num_requests_running') === 1);
  controller.abort();
  await assert.rejects(answer, {name: 'Error', message: /abort/i});
  await eventually('nothing runs', async () => await server.metric('gauntlet:num_requests_running') === 0);
});
