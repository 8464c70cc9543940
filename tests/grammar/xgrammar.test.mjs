// Does xgrammar (a WebAssembly build) accept whatever our grammars of the same schemas accept?
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {test} from 'node:test';

// The package calls itself an ES module but is none, so it is loaded as what it is.
const {Grammar, Testings} = (() => {
  const path = createRequire(import.meta.url).resolve('@mlc-ai/web-xgrammar');
  const module = {exports: {}};
  new Function('module', 'exports', 'require', '__dirname', '__filename', readFileSync(path, 'utf8'))(
      module, module.exports, createRequire(path), path, path);
  return module.exports;
})();

/** With any white space; members and items that a schema does not speak of are not allowed, as with us. */
const theirs = (schema) => Grammar.fromJSONSchema(JSON.stringify(schema), true, undefined, undefined, true);

/** One answer of ours per request, in order. */
function ask(requests) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.env.GRAMMAR_LINES, [], {stdio: ['pipe', 'pipe', 'inherit']});
    const out = [];
    child.stdout.on('data', (data) => out.push(data));
    child.on('error', reject);
    child.on('close', (code) => {
      if (code !== 0) return reject(new Error(`grammar_lines ended with ${code}`));
      const answers = Buffer.concat(out).toString().trimEnd().split('\n').map((line) => JSON.parse(line));
      answers.forEach(({error}, i) => assert.equal(error, undefined, JSON.stringify(requests[i].schema)));
      resolve(answers);
    });
    child.stdin.end(requests.map((request) => JSON.stringify(request) + '\n').join(''));
  });
}

const string = {type: 'string'};
const integer = {type: 'integer'};
const boolean = {type: 'boolean'};
const object = (properties, required = Object.keys(properties), more = {additionalProperties: false}) =>
    ({type: 'object', properties, required, ...more});

// Not here, for xgrammar 0.1.27 is wrong about them: numbers with bounds (it takes no -1.999 for a minimum of -2.5),
// prefixItems that need not be there, and addresses whose last part has one letter.
const plain = [
  string, integer, boolean, {type: 'null'}, {type: 'number'}, {type: ['string', 'null']}, {type: ['integer', 'boolean']},
  {enum: ['a', 'b c', 1, -2.5, true, null]}, {const: 'x"y\\z'}, {const: 12}, {type: 'string', enum: ['celsius', 'fahrenheit']},
  {...string, maxLength: 4}, {...string, minLength: 2, maxLength: 5}, {...string, minLength: 3},
  {...string, pattern: '^[a-c]+$'}, {...string, pattern: '^(ab|cd){1,3}x?$'}, {...string, pattern: '^\\d{3}-[A-Z]{2}$'},
  {...string, format: 'date'}, {...string, format: 'time'}, {...string, format: 'date-time'}, {...string, format: 'uuid'},
  {...integer, minimum: 0}, {...integer, minimum: -3, maximum: 120}, {...integer, maximum: -5}, {...integer, exclusiveMinimum: 10},
  {...integer, exclusiveMinimum: -8, exclusiveMaximum: 8}, {...integer, minimum: 1000, maximum: 123456},
  {type: 'array', items: integer}, {type: 'array', items: string, minItems: 1, maxItems: 3},
  {type: 'array', items: {type: 'array', items: boolean, maxItems: 2}}, {type: 'array', items: integer, minItems: 2},
  {type: 'array', prefixItems: [integer, string], items: false, minItems: 2},
  {type: 'array', prefixItems: [boolean], items: integer, minItems: 1},
  object({a: integer, b: string}), object({a: integer, b: string}, ['b']), object({a: integer, b: boolean, c: string}, []),
  object({a: object({b: object({c: integer})})}), object({'a b': integer, 'ä': boolean}),
  object({a: integer}, ['a'], {additionalProperties: string}), {type: 'object', additionalProperties: integer},
  {type: 'object', additionalProperties: true}, object({}, []),
  {anyOf: [integer, string]}, {anyOf: [object({kind: {const: 'a'}, x: integer}), object({kind: {const: 'b'}, y: string})]},
  {oneOf: [integer, {type: 'array', items: boolean}]}, {allOf: [object({a: integer}, ['a'])]},
  {$defs: {leaf: {...string, maxLength: 3}}, ...object({one: {$ref: '#/$defs/leaf'}, many: {type: 'array', items: {$ref: '#/$defs/leaf'}}})},
  {$defs: {node: object({value: integer, next: {anyOf: [{$ref: '#/$defs/node'}, {type: 'null'}]}})}, $ref: '#/$defs/node'},
  object({name: {...string, maxLength: 12}, age: {...integer, minimum: 0, maximum: 150}, tags: {type: 'array', items: {enum: ['a', 'b']}}}),
  object({city: string, unit: {enum: ['celsius', 'fahrenheit']}, days: {...integer, minimum: 1, maximum: 14}}, ['city']),
];

/** The same ones within others. */
const inner = plain.filter((schema) => !schema.$defs);
const nested = inner.map((schema, i) => {
  const other = inner[(7 * i + 3) % inner.length];
  const members = {x: schema, 'list of y': {type: 'array', items: other, maxItems: 2}, z: {anyOf: [{type: 'null'}, schema]}};
  return object(members, Object.keys(members).slice(i % 4));
});
const schemas = [...plain, ...nested];

/** Valid, but xgrammar knows no integer -0, and no escapes in a string of a given length. */
const is_unknown_to_them = (schema, text) =>
    /-0(?![.\d])/.test(text) || (text.includes('\\') && /Length/.test(JSON.stringify(schema)));

/** The same text with a character gone, doubled or another in its place. */
function mutated(text, i) {
  const characters = [...text];
  const at = (i * 7919) % characters.length;
  characters.splice(at, i % 3 === 0 ? 1 : 0, ...(i % 3 === 2 ? '0"},]a'[i % 6] : i % 3 === 1 ? [characters[at]] : []));
  return characters.join('');
}

/** That xgrammar accepts the texts; says how many it was asked about. */
async function judge(schema, texts) {
  const grammar = await theirs(schema);
  const asked = texts.filter((text) => !is_unknown_to_them(schema, text));
  const refused = [];
  for (const text of asked) {
    if (!await Testings.isGrammarAcceptString(grammar, text)) refused.push(text);
  }
  grammar.dispose();
  assert.deepEqual(refused, [], JSON.stringify(schema));
  return asked.length;
}

test('texts that our grammars write', async () => {
  const answers = await ask(schemas.map((schema, i) => ({schema, seed: i, count: 8})));
  let num_pairs = 0;
  for (const [i, {texts}] of answers.entries()) {
    assert.ok(texts.length > 0, JSON.stringify(schemas[i]));
    num_pairs += await judge(schemas[i], texts);
  }
  assert.ok(num_pairs >= 500, `${num_pairs} pairs`);
});

test('texts that are a character off', async () => {
  const drawn = await ask(schemas.map((schema, i) => ({schema, seed: 1000 + i, count: 4})));
  const requests = drawn.map(({texts}, i) => ({
    schema: schemas[i],
    texts: texts.flatMap((text) => Array.from({length: 6}, (unused, k) => mutated(text, i + 5 * k))),
  }));
  const answers = await ask(requests);
  let num_accepted = 0;
  let num_texts = 0;
  for (const [i, {schema, texts}] of requests.entries()) {
    num_texts += texts.length;
    num_accepted += await judge(schema, texts.filter((unused, k) => answers[i].accepts[k]));
  }
  assert.ok(num_accepted >= 100 && num_accepted < num_texts / 2, `${num_accepted} of ${num_texts} accepted`);
});

test('the judge can say no', async () => {
  const schema = object({a: {...integer, maximum: 5}});
  await judge(schema, ['{"a": 5}']);
  await assert.rejects(judge(schema, ['{"a": 6}']));
  await assert.rejects(judge(schema, ['{}']));
});
