// Answers and calls of a required form.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import OpenAI from 'openai';

import {serve} from './server.mjs';

const server = await serve();
const client = server.client();
const model = 'gauntlet-tiny';
const messages = [{role: 'user', content: 'What is the weather in Paris?'}];
const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather of a city.',
      parameters: {
        type: 'object',
        properties: {city: {type: 'string', maxLength: 12}, unit: {type: 'string', enum: ['celsius', 'fahrenheit']}},
        required: ['city', 'unit'],
        additionalProperties: false,
      },
      strict: true,
    },
  },
  {type: 'function', function: {name: 'get_time'}},
];
const person = {
  type: 'object',
  properties: {
    name: {type: 'string', maxLength: 10},
    age: {type: 'integer', minimum: 0, maximum: 150},
    likes: {type: 'array', items: {enum: ['cats', 'dogs']}, maxItems: 2},
  },
  required: ['name', 'age', 'likes'],
  additionalProperties: false,
};
const response_format = {type: 'json_schema', json_schema: {name: 'person', strict: true, schema: person}};

function check_person(text) {
  const {name, age, likes, ...others} = JSON.parse(text);
  assert.equal(typeof name, 'string');
  assert.ok(Number.isInteger(age) && age >= 0 && age <= 150);
  assert.ok(likes.length <= 2 && likes.every((one) => ['cats', 'dogs'].includes(one)));
  assert.deepEqual(others, {});
}

function check_call(call) {
  assert.equal(call.type, 'function');
  assert.ok(call.id);
  const args = JSON.parse(call.function.arguments);
  if (call.function.name === 'get_time') return assert.deepEqual(args, {});
  assert.equal(call.function.name, 'get_weather');
  assert.deepEqual(Object.keys(args), ['city', 'unit']);
  assert.ok(['celsius', 'fahrenheit'].includes(args.unit));
}

test('calls a function where it must, and goes on with what that gave', async () => {
  const first = await client.chat.completions.create({model, messages, tools, tool_choice: 'required', max_tokens: 300});
  const [{message, finish_reason}] = first.choices;
  assert.equal(finish_reason, 'tool_calls');
  assert.equal(message.content, null);
  assert.equal(message.tool_calls.length, 1);
  check_call(message.tool_calls[0]);

  const result = {role: 'tool', tool_call_id: message.tool_calls[0].id, content: '{"degrees": 21}'};
  const more = {model, messages: [...messages, message, result], tools, max_tokens: 300};
  const second = await client.chat.completions.create(more);
  assert.ok(second.usage.prompt_tokens > first.usage.prompt_tokens);
  const third = await client.chat.completions.create({...more, response_format, tool_choice: 'none'});
  assert.equal(third.choices[0].finish_reason, 'stop');
  check_person(third.choices[0].message.content);
});

test('calls the function that is named', async () => {
  for (const name of ['get_weather', 'get_time']) {
    const tool_choice = {type: 'function', function: {name}};
    const {choices: [{message}]} = await client.chat.completions.create({model, messages, tools, tool_choice, max_tokens: 300});
    assert.equal(message.tool_calls[0].function.name, name);
    check_call(message.tool_calls[0]);
  }
});

test('streams a call as it answers it whole', async () => {
  const request = {model, messages, tools, tool_choice: 'required', max_tokens: 300, seed: 4};
  const whole = await client.chat.completions.create(request);
  const gathered = await client.chat.completions.stream(request).finalChatCompletion();
  const [theirs] = gathered.choices;
  assert.equal(theirs.finish_reason, 'tool_calls');
  const {name, arguments: args} = theirs.message.tool_calls[0].function;
  assert.deepEqual({name, args}, {
    name: whole.choices[0].message.tool_calls[0].function.name,
    args: whole.choices[0].message.tool_calls[0].function.arguments,
  });
});

test('leaves the choice to the model where it is not required', async () => {
  const {choices: [{message}]} = await client.chat.completions.create({model, messages, tools, max_tokens: 20});
  assert.equal(message.tool_calls, undefined);
});

test('satisfies a schema, whole and streamed, in every choice', async () => {
  const request = {model, messages, response_format, max_tokens: 300, n: 3, seed: 9};
  const whole = await client.chat.completions.create(request);
  for (const {message, finish_reason} of whole.choices) {
    assert.equal(finish_reason, 'stop');
    check_person(message.content);
  }
  const gathered = await client.chat.completions.stream(request).finalChatCompletion();
  assert.deepEqual(gathered.choices.map(({message}) => message.content), whole.choices.map(({message}) => message.content));
});

test('may think first where an effort is named', async () => {
  const {choices: [{message, finish_reason}]} = await client.chat.completions.create(
      {model, messages, response_format, reasoning_effort: 'low', max_completion_tokens: 600});
  assert.equal(finish_reason, 'stop');
  check_person(message.content);
});

test('says when an object was cut', async () => {
  const {choices: [{message, finish_reason}]} = await client.chat.completions.create(
      {model, messages, response_format, max_tokens: 8});
  assert.equal(finish_reason, 'length');
  assert.equal(message.content[0], '{');
  assert.throws(() => JSON.parse(message.content));
});

test('gives any object', async () => {
  const {choices: [{message, finish_reason}]} = await client.chat.completions.create(
      {model, messages, response_format: {type: 'json_object'}, max_tokens: 200, temperature: 0});
  assert.equal(message.content[0], '{');
  if (finish_reason === 'stop') JSON.parse(message.content);
});

test('holds a completion to a schema, too', async () => {
  const {choices: [{text, finish_reason}]} = await client.completions.create(
      {model, prompt: 'Here is a person:', response_format, max_tokens: 300});
  assert.equal(finish_reason, 'stop');
  check_person(text);
});

test('names the keyword it cannot hold', async () => {
  const schema = {type: 'object', properties: {a: {type: 'string', maxLength: 2, not: {const: 'b'}}}, required: ['a']};
  const strict = true;
  const refused = (request, param) => assert.rejects(
      client.chat.completions.create({model, messages, ...request}), (error) => {
        assert.ok(error instanceof OpenAI.BadRequestError);
        assert.equal(error.param, param);
        assert.match(error.message, /"not"/);
        assert.match(error.message, /#\/properties\/a/);
        return true;
      });
  await refused({response_format: {type: 'json_schema', json_schema: {name: 'x', schema, strict}}}, 'response_format');
  const tools_with = (more) => [{type: 'function', function: {name: 'f', parameters: schema, ...more}}];
  await refused({tools: tools_with({strict}), tool_choice: 'required'}, 'tools');
  await refused({tools: tools_with({strict})}, 'tools');

  // Where strict is not said, the rest is held, and a header says what is not.
  const lenient = [
    {response_format: {type: 'json_schema', json_schema: {name: 'x', schema}}}, {tools: tools_with({}), tool_choice: 'required'},
    {tools: tools_with({})}];
  for (const request of lenient) {
    const {response} = await client.chat.completions.create({model, messages, max_tokens: 60, ...request}).withResponse();
    assert.match(response.headers.get('x-gauntlet-unenforced'), /^not at \/properties\/a/);
  }
});

test('writes what a regular expression or a choice allows', async () => {
  const regex = '(yes|no), [0-9]{2} cats';
  for (const form of [{guided_regex: regex}, {structured_outputs: {regex}}]) {
    const {choices: [{message}]} = await client.chat.completions.create({model, messages, max_tokens: 40, ...form});
    assert.match(message.content, /^(yes|no), [0-9]{2} cats$/);
    const {choices: [{text}]} = await client.completions.create({model, prompt: 'a', max_tokens: 40, ...form});
    assert.match(text, /^(yes|no), [0-9]{2} cats$/);
  }
  const choice = ['positive', 'negative'];
  const {choices: [{message}]} = await client.chat.completions.create({model, messages, max_tokens: 20, structured_outputs: {choice}});
  assert.ok(choice.includes(message.content));
  await assert.rejects(client.completions.create({model, prompt: 'a', guided_regex: '(a)\\1'}), /back reference/);
});
