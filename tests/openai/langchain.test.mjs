// LangChain's chat model, over chat completions and over responses.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {AIMessage, HumanMessage, SystemMessage, ToolMessage} from '@langchain/core/messages';
import {tool} from '@langchain/core/tools';
import {ChatOpenAI, OpenAI} from '@langchain/openai';
import {z} from 'zod';

import {serve} from './server.mjs';

const server = await serve();
const base = {model: 'gauntlet-tiny', apiKey: 'none', maxRetries: 0, configuration: {baseURL: `${server.url}/v1`}};
const weather = tool(async () => 'rain', {
  name: 'get_weather',
  description: 'The weather of a city.',
  schema: z.object({city: z.string().max(8), unit: z.enum(['c', 'f'])}),
});
const messages = [new SystemMessage('Be brief.'), new HumanMessage('Tell me about a cat.')];
const chat = (more = {}) => new ChatOpenAI({...base, maxTokens: 24, temperature: 0, ...more});

for (const useResponsesApi of [false, true]) {
  const kind = useResponsesApi ? 'responses' : 'chat';

  test(`${kind}: invoke, stream and batch say the same`, async () => {
    const model = chat({useResponsesApi});
    const whole = await model.invoke(messages);
    assert.ok(whole.text.length > 0);
    assert.ok(whole.usage_metadata.input_tokens > 0);
    let gathered;
    for await (const chunk of await model.stream(messages)) gathered = gathered ? gathered.concat(chunk) : chunk;
    assert.equal(gathered.text, whole.text);
    assert.deepEqual([gathered.usage_metadata.input_tokens, gathered.usage_metadata.output_tokens],
                     [whole.usage_metadata.input_tokens, whole.usage_metadata.output_tokens]);
    const batch = await model.batch([messages, messages]);
    assert.deepEqual(batch.map(({text}) => text), [whole.text, whole.text]);
  });

  test(`${kind}: tools bound, called, answered, and sent back`, async () => {
    // Over responses the client sends no choice but a name.
    const tool_choice = useResponsesApi ? 'get_weather' : 'required';
    const model = chat({useResponsesApi, maxTokens: 200, temperature: 1}).bindTools([weather], {tool_choice, strict: true, parallel_tool_calls: false});
    const talk = [...messages];
    let tokens = 0;
    for (let turn = 0; turn < 3; ++turn) {
      let answer;
      if (turn === 1) {  // a message that was gathered of chunks goes back as such
        for await (const chunk of await model.stream(talk)) answer = answer ? answer.concat(chunk) : chunk;
      } else {
        answer = await model.invoke(talk);
      }
      const [call] = answer.tool_calls;
      assert.equal(call.name, 'get_weather');
      weather.schema.parse(call.args);
      assert.ok(answer.usage_metadata.input_tokens > tokens);
      tokens = answer.usage_metadata.input_tokens;
      talk.push(answer, new ToolMessage({tool_call_id: call.id, name: call.name, content: await weather.invoke(call.args)}));
    }
    const named = chat({useResponsesApi, maxTokens: 200}).bindTools([weather], {tool_choice: 'get_weather'});
    assert.equal((await named.invoke(messages)).tool_calls[0].name, 'get_weather');
    const free = chat({useResponsesApi}).bindTools([weather]);
    assert.equal((await free.invoke(messages)).tool_calls.length, 0);
  });

  test(`${kind}: structured output by a schema and by a call`, async () => {
    const schema = z.object({name: z.string().max(8), age: z.number().int().min(0).max(150)});
    for (const method of ['jsonSchema', 'functionCalling']) {
      const model = chat({useResponsesApi, maxTokens: 300, temperature: 1}).withStructuredOutput(schema, {name: 'person', method, includeRaw: true});
      const {raw, parsed} = await model.invoke(messages);
      schema.parse(parsed);
      // With what the client read of it.
      const said = [raw];
      if (raw.tool_calls.length > 0) said.push(new ToolMessage({tool_call_id: raw.tool_calls[0].id, content: 'taken'}));
      const tokens = async (...more) => (await chat({useResponsesApi, maxTokens: 1}).invoke([...messages, ...more])).usage_metadata.input_tokens;
      assert.ok(await tokens(...said, new HumanMessage('And?')) > await tokens(new HumanMessage('And?')));
    }
  });

  test(`${kind}: messages of its other shapes`, async () => {
    const talk = [
      new SystemMessage({content: [{type: 'text', text: 'Be brief.'}]}),
      new HumanMessage({content: [{type: 'text', text: 'A '}, {type: 'text', text: 'cat.'}], name: 'bob'}),
      new AIMessage({content: '', tool_calls: [{id: 'call_1', name: 'get_weather', args: {city: 'Oslo'}}]}),
      new ToolMessage({tool_call_id: 'call_1', content: [{type: 'text', text: 'rain'}], status: 'success'}),
      new AIMessage({content: [{type: 'text', text: 'It rains.'}]}),
      new HumanMessage('Thanks.'),
    ];
    const answer = await chat({useResponsesApi, maxTokens: 4, user: 'me', promptCacheKey: 'k', promptCacheRetention: '24h'}).invoke(talk);
    assert.ok(answer.usage_metadata.output_tokens <= 4);
  });
}

test('chat: log-probabilities and reasoning effort', async () => {
  const model = chat({logprobs: true, topLogprobs: 2, reasoning: {effort: 'low'}, verbosity: 'low', service_tier: 'auto'});
  const answer = await model.invoke(messages);
  assert.ok(Array.isArray(answer.response_metadata.logprobs.content));
});

test('responses: reasoning, with what the client keeps itself', async () => {
  // The client takes only OpenAI's models to reason, so it is told by what it passes on.
  const modelKwargs = {reasoning: {effort: 'low', summary: 'auto'}, logit_bias: await server.toward_reasoning()};
  const model = chat({useResponsesApi: true, zdrEnabled: true, maxTokens: 300, temperature: 1, modelKwargs})
      .bindTools([weather], {tool_choice: 'get_weather', include: ['reasoning.encrypted_content']});
  const answer = await model.invoke(messages);
  assert.ok(answer.additional_kwargs.reasoning.encrypted_content, 'it did not reason');
  const [call] = answer.tool_calls;
  const output = new ToolMessage({tool_call_id: call.id, content: 'rain'});
  const next = await model.invoke([...messages, answer, output]);
  assert.equal(next.tool_calls[0].name, 'get_weather');
  const {input_tokens, output_token_details: {reasoning}} = answer.usage_metadata;
  assert.ok(next.usage_metadata.input_tokens > input_tokens + reasoning, 'the reasoning did not come back');
});

test('completions: a text', async () => {
  const text = await new OpenAI({...base, maxTokens: 12, temperature: 0}).invoke('Once upon a time');
  assert.ok(text.length > 0);
});
