// What goes wrong, as the client's own errors.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import OpenAI from 'openai';

import {eventually, serve} from './server.mjs';

const model = 'gauntlet-tiny';
const messages = [{role: 'user', content: 'hi'}];
const open = await serve('--max-sequences', '1', '--max-queue', '1');
const guarded = await serve('--api-key', 'right');

/** That the promise fails with this class of the client's, and these fields. */
async function fails(promise, kind, fields) {
  const error = await promise.then(() => assert.fail('it was accepted'), (reason) => reason);
  assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
  for (const [name, value] of Object.entries(fields)) assert.equal(error[name], value, `${name}: ${error.message}`);
  return error;
}

test('an unknown model is not found', async () => {
  const client = open.client();
  const fields = {status: 404, code: 'model_not_found', param: 'model'};
  await fails(client.chat.completions.create({model: 'gpt-9', messages}), OpenAI.NotFoundError, fields);
  await fails(client.completions.create({model: 'gpt-9', prompt: 'a'}), OpenAI.NotFoundError, fields);
  await fails(client.models.retrieve('gpt-9'), OpenAI.NotFoundError, fields);
  await fails(client.embeddings.create({model, input: 'a'}), OpenAI.NotFoundError, {status: 404});
});

test('a bad request is told by its field', async () => {
  const client = open.client();
  for (const [param, value] of Object.entries({
         temperature: 9, top_p: 'high', n: 0, max_tokens: -1, stop: [''], logit_bias: {a: 1}, messages: [], tool_choice: 'required',
         stream_options: {include_usage: true}, nonsense: 1, response_format: 'json', seed: 0.5,
       })) {
    const error = await fails(client.chat.completions.create({model, messages, [param]: value}),
                              OpenAI.BadRequestError, {status: 400, param});
    assert.equal(error.type, 'invalid_request_error');
    assert.ok(error.requestID);
  }
  await fails(client.chat.completions.create({model, messages: [{role: 'tool', tool_call_id: 'x', content: 'y'}]}),
              OpenAI.BadRequestError, {param: 'messages[0].tool_call_id'});
});

test('a prompt that is too long says the numbers', async () => {
  const error = await fails(open.client().completions.create({model, prompt: 'word '.repeat(20000)}),
                            OpenAI.BadRequestError, {code: 'context_length_exceeded', param: 'prompt'});
  assert.match(error.message, /4096/);
});

test('a wrong key is refused', async () => {
  for (const apiKey of ['wrong', 'righ', 'rightright']) {
    await fails(guarded.client({apiKey}).chat.completions.create({model, messages}),
                OpenAI.AuthenticationError, {status: 401, code: 'invalid_api_key'});
  }
  await guarded.client({apiKey: 'right'}).chat.completions.create({model, messages, max_tokens: 1});
});

test('a full queue says when to come again', async () => {
  const client = open.client();
  const long = {model, prompt: 'a', max_tokens: 4000, ignore_eos: true, stream: true};
  const running = await client.completions.create(long);
  await eventually('one runs', async () => await open.metric('gauntlet:num_requests_running') === 1);
  const waiting = client.completions.create({...long, max_tokens: 2});
  await eventually('one waits', async () => await open.metric('gauntlet:num_requests_waiting') === 1);
  const error = await fails(client.completions.create({...long, max_tokens: 2}), OpenAI.RateLimitError, {status: 429});
  assert.ok(Number(error.headers.get('retry-after')) >= 1);
  running.controller.abort();
  for await (const chunk of await waiting) assert.equal(chunk.object, 'text_completion');
});
