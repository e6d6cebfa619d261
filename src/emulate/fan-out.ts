/** Several choices are several sequences: as vLLM does, each is a request of its own to the engine. */
import type { Cancel, Engine, Observer, RequestSpec } from '../core/index.ts';

/** Submits one request a choice and tells `to` of all as of one; the first that fails ends it. */
export function submitChoices(engine: Engine, spec: RequestSpec, to: Observer): Cancel {
  if (spec.choices <= 1) return engine.submit(spec, to);
  const cancels: Cancel[] = [];
  let open = spec.choices;
  let over = false;
  const cancel = (): void => {
    over = true;
    for (const one of cancels) one();
  };
  for (let choice = 0; choice < spec.choices; choice++) {
    const child: Observer = {
      dispatched() {},
      connected() {},
      sent() {},
      headers() {},
      event(t, event, coalesced) {
        if (over) return;
        const { finishes, outputs } = event;
        to.event(
          t,
          {
            ...event,
            outputs: outputs.map((part) => ({ ...part, choice })),
            ...(finishes && { finishes: finishes.map((finish) => ({ ...finish, choice })) }),
          },
          coalesced,
        );
      },
      ended(t, ending) {
        open--;
        if (over || (ending.kind === 'closed' && open > 0)) return;
        cancel();
        to.ended(t, ending);
      },
    };
    cancels.push(engine.submit({ ...spec, choices: 1 }, child));
  }
  return cancel;
}
