// Texts.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {serve} from './server.mjs';

const server = await serve();
const client = server.client();
const model = 'gauntlet-tiny';
const prompt = 'Once upon a time';

test('goes on with a text', async () => {
  const answer = await client.completions.create({model, prompt, max_tokens: 12, temperature: 0});
  assert.match(answer.id, /^cmpl-/);
  assert.equal(answer.object, 'text_completion');
  assert.equal(answer.usage.completion_tokens, 12);
  assert.equal(answer.choices[0].finish_reason, 'length');
  assert.ok(answer.choices[0].text.length > 0);
});

test('streams what it says whole, with usage at the end', async () => {
  const request = {model, prompt, max_tokens: 20, seed: 5};
  const whole = await client.completions.create(request);
  let text = '';
  let usage;
  const stream = await client.completions.create({...request, stream: true, stream_options: {include_usage: true}});
  for await (const chunk of stream) {
    text += chunk.choices[0]?.text ?? '';
    if (chunk.choices.length === 0) usage = chunk.usage;
  }
  assert.equal(text, whole.choices[0].text);
  assert.deepEqual(usage, {...whole.usage, prompt_tokens_details: usage.prompt_tokens_details});
});

test('gives several choices of several prompts', async () => {
  const {choices, usage} = await client.completions.create({model, prompt: [prompt, 'The dog'], n: 2, max_tokens: 8, seed: 1});
  assert.deepEqual(choices.map(({index}) => index), [0, 1, 2, 3]);
  assert.notEqual(choices[0].text, choices[1].text);
  assert.equal(usage.completion_tokens, 32);
});

test('stops before a string', async () => {
  const request = {model, prompt, max_tokens: 40, temperature: 0};
  const {choices: [{text}]} = await client.completions.create(request);
  const stop = text.slice(10, 14);
  const {choices: [cut]} = await client.completions.create({...request, stop});
  assert.equal(cut.text, text.slice(0, text.indexOf(stop)));
  assert.equal(cut.finish_reason, 'stop');
});

test('shows log-probabilities', async () => {
  const {choices: [{text, logprobs}]} = await client.completions.create({model, prompt, max_tokens: 6, temperature: 0, logprobs: 3});
  assert.equal(logprobs.tokens.join(''), text);
  assert.equal(logprobs.token_logprobs.length, 6);
  logprobs.tokens.forEach((token, i) => {
    assert.equal(Object.keys(logprobs.top_logprobs[i]).length, 3);
    assert.equal(logprobs.top_logprobs[i][token], logprobs.token_logprobs[i]);
    assert.equal(text.slice(logprobs.text_offset[i], logprobs.text_offset[i] + token.length), token);
  });
});

test('takes token ids', async () => {
  const {tokens} = await (await fetch(`${server.url}/tokenize`, {method: 'POST', body: JSON.stringify({prompt})})).json();
  const [of_text, of_ids] = await Promise.all([prompt, tokens].map(
      (one) => client.completions.create({model, prompt: one, max_tokens: 8, temperature: 0})));
  assert.equal(of_ids.choices[0].text, of_text.choices[0].text);
});
