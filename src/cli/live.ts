/** `goodput live`: what people feel just now, by window of arrival, and who serves it. */
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import { numberFlags } from './load-flags.ts';

interface Flags {
  readonly every: string;
  readonly for?: string;
  readonly windows: number;
  readonly once: boolean;
  readonly json: boolean;
}

export const live = command({
  func: runLive,
  parameters: {
    flags: {
      every: { kind: 'parsed', parse: String, brief: 'Time between looks', placeholder: 'time', default: '2s' },
      for: text('Stop after this long; default until Ctrl-C', 'time'),
      windows: {
        kind: 'parsed',
        parse: numberFlags.whole('windows'),
        brief: 'Windows of arrival shown',
        placeholder: 'n',
        default: '12',
      },
      once: {
        kind: 'boolean',
        brief: 'One look, and leave; exit code 1 when a final window misses its contract',
        default: false,
      },
      json: { kind: 'boolean', brief: 'Print one JSON object a look', default: JSON_FLAG.default },
    },
    positional: {
      kind: 'array',
      parameter: { brief: "A proxy's admin address, or an engine with /metrics", parse: String, placeholder: 'URL' },
      minimum: 1,
      maximum: 64,
    },
  },
  docs: {
    brief: 'Watch proxies and engines in the terminal',
    fullDescription:
      'Attainment by window of arrival, outcomes, TTFT and TPOT quantiles, the oldest wait, upstreams and replicas side by side:\n' +
      '  goodput live http://127.0.0.1:9464 http://engine-1:8000 http://engine-2:8000',
  },
});

async function runLive(this: Cli, flags: Flags, ...urls: string[]): Promise<void> {
  const [{ InputError }, { parseDuration }, { Watched, windowsTogether }, { liveText }, { paint }] = await Promise.all([
    import('../base/errors.ts'),
    import('../base/units.ts'),
    import('../observe/live/index.ts'),
    import('./live-text.ts'),
    import('../report/text.ts'),
  ]);
  const every = parseDuration(flags.every, '--every');
  if (every < 100) throw new InputError(`--every ${flags.every}: looking costs the server too; give 100ms or more`);
  const until = flags.for === undefined ? Number.POSITIVE_INFINITY : Date.now() + parseDuration(flags.for, '--for');
  const watched = urls.map((url) => new Watched(url));
  const redraw = this.stdout.isTTY && !flags.json && !flags.once;
  const style = paint(this.stdout.color);

  let stopped = false;
  let wake: (() => void) | undefined;
  const stop = (): void => {
    stopped = true;
    wake?.();
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    for (;;) {
      const began = Date.now();
      const looks = await Promise.all(
        watched.map((w) => w.look({ timeout: Math.max(1000, every), windows: flags.windows, wall: () => Date.now() })),
      );
      if (stopped) break;
      const snapshots = looks.flatMap((l) => (l.kind === 'proxy' ? [l.snapshot] : []));
      if (flags.json) {
        const windows = windowsTogether(snapshots, flags.windows);
        this.stdout.line(JSON.stringify({ schema: 'goodput.live-view/1', time_s: began / 1000, windows, looks }));
      } else {
        const lines = liveText(looks, { windows: flags.windows, paint: style, now: began });
        // Home, each line cleared to its end, then the rest of the screen: no flicker.
        this.stdout.write(
          redraw ? `\u001b[H${lines.map((l) => `${l}\u001b[K\n`).join('')}\u001b[J` : `${lines.join('\n')}\n`,
        );
      }
      if (flags.once) {
        if (looks.every((l) => l.kind === 'down')) this.exit(3);
        else if (missed(snapshots)) this.exit(1);
        break;
      }
      const next = began + every;
      if (next > until) break;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(0, next - Date.now()));
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      if (stopped) break;
    }
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}

/** Whether the last final window of any class is surely below its target. */
function missed(snapshots: readonly import('../observe/cohorts/snapshot.ts').LiveSnapshot[]): boolean {
  return snapshots.some((s) => {
    const final = s.windows.findLast((w) => w.state === 'final' && w.all.offered > 0);
    return final?.classes.some((c) => {
      const target = s.contracts[c.class]?.attainment;
      return target !== undefined && c.attainment !== null && c.attainment.high < target;
    });
  });
}
