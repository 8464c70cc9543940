// vLLM's extras, asked for as its clients and evaluation harnesses do.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import OpenAI from 'openai';

import {serve} from './server.mjs';

const server = await serve('--max-batch-tokens', '16');  // prompts go in chunks
const client = server.client();
const model = 'gauntlet-tiny';
const messages = [{role: 'user', content: 'Tell me about a cat.'}];
const prompt = 'Once upon a time there was a little cat, who lived in a small house near the forest and liked to play.';
const post = async (path, body) => (await fetch(`${server.url}${path}`, {method: 'POST', body: JSON.stringify(body)})).json();
const {tokens: ids} = await post('/tokenize', {prompt, add_special_tokens: false});
const of_text = (await post('/tokenize', {prompt})).tokens;  // what a text becomes: BOS comes before it
const close = (a, b) => assert.ok(Math.abs(a - b) < 1e-3 * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

test('an echo with log-probabilities scores the prompt, as evaluation harnesses ask', async () => {
  for (const more of [{max_tokens: 1}, {max_tokens: 0}, {max_tokens: 3}]) {
    for (const logprobs of [0, 1, 5]) {
      const request = {model, prompt: [ids], echo: true, logprobs, temperature: 0, seed: 1234, ...more};
      const {choices: [choice], usage} = await client.completions.create(request);
      assert.equal(usage.prompt_tokens, ids.length);
      assert.equal(usage.completion_tokens, more.max_tokens);
      assert.ok(choice.text.startsWith(prompt));
      assert.equal(choice.finish_reason, 'length');
      const {tokens, token_logprobs, top_logprobs, text_offset} = choice.logprobs;
      assert.equal(tokens.length, ids.length + more.max_tokens);
      for (const list of [token_logprobs, top_logprobs, text_offset]) assert.equal(list.length, tokens.length);
      assert.equal(tokens.join(''), choice.text);
      assert.equal(token_logprobs[0], null);
      assert.equal(top_logprobs[0], null);
      for (let i = 1; i < tokens.length; ++i) {
        assert.ok(token_logprobs[i] <= 0);
        assert.equal(choice.text.slice(text_offset[i], text_offset[i] + tokens[i].length), tokens[i]);
        const top = Object.values(top_logprobs[i]);
        assert.equal(top.length, logprobs);
        if (logprobs > 0) assert.ok(Math.max(...top) >= token_logprobs[i]);
      }
      if (more.max_tokens > 0 && logprobs > 0) {  // greedy: what it says is the likeliest
        assert.equal(token_logprobs.at(-1), Math.max(...Object.values(top_logprobs.at(-1))));
      }
    }
  }
});

test('a score is what the token has when it is generated, whatever is cached', async () => {
  const request = {model, prompt, temperature: 0, max_tokens: 12, logprobs: 0};
  const {choices: [made]} = await client.completions.create(request);
  for (let i = 0; i < 3; ++i) {  // the prompt is in the prefix cache by now
    const {choices: [echoed], usage} = await client.completions.create({...request, prompt: prompt + made.text, echo: true, max_tokens: 0});
    assert.equal(usage.prompt_tokens_details.cached_tokens, 0);
    const scored = echoed.logprobs.token_logprobs.slice(-made.logprobs.tokens.length);
    assert.deepEqual(echoed.logprobs.tokens.slice(-made.logprobs.tokens.length), made.logprobs.tokens);
    scored.forEach((value, at) => close(value, made.logprobs.token_logprobs[at]));
  }
});

test('several prompts and choices are each scored, streamed as whole', async () => {
  const request = {model, prompt: [prompt, 'The dog'], n: 2, echo: true, logprobs: 2, max_tokens: 4, seed: 3};
  const {choices} = await client.completions.create(request);
  assert.deepEqual(choices.map(({text}) => text.startsWith(prompt)), [true, true, false, false]);
  assert.deepEqual(choices[0].logprobs.token_logprobs.slice(0, ids.length), choices[1].logprobs.token_logprobs.slice(0, ids.length));
  const gathered = choices.map(() => ({text: '', logprobs: {tokens: [], token_logprobs: [], top_logprobs: [], text_offset: []}}));
  for await (const {choices: [choice]} of await client.completions.create({...request, stream: true})) {
    const one = gathered[choice.index];
    one.text += choice.text;
    for (const name of Object.keys(one.logprobs)) one.logprobs[name].push(...choice.logprobs?.[name] ?? []);
  }
  assert.deepEqual(gathered, choices.map(({text, logprobs}) => ({text, logprobs})));
});

test('prompt_logprobs lists the tokens of a prompt by id', async () => {
  for (const prompt_logprobs of [0, 3]) {
    const {choices: [choice]} = await client.completions.create({model, prompt, max_tokens: 1, prompt_logprobs});
    assert.equal(choice.prompt_logprobs.length, of_text.length);
    assert.equal(choice.prompt_logprobs[0], null);
    assert.equal(choice.logprobs, null);
    choice.prompt_logprobs.slice(1).forEach((all, i) => {
      const own = all[of_text[i + 1]];
      assert.ok(own.logprob <= 0);
      assert.equal(typeof own.decoded_token, 'string');
      const ranks = Object.values(all).map(({rank}) => rank).filter((rank) => rank !== null).sort((a, b) => a - b);
      assert.deepEqual(ranks, [...Array(prompt_logprobs).keys()].map((rank) => rank + 1));
    });
    const chat = await client.chat.completions.create({model, messages, max_tokens: 1, prompt_logprobs});
    assert.equal(chat.prompt_logprobs.length, chat.usage.prompt_tokens);
    assert.equal(chat.prompt_logprobs[0], null);
  }
});

test('token ids of prompt and answer, whole and streamed', async () => {
  const request = {model, prompt: [prompt, 'The dog'], max_tokens: 12, seed: 5, return_token_ids: true};
  const whole = await client.completions.create(request);
  assert.deepEqual(whole.choices[0].prompt_token_ids, of_text);
  for (const {text, token_ids} of whole.choices) assert.equal((await post('/detokenize', {tokens: token_ids})).prompt, text);
  const gathered = whole.choices.map(() => ({token_ids: [], prompts: []}));
  for await (const {choices: [choice]} of await client.completions.create({...request, stream: true})) {
    gathered[choice.index].token_ids.push(...choice.token_ids ?? []);
    if (choice.prompt_token_ids) gathered[choice.index].prompts.push(choice.prompt_token_ids);
  }
  assert.deepEqual(gathered, whole.choices.map(({token_ids, prompt_token_ids}) => ({token_ids, prompts: [prompt_token_ids]})));

  const ask = {model, messages, max_tokens: 12, n: 2, seed: 5, return_token_ids: true};
  const chat = await client.chat.completions.create(ask);
  assert.deepEqual(chat.prompt_token_ids, (await post('/tokenize', {messages})).tokens);
  const prompts = [];
  const streamed = [[], []];
  for await (const chunk of await client.chat.completions.create({...ask, stream: true})) {
    if (chunk.prompt_token_ids) prompts.push(chunk.prompt_token_ids);
    for (const {index, token_ids} of chunk.choices) streamed[index].push(...token_ids ?? []);
  }
  assert.deepEqual(prompts, [chat.prompt_token_ids]);
  assert.deepEqual(streamed, chat.choices.map(({token_ids}) => token_ids));
  const plain = await client.chat.completions.create({model, messages, max_tokens: 1});
  assert.ok(!('prompt_token_ids' in plain) && !('token_ids' in plain.choices[0]));
});

test('min_tokens keeps an answer from ending', async () => {
  for (let seed = 0; seed < 5; ++seed) {
    const {usage} = await client.chat.completions.create({model, messages, seed, max_tokens: 120, min_tokens: 100});
    assert.ok(usage.completion_tokens >= 100);
  }
});

test('special tokens are text where they are not skipped', async () => {
  const {tokens: [special]} = await post('/tokenize', {messages});
  const bias = {[special]: 100};
  const request = {model, prompt, max_tokens: 2, temperature: 0, logit_bias: bias, ignore_eos: true};
  assert.equal((await client.completions.create(request)).choices[0].text, '');
  assert.equal((await client.completions.create({...request, skip_special_tokens: false})).choices[0].text, '<|start|><|start|>');
});

test('the template takes its reasoning effort', async () => {
  const tokens = async (more) => (await post('/tokenize', {messages, ...more})).tokens;
  assert.deepEqual(await tokens({chat_template_kwargs: {reasoning_effort: 'high'}}), await tokens({reasoning_effort: 'high'}));
  assert.notDeepEqual(await tokens({reasoning_effort: 'low'}), await tokens({reasoning_effort: 'high'}));
});

test('what changes nothing is taken, and the tier is said to whoever names one', async () => {
  const more = {
    service_tier: 'auto', verbosity: 'low', store: true, metadata: {a: 'b'}, user: 'me', prompt_cache_key: 'k', prompt_cache_retention: '24h',
    safety_identifier: 's', modalities: ['text'], prediction: {type: 'content', content: 'a'}, a_field_of_the_future: null,
  };
  const answer = await client.chat.completions.create({model, messages, max_tokens: 2, ...more});
  assert.equal(answer.service_tier, 'default');
  for await (const chunk of await client.chat.completions.create({model, messages, max_tokens: 2, stream: true, ...more})) {
    assert.equal(chunk.service_tier, 'default');
  }
  assert.ok(!('service_tier' in await client.chat.completions.create({model, messages, max_tokens: 2})));
});

test('messages come back as any client kept them', async () => {
  const answer = {
    role: 'assistant', content: 'Yes.', refusal: null, annotations: [], audio: null, function_call: null, reasoning: 'Hm.', reasoning_content: 'Hm.',
    parsed: {a: 1},
    tool_calls: [{id: 'c1', type: 'function', index: 0, function: {name: 'f', arguments: '{}', parsed_arguments: {}}}],
  };
  const refused = {role: 'assistant', content: [{type: 'refusal', refusal: 'No.'}]};
  const output = {role: 'tool', tool_call_id: 'c1', content: 'done', name: 'f'};
  const {usage} = await client.chat.completions.create({model, messages: [...messages, answer, output, refused, ...messages], max_tokens: 1});
  assert.ok(usage.prompt_tokens > 20);
});

test('what stays refused says why', async () => {
  const refused = async (request, param, why) => {
    const error = await client.completions.create({model, prompt, ...request}).then(() => assert.fail('it was taken'), (reason) => reason);
    assert.ok(error instanceof OpenAI.BadRequestError, error.message);
    assert.equal(error.param, param);
    assert.match(error.message, why);
  };
  await refused({max_tokens: 0}, 'max_tokens', /echo/);
  await refused({prompt_logprobs: 2, stream: true}, 'prompt_logprobs', /streamed/);
  await refused({prompt_logprobs: -1}, 'prompt_logprobs', /between 0 and 20/);
  await refused({prompt_logprobs: 1, echo: true, logprobs: 1}, 'prompt_logprobs', /two ways/);
  await refused({prompt: Array(128).fill('word '.repeat(1000)), prompt_logprobs: 20, max_tokens: 1}, 'prompt', /values/);
  await refused({prompt: Array(30).fill('word '.repeat(1000)), n: 128, echo: true, max_tokens: 1}, 'prompt', /values/);
  await refused({prompt: Array(30).fill('word '.repeat(1000)), n: 128, return_token_ids: true, max_tokens: 1}, 'prompt', /values/);
  await assert.rejects(client.chat.completions.create({model, messages, functions: []}), /tools/);
  await assert.rejects(client.chat.completions.create({model, messages, modalities: ['audio'], audio: {voice: 'x', format: 'wav'}}), /text/);
});
