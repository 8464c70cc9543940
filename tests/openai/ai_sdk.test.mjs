// Vercel's AI SDK, through its responses model and its chat model.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {createOpenAI} from '@ai-sdk/openai';
import {generateText, Output, stepCountIs, streamText, tool} from 'ai';
import {z} from 'zod';

import {serve} from './server.mjs';

const server = await serve();
const openai = createOpenAI({baseURL: `${server.url}/v1`, apiKey: 'none'});
const models = {responses: openai.responses('gauntlet-tiny'), chat: openai.chat('gauntlet-tiny')};
const weather = () => {
  const asked = [];
  return {
    asked,
    tools: {
      weather: tool({
        description: 'The weather of a city.',
        inputSchema: z.object({city: z.string().max(8), unit: z.enum(['c', 'f'])}),
        execute: async (input) => {
          asked.push(input);
          return {degrees: 21};
        },
      }),
    },
  };
};

for (const [kind, model] of Object.entries(models)) {
  test(`${kind}: a text, whole and streamed`, async () => {
    const request = {model, system: 'Be brief.', prompt: 'Tell me about a cat.', temperature: 0, maxOutputTokens: 24, maxRetries: 0};
    const whole = await generateText(request);
    assert.ok(whole.text.length > 0);
    assert.ok(whole.usage.inputTokens > 0 && whole.usage.outputTokens > 0);
    const stream = streamText({...request, onError: ({error}) => assert.fail(error)});
    let text = '';
    for await (const part of stream.textStream) text += part;
    assert.equal(text, whole.text);
    assert.equal(await stream.finishReason, whole.finishReason);
    assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
  });

  test(`${kind}: earlier turns as it keeps them itself`, async () => {
    const messages = [{role: 'user', content: 'Hello.'}];
    let tokens = 0;
    for (let turn = 0; turn < 3; ++turn) {
      const {response, usage} = await generateText({model, messages, maxOutputTokens: 12, maxRetries: 0});
      assert.ok(usage.inputTokens > tokens);
      tokens = usage.inputTokens;
      messages.push(...response.messages, {role: 'user', content: [{type: 'text', text: 'Go on.'}]});
    }
  });

  test(`${kind}: tools that it calls and answers, step by step`, async () => {
    for (const store of [true, false]) {
      const {asked, tools} = weather();
      const request = {
        model, tools, toolChoice: 'required', prompt: 'What is the weather in Oslo?', maxOutputTokens: 200, maxRetries: 0,
        stopWhen: stepCountIs(3), providerOptions: {openai: {store, parallelToolCalls: false}},
      };
      const whole = await generateText(request);
      assert.equal(whole.steps.length, 3);
      assert.equal(asked.length, 3);
      const stream = streamText({...request, onError: ({error}) => assert.fail(error)});
      const kinds = new Set();
      for await (const part of stream.fullStream) kinds.add(part.type);
      for (const one of ['tool-input-start', 'tool-input-delta', 'tool-call', 'tool-result', 'finish']) assert.ok(kinds.has(one), one);
      assert.equal(asked.length, 6);
      for (const input of asked) assert.ok(['c', 'f'].includes(input.unit));
    }
  });

  test(`${kind}: an object of a schema, whole and streamed`, async () => {
    const schema = z.object({name: z.string().max(8), age: z.number().int().min(0).max(150), tags: z.array(z.enum(['a', 'b'])).max(2)});
    const request = {model, prompt: 'A person.', maxOutputTokens: 400, maxRetries: 0, output: Output.object({schema})};
    schema.parse((await generateText(request)).output);
    const stream = streamText({...request, onError: ({error}) => assert.fail(error)});
    let partial;
    for await (const one of stream.partialOutputStream) partial = one;
    schema.parse(partial);
  });
}

test('responses: reasoning is kept over steps, stored here or by the client', async () => {
  const logit_bias = await server.toward_reasoning();
  const biased = (url, options) => fetch(url, {...options, body: JSON.stringify({...JSON.parse(options.body), logit_bias})});
  const reasoning = createOpenAI({baseURL: `${server.url}/v1`, apiKey: 'none', fetch: biased});
  for (const store of [true, false]) {
    for (let i = 0; i < 3; ++i) {
      const {asked, tools} = weather();
      const {steps} = await generateText({
        model: reasoning.responses('gauntlet-tiny'), tools, toolChoice: 'required', prompt: `Weather ${i}?`, maxOutputTokens: 300, maxRetries: 0, stopWhen: stepCountIs(2),
        providerOptions: {openai: {store, forceReasoning: true, reasoningEffort: 'low', reasoningSummary: 'auto', promptCacheKey: 'k'}},
      });
      assert.equal(asked.length, 2);
      const [first, second] = steps;
      assert.ok(first.usage.outputTokenDetails.reasoningTokens > 0, 'it did not reason');
      const body = typeof second.request.body === 'string' ? JSON.parse(second.request.body) : second.request.body;
      const sent = body.input.map(({type}) => type);
      assert.ok(sent.includes(store ? 'item_reference' : 'reasoning'), JSON.stringify(body.input));
      assert.ok(second.usage.inputTokens > first.usage.inputTokens + first.usage.outputTokenDetails.reasoningTokens);
    }
  }
});

test('responses: goes on from what the server kept', async () => {
  const model = models.responses;
  const first = await generateText({model, prompt: 'Hello.', maxOutputTokens: 8, maxRetries: 0});
  const previousResponseId = first.providerMetadata.openai.responseId;
  const next = await generateText({model, prompt: 'Go on.', maxOutputTokens: 8, maxRetries: 0, providerOptions: {openai: {previousResponseId}}});
  assert.ok(next.usage.inputTokens > first.usage.inputTokens);
});

test('an error is told as what it is', async () => {
  await assert.rejects(generateText({model: models.responses, prompt: 'word '.repeat(20000), maxRetries: 0}),
                       (error) => error.statusCode === 400 && /tokens/.test(error.message));
});
