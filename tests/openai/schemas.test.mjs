// Does every finished answer satisfy its schema, by ajv's judgement, wherever it is asked for, and say in a stream what it says whole?
import assert from 'node:assert/strict';
import {test} from 'node:test';

import Ajv from 'ajv';
import Ajv2020 from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

import {schemas} from './schema_list.mjs';
import {serve} from './server.mjs';

const server = await serve();
const model = 'gauntlet-tiny';
const seeds = [1, 2, 3];
const max_tokens = 80;
const at_once = 32;
const content = 'Fill in the form.';

const judges = [Ajv, Ajv2020].map((Judge) => formats(new Judge({strict: false})));
const judge_of = ({draft, ...schema}) => judges[draft === 7 ? 0 : 1].compile(schema);
const plain = ({draft, ...schema}) => schema;

/** Functions take objects, so that others stand within one. */
const as_parameters = ({$defs, definitions, draft, ...schema}) =>
    ({type: 'object', properties: {value: schema}, required: ['value'], additionalProperties: false, $defs, definitions});

const json_schema = (schema) => ({type: 'json_schema', json_schema: {name: 'form', strict: true, schema: plain(schema)}});

/** How each endpoint is asked, and what of its answer is the text. */
const endpoints = {
  chat: {
    path: '/v1/chat/completions',
    body: (schema) => ({messages: [{role: 'user', content}], response_format: json_schema(schema), max_tokens}),
    whole: ({choices: [{message, finish_reason}]}) => ({text: message.content, done: finish_reason === 'stop'}),
    event: ({choices: [choice]}) => ({text: choice?.delta.content ?? '', done: choice?.finish_reason === 'stop'}),
  },
  responses: {
    path: '/v1/responses',
    body: (schema) => ({input: content, text: {format: {type: 'json_schema', name: 'form', strict: true, schema: plain(schema)}},
                        max_output_tokens: max_tokens, store: false}),
    whole: ({output, status}) => ({text: output.at(-1)?.content?.[0].text ?? '', done: status === 'completed'}),
    event: ({type, delta}) => ({text: type === 'response.output_text.delta' ? delta : '', done: type === 'response.completed'}),
  },
  completion: {
    path: '/v1/completions',
    body: (schema) => ({prompt: content, response_format: json_schema(schema), max_tokens}),
    whole: ({choices: [{text, finish_reason}]}) => ({text, done: finish_reason === 'stop'}),
    event: ({choices: [choice]}) => ({text: choice?.text ?? '', done: choice?.finish_reason === 'stop'}),
  },
  tool: {
    path: '/v1/chat/completions',
    body: (schema) => ({messages: [{role: 'user', content}], max_tokens, tool_choice: {type: 'function', function: {name: 'fill'}},
                        tools: [{type: 'function', function: {name: 'fill', strict: true, parameters: as_parameters(schema)}}]}),
    whole: ({choices: [{message, finish_reason}]}) =>
        ({text: message.tool_calls?.[0].function.arguments ?? '', done: finish_reason === 'tool_calls'}),
    event: ({choices: [choice]}) => ({text: choice?.delta.tool_calls?.[0].function.arguments ?? '', done: choice?.finish_reason === 'tool_calls'}),
  },
};

async function post(path, body) {
  const reply = await fetch(server.url + path, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(body)});
  const text = await reply.text();
  assert.equal(reply.status, 200, `${path} ${JSON.stringify(body)}: ${text}`);
  assert.equal(reply.headers.get('x-gauntlet-unenforced'), null);
  return text;
}

async function ask({path, body, whole, event}, schema, seed) {
  const request = {model, seed, ...body(schema)};
  const answer = whole(JSON.parse(await post(path, request)));
  const gathered = {text: '', done: false};
  for (const line of (await post(path, {...request, stream: true})).split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const {text, done} = event(JSON.parse(line.slice(6)));
    gathered.text += text;
    gathered.done ||= done;
  }
  return {answer, gathered};
}

/** So many at a time. */
async function all_of(jobs) {
  let next = 0;
  await Promise.all(Array.from({length: at_once}, async () => {
    while (next < jobs.length) await jobs[next++]();
  }));
}

test('there are eighty schemas, all different', () => {
  assert.ok(schemas.length >= 80, `${schemas.length}`);
  assert.equal(new Set(schemas.map((schema) => JSON.stringify(schema))).size, schemas.length);
});

test('the judge can say no', () => {
  const judge = judge_of({type: 'array', items: [{type: 'integer'}], additionalItems: false, draft: 7});
  assert.ok(judge([1]) && !judge([true]) && !judge([1, 2]));
  const later = judge_of({type: 'array', prefixItems: [{type: 'string', format: 'ipv4'}], items: false});
  assert.ok(later(['1.2.3.4']) && !later(['1.2.3']) && !later(['1.2.3.4', 1]));
});

for (const [name, endpoint] of Object.entries(endpoints)) {
  test(`${name}: what is finished is valid, and a stream says what a whole answer says`, async (t) => {
    let finished = 0;
    await all_of(schemas.flatMap((schema) => {
      const wanted = name === 'tool' ? {...as_parameters(schema), draft: schema.draft} : schema;
      const judge = judge_of(JSON.parse(JSON.stringify(wanted)));
      return seeds.map((seed) => async () => {
        const {answer, gathered} = await ask(endpoint, schema, seed);
        assert.deepEqual(gathered, answer, JSON.stringify(schema));
        if (!answer.done) return;
        ++finished;
        assert.ok(judge(JSON.parse(answer.text)), `${JSON.stringify(schema)} seed ${seed}: ${answer.text}: ${JSON.stringify(judge.errors)}`);
      });
    }));
    const asked = schemas.length * seeds.length;
    t.diagnostic(`${finished} of ${asked} answers finished, each whole and streamed`);
    assert.ok(finished >= 0.9 * asked, `only ${finished} of ${asked} answers finished`);
  });
}
