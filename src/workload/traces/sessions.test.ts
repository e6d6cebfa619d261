import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Message, RequestSpec } from '../../core/request.ts';
import { readTrace, replay, scaleTrace, type Trace, traceArrivals } from './index.ts';

const BURST = `Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
5,12,3.5,ChatGPT,20,10,30,Conversation log
6,,1.0,GPT-4,7,3,10,API log
18,12,2,ChatGPT,50,5,55,Conversation log
19,"a,b",1,ChatGPT,0,0,0,Conversation log
60,12,2,ChatGPT,30,5,35,Conversation log
`;
const read = (text: string, more = {}): Promise<Trace> => readTrace([text], 'x', { sessions: true, ...more });
const load = (trace: Trace) => replay({ trace, choices: 1, stream: true, ignoreEos: true, prompt: 'text' }, 1);

describe('a trace as sessions', () => {
  it('BurstGPT: a turn follows its predecessor by the pause there was', async () => {
    const trace = await read(BURST);
    expect(traceArrivals(trace)).toEqual({ length: 3, at: Float64Array.of(0, 1e6, 14e6) });
    expect(trace.notes.join()).toMatch(/1 requests with no prompt tokens/);
    const w = load(trace);
    const offers = [w.next()!, w.next()!, w.next()!];
    expect(w.next()).toBeUndefined();
    expect(offers.map((o) => [o.at, o.spec.operation, o.spec.session, o.spec.turn])).toEqual([
      [0, 0, 0, 0],
      [1000, 1, 1, 0],
      [14_000, 3, 2, 0],
    ]);
    // 13 s later there, of which the answer took 3.5.
    const [second] = w.ended(0, 2000, true);
    expect([second!.at, second!.spec.operation, second!.spec.session, second!.spec.turn]).toEqual([11_500, 2, 0, 1]);
    expect(w.ended(1, 2000, true)).toEqual([]);
    // 50 tokens: the 20 and the 10 before, and 20 of its own.
    const said = second!.spec.prompt as Message[];
    expect(said.map((m) => [m.role, (m.content as string).split(' ').length])).toEqual([
      ['user', 20],
      ['assistant', 10],
      ['user', 20],
    ]);
    expect(said[0]!.content).toBe(offers[0]!.spec.prompt);
    expect(second!.spec.prefixBlocks![0]).toBe(offers[0]!.spec.prefixBlocks![0]);
    // 30 tokens after 55: cut there, so nothing is shared.
    const [third] = w.ended(2, 50_000, true);
    expect(third!.at).toBe(90_000);
    expect((third!.spec.prompt as string).split(' ')).toHaveLength(30);
  });

  it('what follows a failure is offered and not sent', async () => {
    const w = load(await read(BURST));
    w.next();
    expect(w.ended(0, 10, false).map((o) => [o.spec.operation, o.unsent])).toEqual([
      [2, 'predecessor-failed'],
      [4, 'predecessor-failed'],
    ]);
  });

  it('scales pauses with time, and refuses to thin sessions', async () => {
    const trace = await read(BURST);
    const [second] = (() => {
      const w = load(scaleTrace(trace, { time: 0.5 }, 1));
      w.next();
      return w.ended(0, 0, true);
    })();
    expect(second!.at).toBe(4750);
    expect(() => scaleTrace(trace, { rate: 0.5 }, 1)).toThrow(/--rate-scale/);
  });

  it('says where there are none', async () => {
    await expect(read('Timestamp,Request tokens,Response tokens\n1,2,3\n')).rejects.toThrow(/names no sessions/);
    await expect(
      read('TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,5,5\n'),
    ).rejects.toThrow(/names no sessions \(azure\)/);
  });

  it('every turn has exactly its length, and every request comes once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            s: fc.integer({ min: 0, max: 3 }),
            i: fc.integer({ min: 1, max: 60 }),
            o: fc.integer({ min: 1, max: 30 }),
          }),
          {
            minLength: 1,
            maxLength: 20,
          },
        ),
        async (rows) => {
          const text = `Timestamp,Session ID,Request tokens,Response tokens\n${rows.map((r, k) => `${k},${r.s},${r.i},${r.o}`).join('\n')}`;
          const trace = await read(text);
          const w = replay({ trace, choices: 1, stream: true, ignoreEos: true, prompt: 'text' }, 1);
          const seen: number[] = [];
          const open: number[] = [];
          const take = (spec: RequestSpec): void => {
            open.push(spec.operation);
            check(spec);
          };
          for (let o = w.next(); o; o = w.next()) take(o.spec);
          while (open.length > 0) {
            for (const o of w.ended(open.pop()!, 1e6, true)) take(o.spec);
          }
          function check(spec: RequestSpec): void {
            seen.push(spec.operation);
            const said =
              typeof spec.prompt === 'string'
                ? [spec.prompt]
                : (spec.prompt as Message[]).map((m) => m.content as string);
            expect(said.join(' ').split(' ')).toHaveLength(rows[spec.operation]!.i);
          }
          expect(seen.sort((a, b) => a - b)).toEqual(rows.map((_, k) => k));
        },
      ),
      { numRuns: 60 },
    );
  });
});

it('Bailian: seconds, blocks of 16 tokens, chats by their parents', async () => {
  const line = (v: object): string => JSON.stringify(v);
  const text = [
    line({
      chat_id: 1,
      parent_chat_id: -1,
      timestamp: 0.5,
      input_length: 40,
      output_length: 9,
      type: 'text',
      turn: 1,
      hash_ids: [7, 8, 9],
    }),
    line({
      chat_id: 2,
      parent_chat_id: -1,
      timestamp: 1,
      input_length: 20,
      output_length: 9,
      type: 'search',
      turn: 1,
      hash_ids: [7, 10],
    }),
    line({
      chat_id: 3,
      parent_chat_id: 1,
      timestamp: 61,
      input_length: 64,
      output_length: 9,
      type: 'text',
      turn: 2,
      hash_ids: [7, 8, 11, 12],
    }),
  ].join('\n');
  const trace = await readTrace([text], 'x');
  expect(trace.format).toBe('bailian');
  expect([...trace.at]).toEqual([0, 0.5e6, 60.5e6]);
  expect(trace.classes).toEqual(['text', 'search']);
  const w = load(await read(text));
  const first = w.next()!;
  w.next();
  expect(w.next()).toBeUndefined();
  const [next] = w.ended(0, 100, true);
  expect([next!.at, next!.spec.turn]).toEqual([60_600, 1]);
  expect(next!.spec.prefixBlocks!.slice(0, 2)).toEqual(first.spec.prefixBlocks!.slice(0, 2));
});
