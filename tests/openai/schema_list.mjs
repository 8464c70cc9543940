// Schemas of all kinds that are held, with bounds that let a small model's answers end.
const word = {type: 'string', maxLength: 6};
const integer = {type: 'integer', minimum: -99, maximum: 999};
const boolean = {type: 'boolean'};
const list = (items, more = {}) => ({type: 'array', items, maxItems: 2, ...more});
const object = (properties, required = Object.keys(properties), more = {additionalProperties: false}) =>
    ({type: 'object', properties, required, ...more});
const format = (name, more = {}) => ({type: 'string', format: name, ...more});
const pattern = (text, more = {}) => ({type: 'string', pattern: text, ...more});
const kind = (name, properties) => object({kind: {const: name}, ...properties});

export const schemas = [
  // types and values
  boolean, {type: 'null'}, integer, word, {type: ['boolean', 'null']}, {type: ['integer', 'boolean'], maximum: 9, minimum: 0},
  {enum: ['red', 'green', 'blue']}, {const: 'x"y\\z'}, {const: {a: [1, {b: null}]}}, {enum: ['a', 1, -2.5, true, null, [1, 2]]},
  {type: 'string', enum: ['celsius', 'fahrenheit']}, {type: 'integer', nullable: true, minimum: 0, maximum: 9},
  // numbers
  {type: 'integer', minimum: 0, maximum: 150}, {type: 'integer', exclusiveMinimum: -8, exclusiveMaximum: 8},
  {type: 'number', minimum: 0.25, maximum: 0.75, exclusiveMaximum: 0.5}, {type: 'integer', format: 'int32', minimum: -5, maximum: 5e9},
  {type: 'integer', format: 'int64', minimum: 0}, {type: 'integer', minimum: 1000, maximum: 1234}, {type: 'integer', multipleOf: 5, minimum: 0, maximum: 60},
  // strings
  {type: 'string', minLength: 2, maxLength: 5}, {type: 'string', maxLength: 0}, pattern('^[a-c]{1,4}$'), pattern('^(ab|cd){1,3}x?$'),
  pattern('^\\d{3}-[A-Z]{2}$'), pattern('b', {maxLength: 4}), pattern('^(?!a)[a-d]{2,5}$'), pattern('^(?=.*[0-9])[a-z0-9]{3,6}$'),
  {type: 'string', maxLength: 5000, pattern: '^[a-f]{0,12}$'}, {allOf: [pattern('a'), pattern('b'), {maxLength: 5}], type: 'string'},
  format('date'), format('time'), format('date-time'), format('uuid'), format('ipv4'), format('ipv6'),
  format('duration', {maxLength: 12}), format('hostname', {maxLength: 10}), format('email', {maxLength: 12}), format('uri', {maxLength: 16}),
  // arrays
  list(integer), list(boolean, {minItems: 1}), list(list(boolean)), list(boolean, {uniqueItems: false}), list({enum: ['a', 'b']}, {maxItems: 4}),
  {type: 'array', prefixItems: [integer, word], items: false, minItems: 2}, {type: 'array', prefixItems: [boolean], items: integer, minItems: 1, maxItems: 3},
  {type: 'array', items: [integer, boolean], additionalItems: false, minItems: 2, draft: 7},
  {type: 'array', items: [boolean], additionalItems: {const: 1}, minItems: 1, maxItems: 3, draft: 7}, {type: 'array', maxItems: 0},
  // objects
  object({a: integer, b: word}), object({a: integer, b: word}, ['b']), object({a: integer, b: boolean, c: word}, []),
  object({a: object({b: object({c: boolean})})}), object({'a b': integer, 'ä"\n': boolean}), object({}),
  object({a: integer, b: word}, ['a'], {}), object({a: boolean, x: {type: 'null'}}, ['x', 'a'], {title: 'two'}),
  {type: 'object', propertyNames: {enum: ['one', 'two']}, additionalProperties: boolean, required: ['one']},
  {type: 'object', propertyNames: {pattern: '^[a-z]{1,3}$'}, properties: {abc: integer}, required: ['abc'], additionalProperties: false},
  object({id: format('uuid'), at: format('date-time')}), object({unit: {enum: ['c', 'f'], 'x-note': 1}, days: {type: 'integer', minimum: 1, maximum: 14}}),
  object({name: word, age: {type: 'integer', minimum: 0, maximum: 150}, tags: list({enum: ['a', 'b']})}),
  object({name: {...word, nullable: true}, note: {...word, description: 'a note', default: 'n', examples: ['x']}}, ['name']),
  // several at once
  {anyOf: [integer, word]}, {anyOf: [kind('a', {x: integer}), kind('b', {y: word})]}, {oneOf: [integer, list(boolean)]},
  {oneOf: [kind('a', {x: boolean}), kind('b', {}), kind('c', {z: {type: 'null'}})], discriminator: {propertyName: 'kind'}},
  {allOf: [object({a: integer}, ['a'], {}), {properties: {a: {minimum: 5}, b: boolean}}], required: ['b']},
  {type: 'object', properties: {a: {const: 1}, b: {const: 2}}, anyOf: [{required: ['a']}, {required: ['b']}], additionalProperties: false},
  object({choice: {anyOf: [{type: 'null'}, word, object({deep: boolean})]}}), {allOf: [{minimum: 3}, {maximum: 7}], type: 'integer'},
  // references
  {$ref: '#/$defs/leaf', $defs: {leaf: word}}, object({one: {$ref: '#/$defs/leaf'}, two: {$ref: '#/$defs/leaf'}}, ['one', 'two'],
   {$defs: {leaf: {enum: [1, 2]}}, additionalProperties: false}),
  {$ref: '#/$defs/node', $defs: {node: object({v: boolean, next: {anyOf: [{type: 'null'}, {$ref: '#/$defs/node'}]}})}},
  {$ref: '#/definitions/pair', definitions: {pair: {type: 'array', items: {$ref: '#/definitions/one'}, minItems: 2, maxItems: 2}, one: boolean}},
  {allOf: [{$ref: '#/$defs/base'}], properties: {a: {maximum: 9}, b: boolean}, required: ['a', 'b'],
   $defs: {base: {type: 'object', properties: {a: {type: 'integer', minimum: 0}, b: {}}}}},
  // as people write them
  object({title: word, rating: {type: 'number', minimum: 0, maximum: 5}, seen: boolean}),
  object({steps: list(object({explanation: word, output: word}), {minItems: 1}), final: word}),
  object({sentiment: {enum: ['positive', 'neutral', 'negative']}, confidence: {type: 'number', minimum: 0, maximum: 1}}),
  object({city: word, country: pattern('^[A-Z]{2}$'), zip: pattern('^[0-9]{5}$')}, ['country', 'zip']),
  object({from: format('date'), to: format('date'), guests: {type: 'integer', minimum: 1, maximum: 8}}, ['from', 'to']),
].map((schema) => JSON.parse(JSON.stringify(schema)));
