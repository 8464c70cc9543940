// The helpers of OpenAI's client for chats: forms read by zod, and loops of tools that it runs itself.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {zodFunction, zodResponseFormat} from 'openai/helpers/zod';
import {z} from 'zod';

import {serve} from './server.mjs';

const server = await serve();
const client = server.client();
const model = 'gauntlet-tiny';
const messages = [{role: 'user', content: 'What is the weather in Oslo?'}];
const Weather = z.object({city: z.string().max(8), unit: z.enum(['c', 'f'])});

test('parse reads an answer, which goes back as it is', async () => {
  const Person = z.object({name: z.string().max(8), age: z.number().int().min(0).max(150)});
  const {choices: [{message}]} = await client.chat.completions.parse(
      {model, messages, response_format: zodResponseFormat(Person, 'person'), max_completion_tokens: 300});
  Person.parse(message.parsed);
  await client.chat.completions.create({model, messages: [...messages, message, ...messages], max_completion_tokens: 1});
});

test('parse reads a call, which goes back as it is', async () => {
  const tools = [zodFunction({name: 'weather', parameters: Weather})];
  const {choices: [{message}]} = await client.chat.completions.parse({model, messages, tools, tool_choice: 'required', max_completion_tokens: 300});
  const [call] = message.tool_calls;
  Weather.parse(call.function.parsed_arguments);
  const output = {role: 'tool', tool_call_id: call.id, content: 'rain'};
  await client.chat.completions.create({model, messages: [...messages, message, output], tools, max_completion_tokens: 1});
});

for (const stream of [false, true]) {
  test(`runs tools by itself${stream ? ', streamed' : ''}`, async () => {
    const asked = [];
    const runner = client.chat.completions.runTools({
      model, messages, stream, max_completion_tokens: 300, tool_choice: 'required',
      tools: [zodFunction({name: 'weather', parameters: Weather, function: (input) => asked.push(input) && 'rain'})],
    }, {maxChatCompletions: 3});
    await runner.done();
    assert.equal(asked.length, 3);
    for (const input of asked) Weather.parse(input);
  });
}
