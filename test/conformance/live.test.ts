import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { wallClock } from '../../src/core/clock.ts';
import type { RequestSpec } from '../../src/core/request.ts';
import { liveEngine } from '../../src/live/index.ts';
import { answerChat, CERTIFICATE_FILE, serve } from './chat-server.ts';
import { type EngineUnderTest, engineConformance } from './engine.ts';

async function make(tls: boolean): Promise<EngineUnderTest> {
  const server = await serve((req, res) => void answerChat(req, res), tls);
  const clock = wallClock({ now: () => performance.now(), setTimeout, clearTimeout, setImmediate, clearImmediate });
  const engine = liveEngine({ url: server.url, model: 'm', ...(tls && { cacert: CERTIFICATE_FILE }) }, clock);
  const spec = (operation: number, tokens: number): RequestSpec => ({
    operation,
    attempt: 0,
    class: 'default',
    inputTokens: 4,
    outputTokens: tokens,
    choices: 1,
    stream: true,
    ignoreEos: false,
    prompt: 'say something',
  });
  return {
    engine,
    clock,
    spec,
    async pass(done) {
      while (!done()) await nextTurn();
    },
    dispose: () => server.close(),
  };
}

engineConformance('live over HTTP', () => make(false));
engineConformance('live over TLS', () => make(true));
