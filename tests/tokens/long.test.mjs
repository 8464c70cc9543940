// Is one long piece, which tiktoken takes minutes for, still right and quick? @huggingface/tokenizers judges.
import assert from 'node:assert/strict';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {test} from 'node:test';
import {Tokenizer as HuggingFace} from '@huggingface/tokenizers';

import {encode, published, run} from './gauntlet.mjs';

const letters = readFileSync(new URL('../golden/validation.txt', import.meta.url), 'utf8')
                    .toLowerCase()
                    .replace(/[^a-z]/g, '');
const withoutSpaces = (size) => letters.repeat(Math.ceil(size / letters.length)).slice(0, size);

test('a megabyte without spaces, as @huggingface/tokenizers', async () => {
  const [tokenizer, config] =
      ['tokenizer.json', 'tokenizer_config.json'].map((name) => JSON.parse(readFileSync(`${published}/${name}`)));
  const text = withoutSpaces(1e6);
  const [ours] = await encode([text]);
  const theirs = new HuggingFace(tokenizer, config).encode(text, {add_special_tokens: false}).ids;
  assert.equal(ours.join(), theirs.join());
});

test('its time grows as n log n', async (t) => {
  const folder = mkdtempSync(`${tmpdir()}/gauntlet-`);
  const times = [];
  for (const megabytes of [0.5, 1, 2]) {
    writeFileSync(`${folder}/text`, withoutSpaces(megabytes * 1e6));
    const args = ['tokenize', '--model', published, '--file', `${folder}/text`, '--count', '--format', 'json'];
    const rounds = [];
    for (let round = 0; round < 3; ++round) rounds.push(JSON.parse(await run(args)).timing.encode_ms);
    times.push(Math.min(...rounds));
    t.diagnostic(`${megabytes} MB without spaces: ${times.at(-1).toFixed(0)} ms`);
  }
  rmSync(folder, {recursive: true});
  assert.ok(times[2] < 9 * times[0], 'quadratic would be 16 times as long for 4 times the text');
});
