import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requestFacts } from './request-facts.ts';

const facts = (
  body: unknown,
  dialect: Parameters<typeof requestFacts>[0] = 'openai.chat',
  path = '/v1/chat/completions',
) => requestFacts(dialect, path, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));

describe('what a request asks', () => {
  it('is read from the top level alone', () => {
    expect(facts({ stream: true, n: 3, max_tokens: 17, messages: [] })).toEqual({
      stream: true,
      choices: 3,
      outputTokens: 17,
    });
    expect(
      facts({ messages: [{ content: '"stream":true,"n":9' }, { stream: true, n: 9 }], tools: [{ n: 4 }] }),
    ).toEqual({
      stream: false,
      choices: 1,
      outputTokens: 0,
    });
    expect(facts({ options: { num_predict: 5 } }, 'ollama.chat')).toEqual({
      stream: true,
      choices: 1,
      outputTokens: 5,
    });
    expect(facts({ stream: false }, 'ollama.generate').stream).toBe(false);
    const gemini = { generationConfig: { candidateCount: 2, maxOutputTokens: 9 } };
    expect(facts(gemini, 'gemini.stream', '/v1beta/models/x:streamGenerateContent')).toEqual({
      stream: true,
      choices: 2,
      outputTokens: 9,
    });
  });

  it('agrees with a parser on any body, and survives what is none', () => {
    fc.assert(
      fc.property(fc.json(), fc.boolean(), fc.integer({ min: 1, max: 99 }), (junk, stream, n) => {
        const body = `{"messages":${junk},"stream":${stream},"x":${junk},"n":${n}}`;
        expect(facts(body)).toMatchObject({ stream, choices: n });
      }),
    );
    fc.assert(fc.property(fc.string(), (text) => void facts(text)));
  });
});
