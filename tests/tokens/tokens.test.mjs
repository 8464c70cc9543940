// Are our tokens those of others? tiktoken judges text of every kind on the published gpt-oss vocabulary, and
// @huggingface/tokenizers what the small model's says.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {after, test} from 'node:test';
import {Tokenizer as HuggingFace} from '@huggingface/tokenizers';
import {get_encoding} from 'tiktoken';

import {ask, encode, published, random} from './gauntlet.mjs';

const root = new URL('../..', import.meta.url).pathname;
const validation = readFileSync(`${root}/tests/golden/validation.txt`, 'utf8');
const {added_tokens: added} = JSON.parse(readFileSync(`${published}/tokenizer.json`));
const specials = Object.fromEntries(added.map(({content, id}) => [content, id]));
const known = new Set(['<|endoftext|>', '<|endofprompt|>']);  // tiktoken has them already
const tiktoken = get_encoding(
    'o200k_base', Object.fromEntries(Object.entries(specials).filter(([text]) => !known.has(text))));
after(() => tiktoken.free());

/** Fails with the shortest text on which we differ from tiktoken. */
async function judge(texts) {
  const ours = await encode(texts);
  assert.equal(ours.length, texts.length);
  const wrong = texts.map((text, i) => ({text, ours: ours[i].join(), tiktoken: tiktoken.encode_ordinary(text).join()}))
                    .filter((one) => one.ours !== one.tiktoken)
                    .sort((a, b) => a.text.length - b.text.length);
  assert.equal(wrong.length, 0,
               `${wrong.length} of ${texts.length} differ, the shortest: ${JSON.stringify(wrong[0])}`);
}

const scalar = (point) => point < 0xd800 || point > 0xdfff;

test('the validation text', async () => {
  await judge([validation, ...validation.split('\n')]);
});

test('every code point, in several surroundings', async () => {
  const texts = [];
  for (let point = 0, text = ''; point < 0x110000; ++point) {
    if (!scalar(point)) continue;
    const c = String.fromCodePoint(point);
    text += `${c}a ${c}B1${c}`;
    if (text.length > 4000 || point === 0x10ffff) {
      texts.push(text);
      text = '';
    }
  }
  await judge(texts);
});

test('10,000 random strings of all planes', async () => {
  const below = random(20260816);
  const pick = (list) => list[below(list.length)];
  const of = (pattern) => {
    const found = [];
    for (let point = 0; point < 0x20000; ++point) {
      if (scalar(point) && pattern.test(String.fromCodePoint(point))) found.push(String.fromCodePoint(point));
    }
    return found;
  };
  const marks = of(/\p{M}/u);
  const numbers = of(/\p{N}/u);
  const uppers = of(/[\p{Lu}\p{Lt}]/u);
  const lowers = of(/\p{Ll}/u);
  const others = of(/[\p{Lm}\p{Lo}]/u);
  const spaces = [' ', ' ', ' ', '\t', '\n', '\r', '\r\n', '\v', '\f', '\x85', '\xa0', '\u1680', '\u2003', '\u2028',
                  '\u2029', '\u202f', '\u205f', '\u3000', '\u200b', '\ufeff', '  \n ', '\n\n'];
  const endings = ['\'s', '\'T', '\'re', '\'VE', '\'m', '\'lL', '\'D', '\'\u017f', '\'x', '\'', '\u2019s', '\'l', '\'r'];
  const symbols = ['!', '/', '//', '-', '_', '.', '...', '<|', '|>', '<|end|>', '"', '\u{1f600}', '\u{1f468}\u200d\u{1f469}',
                   '\ufffd', '\x00', '\x1b[0m', '\x7f', '€', '—'];
  const kinds = [
    () => pick(marks), () => pick(numbers), () => pick(uppers), () => pick(lowers), () => pick(others),
    () => pick(spaces), () => pick(spaces), () => pick(endings), () => pick(symbols),
    () => String.fromCharCode(97 + below(26)).repeat(1 + below(4)),
    () => String.fromCharCode(65 + below(26)).repeat(1 + below(4)),
    () => String(below(100000)),
    () => validation.slice(below(100000)).slice(0, below(12)),
    () => {
      const point = below(0x110000);
      return scalar(point) ? String.fromCodePoint(point) : 'x';
    },
  ];
  const texts = Array.from({length: 10000}, () => Array.from({length: below(40)}, () => pick(kinds)()).join(''));
  await judge(texts);
});

test('control characters', async () => {
  const controls = [...Array(0x20).keys(), ...Array.from({length: 0x21}, (_, i) => 0x7f + i)];
  const texts = [];
  for (const a of controls) {
    for (const b of controls) texts.push(String.fromCharCode(a, b) + 'x' + String.fromCharCode(b, a, a, 32));
  }
  await judge(texts);
});

test('strings of few letters, where merges of equal rank meet', async () => {
  const below = random(7);
  const texts = Array.from({length: 20000}, () => {
    const letters = ['ab', 'aa ', '01', 'ana', 'xX', '- -', '=', ' ', '\n ', 'hah', '\u4e00\u4e8c'][below(11)];
    return Array.from({length: 1 + below(90)}, () => letters[below(letters.length)]).join('');
  });
  await judge(texts);
});

test('every special token, as text and as special', async () => {
  const texts = Object.keys(specials).flatMap((one) => [one, `a${one}b`, ` ${one}${one}\n`, one.slice(0, -1), `<${one}>`]);
  await judge(texts);
  const ours = await encode(texts, {special: true});
  texts.forEach((text, i) => assert.equal(ours[i].join(), tiktoken.encode(text, 'all').join(), text));
  const alone = await encode(Object.keys(specials), {special: true});
  assert.deepEqual(alone.flat(), Object.values(specials));
});

test('any bytes come back, and UTF-8 is encoded the same as bytes and as text', async () => {
  const below = random(3);
  const hexes = Array.from({length: 3000}, () => {
    const bytes = Buffer.from(Array.from({length: below(60)}, () => below(2) ? below(256) : 97 + below(26)));
    return bytes.toString('hex');
  });
  const ids = await ask(hexes.map((hex) => ({hex})));
  const back = await ask(ids);
  back.forEach((one, i) => {
    assert.equal(one.hex, hexes[i]);
    assert.equal(one.text, Buffer.from(hexes[i], 'hex').toString('utf8'), 'U+FFFD as WHATWG places it');
  });
  const [asBytes, asText] = await ask([{hex: Buffer.from(validation).toString('hex')}, {text: validation}]);
  assert.deepEqual(asBytes, asText);
});

test('gauntlet-tiny, as @huggingface/tokenizers', async () => {
  const model = `${root}/models/gauntlet-tiny`;
  const judgeOfTiny = new HuggingFace(JSON.parse(readFileSync(`${model}/tokenizer.json`)),
                                      JSON.parse(readFileSync(`${model}/tokenizer_config.json`)));
  const below = random(11);
  const texts = [validation, ...Array.from({length: 2000}, () => validation.slice(below(100000)).slice(0, below(200)))];
  const ours = await encode(texts, {model});
  texts.forEach((text, i) => assert.equal(
      ours[i].join(), judgeOfTiny.encode(text, {add_special_tokens: false}).ids.join(), JSON.stringify(text)));
});
