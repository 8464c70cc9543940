// Are our conversations those of openai-harmony (a WebAssembly build of OpenAI's own code), token by token, and does
// our parser read what it reads?
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

import {published, random, run} from './gauntlet.mjs';

// The package fetches its own code and the ranks of o200k; both come from disk, so that nothing is downloaded.
const {bpe_ranks: packed} = JSON.parse(readFileSync(new URL('node_modules/tiktoken/encoders/o200k_base.json', import.meta.url)));
const ranks = packed.split('\n').flatMap((line) => {
  const [, first, ...tokens] = line.split(' ');
  return tokens.map((token, i) => `${token} ${Number(first) + i}\n`);
});
globalThis.fetch = async (what) => {
  const url = new URL(what.url ?? what);
  const response = url.protocol === 'file:'
      ? new Response(readFileSync(url), {headers: {'content-type': 'application/wasm'}})
      : new Response(ranks.join(''));
  return Object.defineProperty(response, 'url', {value: url.href});
};
const {load_harmony_encoding, JsStreamableParser} = await import('openai-harmony');
const theirs = await load_harmony_encoding('HarmonyGptOss', 'http://nowhere/');

async function ask(requests) {
  const lines = requests.map((request) => JSON.stringify(request)).join('\n');
  const out = await run([`${published}/tokenizer.json`], lines, process.env.HARMONY_LINES);
  return out.trimEnd().split('\n').map((line) => JSON.parse(line));
}

const text = (value) => [{type: 'text', text: value}];
const system = (more = {}) => ({
  role: 'system',
  content: [{
    type: 'system_content',
    model_identity: 'You are ChatGPT, a large language model trained by OpenAI.',
    reasoning_effort: 'Medium',
    tools: null,
    conversation_start_date: null,
    knowledge_cutoff: '2024-06',
    channel_config: {valid_channels: ['analysis', 'commentary', 'final'], channel_required: true},
    ...more,
  }],
});
const developer = (instructions, tools = null) => ({role: 'developer', content: [{type: 'developer_content', instructions, tools}]});
const functions = (...tools) => ({functions: {name: 'functions', description: null, tools}});
const user = (value) => ({role: 'user', content: text(value)});
const assistant = (channel, value, more = {}) => ({role: 'assistant', channel, content: text(value), ...more});
const tool = (name, value) => ({role: 'tool', name, recipient: 'assistant', channel: 'commentary', content: text(value)});

const weather = {
  name: 'get_current_weather',
  description: 'Gets the current weather in the provided location.',
  parameters: {
    type: 'object',
    properties: {
      location: {type: 'string', description: 'The city and state, e.g. San Francisco, CA'},
      format: {type: 'string', enum: ['celsius', 'fahrenheit'], default: 'celsius'},
    },
    required: ['location'],
  },
};
const call = {recipient: 'functions.get_current_weather', content_type: '<|constrain|>json'};

/** Compares ids; on a difference, the texts say where. */
async function judge(conversations) {
  const requests = conversations.flatMap((messages) => [true, false].flatMap(
      (drop) => [true, false].map((completion) => ({messages, completion, drop}))));
  const answers = await ask(requests);
  answers.forEach(({ids, error}, i) => {
    const {messages, completion, drop} = requests[i];
    const config = {auto_drop_analysis: drop};
    const wanted = completion ? theirs.renderConversationForCompletion({messages}, 'assistant', config)
                              : theirs.renderConversation({messages}, config);
    if (error || ids.join() !== wanted.join()) {
      assert.equal(error ?? theirs.decodeUtf8(Uint32Array.from(ids)), theirs.decodeUtf8(wanted));
      assert.fail('the texts agree but the tokens do not');
    }
  });
}

test('system messages of every effort, date and tool', async () => {
  const python = {python: {name: 'python', description: 'Runs code.\n\nIn a notebook.', tools: []}};
  const browser = {
    browser: {
      name: 'browser',
      description: 'Tool for browsing.\r\nCites `【{cursor}†L3】`.\n',
      tools: [{name: 'open', description: '', parameters: {type: 'object', properties: {id: {type: ['number', 'string'], default: -1}}}},
              {name: 'close', description: 'Closes.', parameters: null}],
    },
  };
  await judge([
    [system()],
    ...['Low', 'Medium', 'High', null].map((reasoning_effort) => [system({reasoning_effort}), user('hi')]),
    [system({conversation_start_date: '2025-06-28'})],
    [system({knowledge_cutoff: null, model_identity: null})],
    [system({model_identity: 'Other', channel_config: {valid_channels: [], channel_required: true}})],
    [system({tools: python}), user('x')],
    [system({tools: {...python, ...browser}}), user('x')],
  ]);
});

test('conversations with tools, calls and answers', async () => {
  const turns = [user('What is 2 + 2?'), assistant('analysis', 'Simple.'), assistant('final', '2 + 2 = 4.')];
  const calling = [system(), developer('Be kind.', functions(weather, {name: 'now', description: 'The time.', parameters: null})),
                   user('Weather in SF?'), assistant('analysis', 'Use the tool.'), assistant('commentary', '{"location": "SF"}', call)];
  const answered = [...calling, tool('functions.get_current_weather', '{"sunny": true}')];
  await judge([
    [user('')], turns, [...turns, user('And 3?')], [...turns, user('And 3?'), assistant('analysis', 'Hm.')],
    [...turns, user('And 3?'), assistant('analysis', 'Hm.'), assistant('final', '6'), user('Thanks')],
    [system(), developer(''), ...turns], [system(), developer(null), user('<|end|> is text 😀')],
    calling, answered, [...answered, assistant('analysis', 'Sunny.')],
    [...answered, assistant('analysis', 'Sunny.'), assistant('final', 'It is sunny.'), user('Sure?')],
    [user('x'), assistant('commentary', 'plain call', {recipient: 'functions.f', content_type: 'code'})],
    [{...user('named'), name: 'bob'}, {role: 'assistant', content: text('no channel')}],
  ]);
});

test('random JSON schemas', async () => {
  const below = random(99);
  const pick = (list) => list[below(list.length)];
  const maybe = (object) => below(3) === 0 ? object : {};
  const words = () => pick(['A city', 'one "two"', 'Größe', 'x', 'null or so', 'line']);
  const value = () => pick(['a', 'celsius', 1, -7, 2.5, 1e21, 1e-7, 123456789, true, false, [1, 'b'], {k: 'v', n: [0.5]}]);
  const schema = (depth) => {
    const extra = {
      ...maybe({description: words()}), ...maybe({default: value()}), ...maybe({nullable: below(2) === 0}),
      ...maybe({title: words()}), ...maybe({examples: [words(), 3, words()]}),
    };
    const kind = below(depth > 3 ? 6 : 10);
    const typed = [
      () => ({type: 'string'}), () => ({type: 'string', enum: pick([['a', 'b'], [], [1], ['celsius']])}),
      () => ({type: pick(['number', 'integer', 'boolean', 'null', 'odd'])}), () => ({type: ['integer', 'string', 'null'].slice(below(3))}),
      () => ({}), () => ({type: 'array'}),
      () => ({type: 'array', items: schema(depth + 1)}), () => object(depth + 1), () => object(depth + 1),
      () => ({oneOf: Array.from({length: below(4)}, () => schema(depth + 1))}),
    ][kind]();
    return {...typed, ...extra};
  };
  const object = (depth) => {
    const names = ['zeta', 'alpha', 'b2', 'a_b', 'Ω'].slice(0, below(6));
    return {
      type: 'object',
      ...maybe({description: words()}),
      properties: Object.fromEntries(names.map((name) => [name, schema(depth)])),
      ...maybe({required: names.slice(below(3))}),
    };
  };
  const conversations = Array.from({length: 400}, () => [
    developer(null, functions({name: 'f', description: words(), parameters: below(5) ? object(0) : schema(0)})),
  ]);
  await judge(conversations);
});

test('the parser reads what openai-harmony reads', async () => {
  const conversations = [
    [assistant('analysis', 'Hm 😀.'), assistant('final', 'Größe: <|end|>')],
    [assistant('commentary', '{}', call)], [assistant('commentary', 'plan'), assistant('commentary', '{}', call)],
    [{role: 'assistant', content: text('no channel')}, user('hi'), tool('functions.get_current_weather', 'sunny')],
    [assistant('analysis', '1+1', {recipient: 'python', content_type: 'code'})],
  ];
  const streams = conversations.map((messages) => theirs.renderConversation({messages}, {auto_drop_analysis: false}));
  // What a model writes: the recipient behind the channel.
  streams.push(Uint32Array.from([
    ...theirs.encode('<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>',
                     theirs.specialTokens())]));
  const answers = await ask(streams.map((stream) => ({ids: [...stream], role: null})));
  answers.forEach(({parsed}, i) => {
    const wanted = JSON.parse(theirs.parseMessagesFromCompletionTokens(streams[i], null));
    assert.deepEqual(parsed, wanted.map((message) => Object.fromEntries(
        ['role', 'name', 'recipient', 'channel', 'content_type', 'content'].filter((key) => key in message)
            .map((key) => [key, message[key]]))));
  });
});

test('content arrives piece by piece as from openai-harmony', async () => {
  const messages = [assistant('final', '😀 Größe 中文 — done. ' + '👩‍👩‍👧'.repeat(3))];
  const stream = theirs.renderConversation({messages}, {auto_drop_analysis: false});
  const parser = new JsStreamableParser(theirs, 'assistant');
  const fed = stream.slice(2);  // behind <|start|>assistant
  for (const token of fed) parser.process(token);
  const [{parsed, deltas}] = await ask([{ids: [...fed], role: 'assistant'}]);
  assert.equal(parsed[0].content, messages[0].content[0].text);
  assert.equal(deltas, messages[0].content[0].text);
  assert.equal(JSON.parse(parser.messages)[0].content, deltas);
});
