import { describe, expect, it } from 'vitest';
import { calibrate } from './prompt-tokens.ts';
import type { OpenTarget } from './target.ts';

const target = (post?: OpenTarget['post'], dialect = 'openai.chat') =>
  ({ model: 'm', dialect, ...(post && { post }) }) as unknown as OpenTarget;
const wordsIn = (body: unknown): number => {
  const { messages, prompt } = body as { messages?: { content: string }[]; prompt?: string };
  return (messages?.[0]?.content ?? prompt ?? '').split(' ').length;
};

describe('calibrate', () => {
  it('tells tokens a word from what the template adds, by the way any request goes', async () => {
    const paths: string[] = [];
    const found = await calibrate(
      target(async (path, body) => {
        paths.push(path);
        return { count: 1.25 * wordsIn(body) + 11 };
      }),
    );
    expect(found).toEqual({ tokensPerWord: 1.25, overhead: 11 });
    expect(paths).toEqual(['/tokenize', '/tokenize']);
  });

  it('sends a completion its prompt', async () => {
    const found = await calibrate(
      target(async (_path, body) => {
        expect(body).not.toHaveProperty('messages');
        return { count: wordsIn(body) };
      }, 'openai.completions'),
    );
    expect(found).toEqual({ tokensPerWord: 1, overhead: 0 });
  });

  it.each([
    ['no server', undefined],
    ['no answer', async () => undefined],
    ['another answer', async () => ({ tokens: [1, 2] })],
    ['a count that does not grow', async () => ({ count: 7 })],
  ])('of %s finds nothing', async (_what, post) => {
    expect(await calibrate(target(post))).toBeUndefined();
  });
});
