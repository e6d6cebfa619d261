/** `goodput spans`: receive engines' request spans by OTLP/HTTP, and join them to a run's client records by request id. */
import { InputError } from '../base/errors.ts';
import { formatDuration, parseDuration } from '../base/units.ts';
import type { ClientRequest, Joined, PartMeans } from '../observe/spans/index.ts';
import { type Cli, EXIT } from './cli.ts';
import { command, JSON_FLAG, text } from './command.ts';

interface Flags {
  readonly json: boolean;
  readonly listen?: string;
  readonly out?: string;
  readonly duration?: string;
}

export const spans = command({
  func: runSpans,
  parameters: {
    flags: {
      json: JSON_FLAG,
      listen: text(
        'Receive spans by OTLP/HTTP at this port of loopback, or HOST:PORT; 4318 is the usual port',
        '[HOST:]PORT',
      ),
      out: text('The file received spans are added to; spans.jsonl unless given', 'FILE'),
      duration: text('Stop receiving after this long; until interrupted unless given', 'time'),
    },
    positional: {
      kind: 'array',
      parameter: {
        brief: 'A run folder, then files of received spans: the two are joined',
        parse: String,
        placeholder: 'RUN FILE',
      },
    },
  },
  docs: {
    brief: "Receive engines' request spans (OTLP/HTTP) and join them to a run's requests",
    fullDescription:
      'goodput spans --listen 4318            receives; let the engine export OTLP over http/protobuf to it\n' +
      "goodput spans runs/… spans.jsonl       where the client's time went: queue, prefill, frontend, network + delivery\n" +
      'Exit codes: 0 fine, 2 bad usage or input, 3 no span belongs to a request of the run.',
  },
});

export async function runSpans(this: Cli, flags: Flags, ...args: string[]): Promise<void> {
  if (flags.listen !== undefined) {
    if (args.length > 0)
      throw new InputError(
        'spans: --listen receives and takes no arguments; join the file afterwards with goodput spans RUN FILE',
      );
    await receive(this, flags, flags.listen);
    return;
  }
  const [run, ...files] = args;
  if (run === undefined || files.length === 0) {
    throw new InputError(
      'spans: give --listen PORT to receive, or a run folder and the files of received spans to join',
    );
  }
  await join(this, flags, run, files);
}

async function receive(cli: Cli, flags: Flags, listen: string): Promise<void> {
  const { SpanFile, spanReceiver } = await import('../observe/spans/index.ts');
  const m = /^(?:(\[[0-9a-f:]+\]|[^:[\]]+):)?(\d{1,5})$/i.exec(listen);
  const port = Number(m?.[2]);
  if (m === null || port > 65_535)
    throw new InputError(`--listen: '${listen}' is no port; write 4318 or 127.0.0.1:4318`);
  const host = m[1]?.replace(/^\[|\]$/g, '') ?? '127.0.0.1';
  const duration = flags.duration === undefined ? undefined : parseDuration(flags.duration, '--duration');
  const file = new SpanFile(flags.out ?? 'spans.jsonl');
  const { server, counts } = spanReceiver((kept) => file.add(kept));
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new InputError(`--listen: cannot listen on ${listen} (${error.message}); choose another port`, {
          cause: error,
        }),
      ),
    );
    server.listen(port, host, resolve);
  });
  const at = server.address();
  const where =
    typeof at === 'object' && at !== null
      ? `http://${host.includes(':') ? `[${host}]` : host}:${at.port}/v1/traces`
      : listen;
  cli.stderr.line(`Receiving spans at ${where} into ${file.path}; Ctrl-C stops`);
  await new Promise<void>((resolve) => {
    const timer = duration === undefined ? undefined : setTimeout(() => done(), duration);
    const done = (): void => {
      clearTimeout(timer);
      process.off('SIGINT', done);
      process.off('SIGTERM', done);
      resolve();
    };
    process.on('SIGINT', done);
    process.on('SIGTERM', done);
  });
  server.closeIdleConnections();
  const forced = setTimeout(() => server.closeAllConnections(), 1000);
  await new Promise((resolve) => server.close(resolve));
  clearTimeout(forced);
  file.close();
  const summary = { schema: 'goodput.spans-received/1', file: file.path, ...counts, dropped: file.dropped };
  if (flags.json) cli.stdout.line(JSON.stringify(summary, null, 2));
  else
    cli.stdout.line(
      `${counts.kept} request spans kept, ${counts.other} others passed over, ${counts.refused} bodies refused: ${file.path}`,
    );
  if (file.dropped > 0) cli.exit(EXIT.invalid);
}

async function join(cli: Cli, flags: Flags, folder: string, files: readonly string[]): Promise<void> {
  const [{ joinSpans, partMeans, readSpans }, { openRun }] = await Promise.all([
    import('../observe/spans/index.ts'),
    import('../store/index.ts'),
  ]);
  const run = await openRun(folder, { wallNow: Date.now() });
  const prefix = run.meta.target.request_id_prefix;
  const clients: ClientRequest[] = [];
  await run.records((r) => {
    const from = r.stamps.dispatched;
    const own = typeof prefix === 'string' ? `${prefix}${r.operation}-${r.attempt}` : undefined;
    const ids = [own, r.passage?.requestId].filter((id) => id !== undefined);
    const seconds = (to: number | undefined): number | undefined =>
      to === undefined || from === undefined ? undefined : (to - from) / 1000;
    const [ttft, e2e] = [seconds(r.stamps.firstOutput), seconds(r.stamps.ended)];
    clients.push({
      operation: r.operation,
      attempt: r.attempt,
      ids,
      ...(r.passage?.traceId !== undefined && { trace: r.passage.traceId }),
      ...(ttft !== undefined && { ttft }),
      ...(e2e !== undefined && { e2e }),
    });
  });
  run.close();
  const read = await Promise.all(files.map(readSpans));
  const joined = joinSpans(
    clients,
    read.flatMap((r) => r.spans),
  );
  const unread = read.reduce((n, r) => n + r.unread, 0);
  const [all, slowest] = [partMeans(joined.requests), partMeans(joined.requests, 0.05)];
  if (flags.json) {
    cli.stdout.line(
      JSON.stringify(
        {
          schema: 'goodput.spans/1',
          joined: joined.requests.length,
          without_span: joined.withoutSpan,
          without_request: joined.withoutRequest,
          ambiguous: joined.ambiguous,
          impossible: joined.impossible,
          unread_lines: unread,
          ...(all && { mean_s: all }),
          ...(slowest && { slowest_5_percent_mean_s: slowest }),
          requests: joined.requests,
        },
        null,
        2,
      ),
    );
  } else cli.stdout.write(joinText(joined, unread, all, slowest));
  if (joined.requests.length === 0) cli.exit(EXIT.invalid);
}

function joinText(joined: Joined, unread: number, all: PartMeans | undefined, slowest: PartMeans | undefined): string {
  const lines = [
    `${joined.requests.length} requests joined to their span; ${joined.withoutSpan} requests without one, ${joined.withoutRequest} spans of no request of this run`,
  ];
  if (joined.ambiguous > 0) lines.push(`${joined.ambiguous} spans fit several requests, or several fit one: left out`);
  if (joined.impossible > 0)
    lines.push(`${joined.impossible} requests waited less than their engine claims: an id or a clock is wrong there`);
  if (unread > 0) lines.push(`${unread} lines are no spans: passed over`);
  if (all !== undefined && slowest !== undefined) {
    const rows: [string, string, string, string][] = [
      ['', 'all', 'slowest 5 %', 'on the clock of'],
      ['requests', String(all.requests), String(slowest.requests), ''],
    ];
    const parts: [keyof PartMeans, string, string][] = [
      ['queue', 'queue', 'the engine'],
      ['prefill', 'prefill', 'the engine'],
      ['frontend', 'frontend', 'the engine: its TTFT less queue and prefill'],
      ['network_delivery', 'network + delivery', 'the client: its TTFT less the engine’s'],
      ['ttft', 'TTFT (mean)', 'the client, from dispatch'],
    ];
    const ms = (x: number): string => (x < 0 ? `−${formatDuration(-x * 1000)}` : formatDuration(x * 1000));
    for (const [key, name, clock] of parts) rows.push([name, ms(all[key]), ms(slowest[key]), clock]);
    const width = [0, 1, 2].map((i) => Math.max(...rows.map((r) => r[i]!.length)));
    lines.push(
      '',
      ...rows.map(([a, b, c, d]) =>
        `  ${a.padEnd(width[0]!)}  ${b.padStart(width[1]!)}  ${c.padStart(width[2]!)}  ${d}`.trimEnd(),
      ),
    );
  } else lines.push('no joined request has TTFT, queue and prefill of its engine: the parts cannot be told');
  return `${lines.join('\n')}\n`;
}
