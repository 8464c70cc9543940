// Objects by zod's schemas, one per kind of them, through the ai SDK.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {generateObject, generateText, Output, streamObject} from 'ai';
import * as z from 'zod';

import {serve} from './server.mjs';

const server = await serve();
const provider = createOpenAICompatible({name: 'gauntlet', baseURL: `${server.url}/v1`, supportsStructuredOutputs: true});
const model = provider('gauntlet-tiny');
const ask = {model, prompt: 'Fill in the form.', maxOutputTokens: 400, maxRetries: 0};

/** What zod knows; those that JSON Schema cannot say have null, as zod itself refuses them. */
const kinds = {
  string: z.string().max(8),
  number: z.number().min(-5).max(5),
  int: z.int().min(0).max(99),
  int32: z.int32(),
  boolean: z.boolean(),
  null: z.null(),
  literal: z.literal(['a', 'b', 3]),
  enum: z.enum(['red', 'green']),
  nullable: z.nullable(z.boolean()),
  optional: z.object({a: z.optional(z.boolean())}),
  default: z.object({a: z.boolean().default(true)}),
  prefault: z.object({a: z.string().max(3).prefault('x')}),
  catch: z.boolean().catch(false),
  readonly: z.boolean().readonly(),
  nonoptional: z.object({a: z.nonoptional(z.optional(z.boolean()))}),
  object: z.object({a: z.boolean(), b: z.int().min(0).max(9)}),
  strictObject: z.strictObject({a: z.boolean()}),
  looseObject: z.object({in: z.looseObject({a: z.boolean()}).nullable()}),
  catchall: z.object({a: z.boolean()}).catchall(z.never()),
  record: z.record(z.enum(['x', 'y']), z.boolean()),
  partialRecord: z.partialRecord(z.enum(['x', 'y']), z.boolean()),
  array: z.array(z.boolean()).max(3),
  tuple: z.tuple([z.boolean(), z.int().min(0).max(9)]),
  union: z.union([z.boolean(), z.null()]),
  discriminatedUnion: z.discriminatedUnion('kind', [
    z.object({kind: z.literal('a'), x: z.boolean()}), z.object({kind: z.literal('b')})]),
  intersection: z.intersection(z.object({a: z.boolean()}), z.object({b: z.boolean()})),
  lazy: z.object({get next() { return z.nullable(kinds.lazy); }}),
  pipe: z.boolean().pipe(z.boolean()),
  templateLiteral: z.templateLiteral(['n', z.enum(['1', '2'])]),
  regex: z.string().regex(/^[ab]{1,3}$/),
  startsWith: z.string().startsWith('a').max(4),
  email: z.email().max(14),
  uuid: z.uuid(),
  url: z.url().max(20),
  ipv4: z.ipv4(),
  ipv6: z.ipv6(),
  base64: z.base64().max(8),
  isoDate: z.iso.date(),
  isoTime: z.iso.time({precision: 0}),
  isoDatetime: z.iso.datetime({precision: 0}),
  date: null,
  bigint: null,
  map: null,
  transform: null,
};
const unsayable = {date: z.date(), bigint: z.bigint(), map: z.map(z.string(), z.string()), transform: z.string().transform(Number)};

test('there are forty-four kinds, of which JSON Schema can say forty', () => {
  assert.equal(Object.keys(kinds).length, 44);
  assert.deepEqual(Object.keys(kinds).filter((name) => kinds[name] === null), Object.keys(unsayable));
  for (const schema of Object.values(unsayable)) assert.throws(() => z.toJSONSchema(schema));
});

test('each kind is answered by a value that zod takes', async (t) => {
  const failed = [];
  await Promise.all(Object.entries(kinds).filter(([, inner]) => inner !== null).map(async ([name, inner]) => {
    const schema = z.object({value: inner});
    try {
      const {object, finishReason} = await generateObject({...ask, schema, seed: 1});
      assert.equal(finishReason, 'stop');
      schema.parse(object);
    } catch (error) {
      failed.push(`${name}: ${error.message} ${error.text ?? ''} ${error.responseBody ?? ''}`);
    }
  }));
  t.diagnostic(`${40 - failed.length} of 40 kinds`);
  assert.deepEqual(failed, []);
});

test('an object is streamed, and had as the output of a text', async () => {
  const schema = z.object({name: z.string().max(8), sizes: z.array(z.int().min(0).max(9)).max(3)});
  const {partialObjectStream, object} = streamObject({...ask, schema, seed: 2});
  let parts = 0;
  for await (const part of partialObjectStream) parts += part ? 1 : 0;
  assert.ok(parts > 1);
  const streamed = schema.parse(await object);
  const {object: whole} = await generateObject({...ask, schema, seed: 2});
  assert.deepEqual(streamed, whole);
  const {output} = await generateText({...ask, output: Output.object({schema}), seed: 2});
  assert.deepEqual(output, whole);
});
