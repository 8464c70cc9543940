// What codex sends to /v1/responses turn by turn, and what it reads of the stream.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {serve} from './server.mjs';

const server = await serve();
const shell = {
  type: 'function', name: 'shell', description: 'Runs a shell command and returns its output.', strict: false,
  parameters: {
    type: 'object',
    properties: {
      command: {type: 'array', items: {type: 'string', maxLength: 6}, maxItems: 2, description: 'The command to execute'},
      timeout_ms: {type: 'number', description: 'The timeout for the command in milliseconds'},
      workdir: {type: 'string', maxLength: 6},
    },
    required: ['command'],
    additionalProperties: false,
  },
};
const plan = {
  type: 'function', name: 'update_plan', description: 'Updates the task plan.', strict: false,
  parameters: {
    type: 'object',
    properties: {
      explanation: {type: 'string', maxLength: 6},
      plan: {type: 'array', maxItems: 1, items: {
        type: 'object', properties: {step: {type: 'string', maxLength: 6}, status: {type: 'string', enum: ['pending', 'in_progress', 'completed']}},
        required: ['step', 'status'], additionalProperties: false,
      }},
    },
    required: ['plan'],
    additionalProperties: false,
  },
};
const base = {
  model: 'gauntlet-tiny',
  instructions: 'You are a coding agent running in the Codex CLI, a terminal-based coding assistant.',
  tools: [shell, plan, {type: 'web_search', external_web_access: false}],
  tool_choice: 'auto',
  parallel_tool_calls: false,
  reasoning: {effort: 'medium', summary: 'auto'},
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '0199c0de-0000-7000-8000-000000000000',
  text: {verbosity: 'medium'},
  client_metadata: {'x-codex-installation-id': '1'},
};
const logit_bias = await server.toward_reasoning();
const opening = [
  {type: 'message', role: 'developer', content: [{type: 'input_text', text: '<permissions>read-only</permissions>'}]},
  {type: 'message', role: 'user', content: [{type: 'input_text', text: '<environment_context>\n<cwd>/tmp</cwd>\n</environment_context>'}]},
  {type: 'message', role: 'user', content: [{type: 'input_text', text: 'List the files.'}]},
];

/** As its client reads: items when they are done, and the response's end. */
async function turn(body) {
  const reply = await fetch(`${server.url}/v1/responses`, {
    method: 'POST',
    headers: {'content-type': 'application/json', accept: 'text/event-stream', originator: 'codex_cli_rs', 'session_id': 's'},
    body: JSON.stringify({...base, ...body}),
  });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  assert.match(reply.headers.get('content-type'), /^text\/event-stream/);
  const events = text.split('\n\n').filter(Boolean).map((one) => {
    const [, name, data] = /^event: (\S+)\ndata: (.*)$/.exec(one);
    const event = JSON.parse(data);
    assert.equal(event.type, name);
    return event;
  });
  events.forEach(({sequence_number}, i) => assert.equal(sequence_number, i));
  assert.equal(events[0].type, 'response.created');
  const items = events.filter(({type}) => type === 'response.output_item.done').map(({item}) => item);
  const {response} = events.at(-1);
  assert.ok(['completed', 'incomplete'].includes(response.status), JSON.stringify(response));
  assert.deepEqual(response.output, items);
  for (const name of ['input_tokens', 'output_tokens', 'total_tokens']) assert.equal(typeof response.usage[name], 'number');
  return {items, response};
}

/** An item as it is sent back: reasoning without its text, and everything without a status. */
function kept({id, status, ...item}) {
  return item.type === 'reasoning' ? {...item, content: undefined} : item;
}

test('a session of several turns', async () => {
  const history = [...opening];
  let calls = 0;
  let reasoned = 0;
  for (let i = 0; i < 8; ++i) {
    // Its choices are the model's, which seldom calls by itself: every other turn asks for a call.
    const {items, response} = await turn({input: history, seed: i, max_output_tokens: 200, logit_bias, ...(i % 2 === 0 && {tool_choice: 'required'})});
    assert.deepEqual(response.tools.map(({name}) => name), ['shell', 'update_plan'], 'it shows tools that it does not have');
    assert.equal(response.store, false);
    for (const item of items) {
      history.push(kept(item));
      if (item.type === 'reasoning') {
        ++reasoned;
        assert.equal(typeof item.encrypted_content, 'string');
        assert.deepEqual(item.summary, []);
      }
      if (item.type !== 'function_call' || item.status !== 'completed') continue;
      ++calls;
      const args = JSON.parse(item.arguments);
      assert.ok(item.name === 'shell' ? Array.isArray(args.command) : Array.isArray(args.plan));
      history.push({type: 'function_call_output', call_id: item.call_id, output: '{"output":"a.txt\\n","metadata":{"exit_code":0}}'});
    }
    for (const item of items) {
      if (item.type === 'function_call' && item.status !== 'completed') {
        history.push({type: 'function_call_output', call_id: item.call_id, output: 'aborted'});
      }
    }
    history.push({type: 'message', role: 'user', content: [{type: 'input_text', text: 'Go on.'}]});
  }
  assert.ok(calls > 0, 'nothing was called');
  assert.ok(reasoned > 0, 'nothing was reasoned');
});

test('reasoning of another server is passed over', async () => {
  const foreign = [
    {type: 'reasoning', summary: [], content: null, encrypted_content: null},
    {type: 'reasoning', summary: [], encrypted_content: 'gAAAAABo'},
    {type: 'message', role: 'assistant', content: [{type: 'output_text', text: 'Here.'}]},
    {type: 'function_call', name: 'shell', arguments: '{"command":["ls"]}', call_id: 'call_1'},
    {type: 'function_call_output', call_id: 'call_1', output: 'a.txt'},
  ];
  const with_it = await turn({input: [...opening, ...foreign], max_output_tokens: 2});
  const without = await turn({input: [...opening, ...foreign.slice(2)], max_output_tokens: 2});
  assert.equal(with_it.response.usage.input_tokens, without.response.usage.input_tokens);
});

test('an output schema holds beside tools', async () => {
  const schema = {type: 'object', properties: {ok: {type: 'boolean'}}, required: ['ok'], additionalProperties: false};
  const {items} = await turn({
    input: opening, max_output_tokens: 400, tools: [],
    text: {verbosity: 'medium', format: {type: 'json_schema', name: 'codex_output_schema', strict: true, schema}},
  });
  assert.equal(typeof JSON.parse(items.at(-1).content[0].text).ok, 'boolean');
});
