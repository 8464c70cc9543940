// Log-probabilities over many seeds: every token of what is said has its own, and nothing else has one.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {serve} from './server.mjs';

const server = await serve('--stream-interval', '0');
const client = server.client();
const model = 'gauntlet-tiny';
const messages = [{role: 'user', content: 'Tell me about a cat.'}];
const seeds = [...Array(20).keys()];
const texts = new Map();

/** A token's own text. */
async function text_of(id) {
  if (!texts.has(id)) {
    const reply = await fetch(`${server.url}/detokenize`, {method: 'POST', body: JSON.stringify({tokens: [id]})});
    texts.set(id, (await reply.json()).prompt);
  }
  return texts.get(id);
}
const is_special = (text) => /^<\|\w+\|>$/.test(text);

test('a chat has one for each token of its content, whole and streamed', async () => {
  let plain = 0;
  for (const seed of seeds) {
    const request = {model, messages, seed, max_tokens: 60, logprobs: true, top_logprobs: 2, return_token_ids: true};
    const {choices: [{message, logprobs, token_ids}], usage} = await client.chat.completions.create(request);
    assert.equal(token_ids.length, usage.completion_tokens);
    const bytes = Buffer.from(logprobs.content.flatMap((one) => one.bytes));
    assert.equal(bytes.toString(), message.content, `seed ${seed}`);
    const said = await Promise.all(token_ids.map(text_of));
    if (!said.some((text) => ['<|start|>', '<|channel|>', '<|message|>', '<|constrain|>'].includes(text))) {
      ++plain;  // no header: all of it is content
      assert.deepEqual(logprobs.content.map(({token}) => token), said.filter((text) => !is_special(text)), `seed ${seed}`);
    }

    const streamed = [];
    let content = '';
    for await (const chunk of await client.chat.completions.create({...request, stream: true})) {
      content += chunk.choices[0]?.delta.content ?? '';
      streamed.push(...chunk.choices[0]?.logprobs?.content ?? []);
    }
    assert.equal(content, message.content);
    assert.deepEqual(streamed, logprobs.content);
  }
  assert.ok(plain >= 10, `only ${plain} answers had no header`);
});

test('text without a header streams token by token', async () => {
  let plain = 0;
  for (const seed of seeds) {
    const chunks = [];
    const request = {model, messages, seed, max_tokens: 60, stream: true, return_token_ids: true};
    for await (const {choices: [choice]} of await client.chat.completions.create(request)) {
      if (choice?.token_ids?.length) chunks.push({ids: choice.token_ids, content: choice.delta.content ?? ''});
    }
    const said = await Promise.all(chunks.map(async ({ids}) => (await Promise.all(ids.map(text_of))).join('')));
    if (said.some(is_special) && !is_special(said.at(-1))) continue;
    if (said.slice(0, -1).some(is_special)) continue;
    ++plain;
    let held = 0;  // bytes of characters, and of what could yet be a header
    chunks.forEach(({ids, content}, i) => {
      assert.equal(ids.length, 1);
      if (is_special(said[i]) || said[i].includes('\ufffd')) return;
      held = content === '' ? held + 1 : 0;
      assert.ok(held <= 2, `seed ${seed}: ${held} tokens were held back at ${i}: ${JSON.stringify(said.slice(0, i + 1))}`);
    });
    assert.equal(chunks.filter(({content}) => content !== '').map(({content}) => content).join('').length > 0, true);
  }
  assert.ok(plain >= 10, `only ${plain} answers had no header`);
});

test('those of a completion end where a stop string cuts', async () => {
  for (const seed of seeds) {
    const request = {model, prompt: 'Once upon a time', seed, max_tokens: 40, logprobs: 2};
    const {choices: [{text}]} = await client.completions.create(request);
    const stop = text.slice(Math.floor(text.length / 2), Math.floor(text.length / 2) + 3);
    const {choices: [cut]} = await client.completions.create({...request, stop});
    assert.equal(cut.finish_reason, 'stop');
    assert.equal(cut.text, text.slice(0, text.indexOf(stop)));
    const {tokens, token_logprobs, top_logprobs, text_offset} = cut.logprobs;
    for (const list of [token_logprobs, top_logprobs, text_offset]) assert.equal(list.length, tokens.length);
    assert.ok(tokens.join('').startsWith(cut.text));
    assert.ok(tokens.slice(0, -1).join('').length < Math.max(1, cut.text.length), 'a token that is not shown has a log-probability');
    for (const offset of text_offset) assert.ok(offset < cut.text.length);

    const streamed = {tokens: [], token_logprobs: [], top_logprobs: [], text_offset: []};
    for await (const chunk of await client.completions.create({...request, stop, stream: true})) {
      for (const name of Object.keys(streamed)) streamed[name].push(...chunk.choices[0]?.logprobs?.[name] ?? []);
    }
    assert.deepEqual(streamed, cut.logprobs);
  }
});

test('a chat that a stop string cuts has none beyond it', async () => {
  for (const seed of seeds) {
    const request = {model, messages, seed, max_tokens: 40, logprobs: true};
    const {choices: [{message: {content}}]} = await client.chat.completions.create(request);
    const stop = content.slice(Math.floor(content.length / 2), Math.floor(content.length / 2) + 3);
    if (stop === '') continue;
    const {choices: [{message, logprobs}]} = await client.chat.completions.create({...request, stop});
    const tokens = logprobs.content.map(({token}) => token);
    assert.equal(message.content, content.slice(0, content.indexOf(stop)));
    assert.ok(tokens.join('').startsWith(message.content));
    assert.ok(tokens.slice(0, -1).join('').length < Math.max(1, message.content.length));
  }
});

test('a response has one for each token of its text', async () => {
  for (const seed of seeds) {
    const request = {model, input: 'Tell me about a cat.', seed, max_output_tokens: 40, include: ['message.output_text.logprobs'], top_logprobs: 1};
    const response = await client.responses.create(request);
    for (const {type, content} of response.output) {
      if (type !== 'message') continue;
      assert.equal(Buffer.from(content[0].logprobs.flatMap(({bytes}) => bytes)).toString(), content[0].text);
    }
  }
});
