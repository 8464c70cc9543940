// Starts `gauntlet serve` on a free port, and ends it with the tests.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {after} from 'node:test';

import OpenAI from 'openai';

const program = process.env.GAUNTLET ?? 'build/release/gauntlet';

/** A server with these options: its address, and clients for it. */
export async function serve(...options) {
  // The server's threads are on this machine's few cores; one is enough for the small model.
  const child = spawn(program, ['serve', '--port', '0', '--backend', 'cpu', '--threads', '1', ...options],
                      {stdio: ['ignore', 'pipe', 'pipe']});
  let log = '';
  child.stderr.on('data', (data) => log = (log + data).slice(-20000));
  const ended = once(child, 'exit');
  const url = await new Promise((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (data) => {
      said += data;
      const found = /on (http:\/\/\S+)\n/.exec(said);
      if (found) resolve(found[1]);
    });
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`gauntlet serve ended with ${code}: ${log}`)));
  });
  after(async () => {
    child.kill('SIGTERM');
    const [code, signal] = await ended;
    assert.equal(code, 0, `the server ended with ${code ?? signal}: ${log}`);
  });
  return {
    url,
    client: (more = {}) => new OpenAI({baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, ...more}),
    /** A bias by which this model, which seldom reasons, begins a turn with it where it may. */
    toward_reasoning: async () => {
      const reply = await fetch(`${url}/tokenize`, {method: 'POST', body: JSON.stringify({prompt: 'analysis', add_special_tokens: false})});
      return {[(await reply.json()).tokens[0]]: 20};
    },
    /** What Prometheus reads, by name without labels. */
    metric: async (name) => {
      const text = await (await fetch(`${url}/metrics`)).text();
      const line = text.split('\n').find((one) => one.startsWith(name + '{') || one.startsWith(name + ' '));
      assert.ok(line, `there is no metric ${name}`);
      return Number(line.split(' ').at(-1));
    },
  };
}

/** Asks again until it is true; the time it may take is generous, for the machine may be busy. */
export async function eventually(what, is_true) {
  for (let i = 0; i < 600; ++i) {
    if (await is_true()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`it never came to be that ${what}`);
}
