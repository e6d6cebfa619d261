import { describe, expect, it } from 'vitest';
import type { Message } from '../../core/request.ts';
import { openMix } from '../mix.ts';
import { REQUEST_DEFAULTS } from '../synthetic.ts';
import { DATASET_FORMATS, type DatasetFormat, datasetFormat } from './index.ts';

const options = { sample: 50, seed: 1, outputOfFile: true };
const pieces = (whole: string, size = 7): string[] => whole.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? [];
const read = (format: DatasetFormat, text: string, size = 7) =>
  DATASET_FORMATS[format](pieces(text, size), 'x', options);
const lines = (...values: unknown[]): string => values.map((v) => JSON.stringify(v)).join('\n');
const user = (content: string) => ({ role: 'user', content });

describe('what a line may be', () => {
  it.each([
    ['prompt', { prompt: 'hello there', output_tokens: 7 }, 'hello there', 7],
    ['text', { text: 'hello' }, 'hello', undefined],
    ['input', { input: 'hello', max_output_tokens: 5 }, 'hello', 5],
    ['TGI', { inputs: 'hello', parameters: { max_new_tokens: 9 } }, 'hello', 9],
    ['a legacy completion', { prompt: 'hello', completion: 'x'.repeat(40) }, 'hello', 10],
    ['Alpaca with input', { instruction: 'Translate', input: 'chat', output: 'cat' }, 'Translate\n\nchat', 1],
    ['Alpaca without', { instruction: 'Translate', input: '', output: '' }, 'Translate', undefined],
    [
      'a batch of completions',
      { custom_id: 'a', url: '/v1/completions', body: { prompt: 'hi', max_tokens: 3 } },
      'hi',
      3,
    ],
    ['several texts', { prompt: ['one', 'two'] }, 'one\ntwo', undefined],
    ['not told', { prompt: 'hi', max_tokens: -1, output_tokens: null }, 'hi', undefined],
  ] as const)('%s', async (_name, line, prompt, output) => {
    const { entries } = await read('jsonl', lines(line));
    expect(entries).toHaveLength(1);
    expect(entries[0]!.prompt).toBe(prompt);
    expect(entries[0]!.outputTokens).toBe(output);
  });

  it.each([
    ['system and question', { system_prompt: 'Be terse.', question: 'why?' }, ['system', 'user']],
    ['messages', { messages: [user('why?')] }, ['user']],
    ['messages that were answered', { messages: [user('why?'), { role: 'assistant', content: 'so' }] }, ['user']],
    ['a batch of chats', { custom_id: 'a', method: 'POST', body: { messages: [user('hi')] } }, ['user']],
    ['responses', { input: [{ role: 'developer', content: 'x' }, user('hi')] }, ['system', 'user']],
    ['a prompt of messages', { prompt: [user('hi')], chosen: [user('no')] }, ['user']],
    [
      'the old functions',
      {
        messages: [
          user('t?'),
          { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
          { role: 'function', name: 'f', content: '9' },
        ],
      },
      ['user', 'assistant', 'tool'],
    ],
  ] as const)('%s', async (_name, line, roles) => {
    const { entries } = await read('jsonl', lines(line));
    expect((entries[0]!.prompt as Message[]).map((m) => m.role)).toEqual(roles);
  });

  it('tools in any form, and as JSON in a text', async () => {
    const schema = { type: 'object', properties: {} };
    const openai = [{ type: 'function', function: { name: 'f', description: 'd', parameters: schema } }];
    const { entries } = await read(
      'jsonl',
      lines(
        { prompt: 'a', tools: openai },
        { prompt: 'b', tools: JSON.stringify(openai) },
        { prompt: 'c', functions: [openai[0]!.function] },
        { prompt: 'd', tools: [{ name: 'f', description: 'd', input_schema: schema }] },
      ),
    );
    for (const entry of entries) expect(entry.tools).toEqual([{ name: 'f', description: 'd', parameters: schema }]);
  });

  it('images by address or by value, in the forms of three APIs; what is on a disk is left out and said', async () => {
    const png = 'data:image/png;base64,AAAA';
    const parts = [
      { type: 'image_url', image_url: { url: png } },
      { type: 'input_image', image_url: png },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    ];
    const { entries, notes } = await read(
      'jsonl',
      lines(
        ...parts.map((part) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'what?' }, part] }] })),
        { prompt: 'what?', image: 'cats/1.png' },
        {
          messages: [
            {
              role: 'user',
              content: [
                { type: 'text', text: 'hear' },
                { type: 'input_audio', input_audio: {} },
              ],
            },
          ],
        },
      ),
    );
    for (const entry of entries.slice(0, 3)) {
      expect(entry.prompt).toEqual([
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what?' },
            { type: 'image', url: png },
          ],
        },
      ]);
    }
    expect(entries[3]!.prompt).toBe('what?');
    expect(notes).toEqual(['1 images on a disk: left out', '1 parts of type input_audio: left out']);
  });

  it.each([
    [{ promt: 'x' }, /x:2: no 'prompt' text and no 'messages' list \(did you mean 'prompt'/],
    [{ messages: [{ role: 'wizard', content: 'x' }] }, /x:2: messages\[0\]: role is 'wizard'/],
    [{ messages: [{ content: 'x' }] }, /x:2: messages\[0\]: a message without a role/],
    [{ messages: [7] }, /x:2: messages\[0\]: not an object/],
    [{ prompt: 'x', output_tokens: 'many' }, /x:2: output_tokens is not a whole number/],
    [{ timestamp: 0, input_length: 5, output_length: 5 }, /x:2: lengths without a text.*--replay/],
    [{ prompt: 'x', tools: [{}] }, /x:2: a tool without function.name/],
    [5, /x:2: neither an object nor a text/],
  ])('names the line of %j', async (line, message) => {
    const error = await read('jsonl', lines({ prompt: 'fine' }, line)).catch((e: Error) => e);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain('\n');
  });
});

describe('one JSON document', () => {
  const talk = (...texts: string[]) => texts.map((value, i) => ({ from: i % 2 === 0 ? 'human' : 'gpt', value }));
  it.each([
    [
      'an array',
      JSON.stringify([
        { id: 'a', conversations: talk('q1', 'a1') },
        { id: 'b', conversations: talk('q2') },
      ]),
    ],
    [
      'an object with a list',
      JSON.stringify({ version: 1, data: [{ conversations: talk('q1', 'a1') }, { conversations: talk('q2') }] }),
    ],
    [
      'an object by id',
      JSON.stringify({ a: { conversations: talk('q1', 'a1') }, meta: { by: 'us' }, b: { conversations: talk('q2') } }),
    ],
    [
      'a list called conversations',
      JSON.stringify({ conversations: [{ conversations: talk('q1', 'a1') }, { conversations: talk('q2') }] }),
    ],
    ['JSON lines', lines({ conversations: talk('q1', 'a1') }, { conversations: talk('q2') })],
    ['bare texts', JSON.stringify(['q1', 'q2'])],
    ['texts in an object', JSON.stringify({ prompts: ['q1', 'q2'] })],
    ['many lines', JSON.stringify([{ conversations: talk('q1', 'a1') }, { conversations: talk('q2') }], null, 2)],
  ])('%s', async (_name, text) => {
    for (const size of [1, 9, 1000]) {
      const { entries } = await read('json', text, size);
      expect(entries.map((e) => e.prompt)).toEqual(['q1', 'q2']);
    }
  });

  it('a lone conversation', async () => {
    expect((await read('json', JSON.stringify({ id: 1, conversations: talk('q1', 'a1', 'q2') }))).entries).toHaveLength(
      1,
    );
    expect(
      (await read('json', JSON.stringify({ messages: [user('q1')], tools: [{ name: 'f' }] }))).entries[0],
    ).toMatchObject({
      tools: [{ name: 'f' }],
    });
  });

  it('every speaker, markdown, other scripts, empty turns', async () => {
    const { entries, notes } = await read(
      'sharegpt',
      JSON.stringify([
        {
          conversations: [
            { from: 'system', value: 'Be kind.' },
            { from: 'user', value: '# 你好\n```js\n"\\u0000"\n```' },
            { from: 'chatgpt', value: '🙂' },
          ],
        },
        {
          conversations: [
            { from: 'bing', value: 'left over' },
            { from: 'human', value: ' ' },
            { from: 'gpt', value: 'x' },
            { from: 'human', value: 'q' },
            { from: 'bing', value: 'a'.repeat(80) },
          ],
        },
        { conversations: [{ from: 'human', value: '' }] },
        {
          conversations: [
            { from: 'wizard', value: 'hm' },
            { from: 'human', value: 'q2' },
          ],
        },
      ]),
    );
    expect(entries.map((e) => e.prompt)).toEqual([
      [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: '# 你好\n```js\n"\\u0000"\n```' },
      ],
      'q',
      'q2',
    ]);
    expect(entries[1]!.outputTokens).toBe(20);
    expect(notes).toEqual(['1 entries ask nothing: left out', "1 messages from 'wizard': left out"]);
  });

  it('holds one entry at a time: a large file takes no more than its sample', async () => {
    const entry = `${JSON.stringify({ conversations: talk('q'.repeat(2000), 'a'.repeat(2000)) })},\n`;
    function* file() {
      yield '[';
      for (let i = 0; i < 3000; i++) yield entry;
      yield '"end"]';
    }
    const { entries, available } = await DATASET_FORMATS.json(file(), 'x', { ...options, sample: 5 });
    expect(entries).toHaveLength(5);
    expect(available).toBe(3001);
  });

  it('an entry too large is passed over, not held', async () => {
    function* file() {
      yield '[{"prompt":"';
      for (let i = 0; i < 40; i++) yield 'x'.repeat(1 << 18);
      yield '"},{"prompt":"q"}]';
    }
    const found = await DATASET_FORMATS.json(file(), 'x', options);
    expect(found.entries.map((e) => e.prompt)).toEqual(['q']);
    expect(found.notes.join()).toMatch(/1 entries are longer/);
  });
});

it('tells the format by the name', () => {
  expect(['a.json', 'a.jsonl', 'a.txt', 'a'].map((name) => datasetFormat(name))).toEqual([
    'json',
    'jsonl',
    'text',
    'jsonl',
  ]);
  expect(() => datasetFormat('a', 'jsn')).toThrow(/format: 'jsn' is not one of .*did you mean 'json'/);
});

describe('conversations as sessions', () => {
  it('arrive open-loop; each turn has all before it, with the answers of the file', async () => {
    const conversation = {
      conversations: [
        { from: 'system', value: 'S' },
        { from: 'human', value: 'q1' },
        { from: 'gpt', value: 'a1'.repeat(20) },
        { from: 'human', value: 'q2' },
        { from: 'gpt', value: 'a2' },
        { from: 'human', value: 'q3' },
      ],
    };
    const dataset = await read('json', JSON.stringify([conversation]));
    const plan = (turns?: number) => ({
      classes: [
        {
          ...REQUEST_DEFAULTS,
          name: 'c',
          share: 1,
          dataset,
          session: {
            think: { kind: 'fixed', time: 100 } as const,
            ...(turns && { turns: { kind: 'fixed', tokens: turns } as const }),
          },
        },
      ],
      prompt: 'text' as const,
    });
    const load = openMix(plan(), { process: 'constant', rate: 1 }, 1);
    const first = load.next()!;
    const second = load.next()!;
    expect([first.spec.session, first.spec.turn, second.spec.session]).toEqual([0, 0, 1]);
    expect(second.spec.operation).toBe(3);
    expect(first.spec.outputTokens).toBe(10);
    const next = load.ended(first.spec.operation, 500, true);
    expect(next).toHaveLength(1);
    expect(next[0]!.at).toBe(600);
    expect(next[0]!.spec.prompt).toEqual([
      { role: 'system', content: 'S' },
      user('q1'),
      { role: 'assistant', content: 'a1'.repeat(20) },
      user('q2'),
    ]);
    const last = load.ended(next[0]!.spec.operation, 900, true);
    expect((last[0]!.spec.prompt as Message[]).map((m) => m.role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ]);
    expect(load.ended(last[0]!.spec.operation, 1000, true)).toEqual([]);
    const short = openMix(plan(1), { process: 'constant', rate: 1 }, 1);
    expect(short.ended(short.next()!.spec.operation, 1, true)).toEqual([]);
  });
});
