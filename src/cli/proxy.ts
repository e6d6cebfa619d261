/** `goodput proxy`: a transparent streaming reverse proxy that judges every request that passes. */
import { InputError, messageOf, oneLine } from '../base/errors.ts';
import { parseDuration } from '../base/units.ts';
import type { Contract } from '../core/contract.ts';
import type { RequestRecord } from '../core/record.ts';
import type { ProxyOptions, RunningProxy } from '../observe/proxy/index.ts';
import type { RunWriter } from '../store/index.ts';
import { type Cli, command, JSON_FLAG, text } from './command.ts';
import type { HostClock } from './host.ts';
import { machineFacts } from './machine-facts.ts';
import { SLO_FLAGS, type SloFlags } from './slo-flags.ts';
import { untilClosed } from './until-closed.ts';

interface Flags extends SloFlags {
  readonly upstream: string;
  readonly listen: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly admin: string;
  readonly adminOpen: boolean;
  readonly classContract?: readonly string[];
  readonly classHeader: string;
  readonly tenantHeader?: string;
  readonly operationHeader?: string;
  readonly groupByTrace: boolean;
  readonly retryWindow: string;
  readonly maxConcurrency?: string;
  readonly maxQueueAge?: string;
  readonly preserveHost: boolean;
  readonly connectTimeout: string;
  readonly cacert?: string;
  readonly insecure: boolean;
  readonly window: string;
  readonly out: string;
  readonly name: string;
  readonly keepAge: string;
  readonly keepSize: string;
  readonly records: boolean;
  readonly otlp: boolean;
  readonly otlpEndpoint?: string;
  readonly json: boolean;
}

/** How long open streams may go on after the first signal. */
const GRACE_MS = 30_000;

export const proxy = command({
  func: runProxy,
  parameters: {
    flags: {
      upstream: { kind: 'parsed', parse: String, brief: 'Servers to pass requests on to', placeholder: 'URL,…' },
      listen: { ...text('Address to listen on', 'HOST:PORT'), optional: false, default: '127.0.0.1:8080' },
      tlsCert: text('Speak TLS to callers with this certificate, PEM', 'FILE'),
      tlsKey: text('The key of that certificate, PEM', 'FILE'),
      ...SLO_FLAGS,
      classContract: {
        ...text('A contract for one traffic class, repeatable: batch=batch.yaml', 'CLASS=FILE'),
        variadic: true,
      },
      classHeader: {
        ...text('Header that names the traffic class', 'NAME'),
        optional: false,
        default: 'x-goodput-class',
      },
      tenantHeader: text('Header that names the tenant', 'NAME'),
      operationHeader: text('Header that names the operation, before Idempotency-Key', 'NAME'),
      groupByTrace: { kind: 'boolean', brief: 'Join attempts of one trace that follow one another', default: true },
      retryWindow: {
        ...text('Wait so long for another attempt of a named operation', 'time'),
        optional: false,
        default: '10s',
      },
      maxConcurrency: text(
        'Requests in flight at each upstream: a number, or the JSON of a plan or capacity run',
        'N|FILE',
      ),
      maxQueueAge: text('With a cap: refuse what would wait longer', 'time'),
      preserveHost: { kind: 'boolean', brief: "Send the caller's Host on", default: false },
      connectTimeout: { ...text('Time to open a connection to an upstream', 'time'), optional: false, default: '5s' },
      cacert: text('Authorities to trust for https upstreams, PEM', 'FILE'),
      insecure: { kind: 'boolean', brief: 'Accept any certificate of an upstream', default: false },
      admin: {
        ...text('Address of /metrics, /healthz and /live', 'HOST:PORT'),
        optional: false,
        default: '127.0.0.1:9464',
      },
      adminOpen: { kind: 'boolean', brief: 'Let other machines ask the admin port', default: false },
      window: { ...text('Length of a live window', 'time'), optional: false, default: '10s' },
      out: { ...text('Folder of run folders', 'DIR'), optional: false, default: 'runs' },
      name: { ...text('Name of the run folder', 'name'), optional: false, default: 'proxy' },
      keepAge: { ...text('Keep records so long', 'time'), optional: false, default: '168h' },
      keepSize: { ...text('Keep so much of records', 'size'), optional: false, default: '10GB' },
      records: { kind: 'boolean', brief: 'Write records to a run folder', default: true },
      otlp: {
        kind: 'boolean',
        brief: 'Export metrics and spans by OTLP, to OTEL_EXPORTER_OTLP_ENDPOINT',
        default: false,
      },
      otlpEndpoint: text('The same, to this collector', 'URL'),
      json: JSON_FLAG,
    },
  },
  docs: {
    brief: 'Pass production traffic on unchanged and judge every request',
    fullDescription:
      'A transparent streaming reverse proxy for every API dialect that bench knows. The clock starts when a request is\n' +
      'received here. Records go to a run folder (goodput report reads it, also while it is written); live cohorts stand at\n' +
      '/live of the admin port. Prompts, outputs and keys are neither stored nor logged.\n' +
      'The first line on stdout is `listening on URL`.',
  },
});

async function runProxy(this: Cli, flags: Flags): Promise<void> {
  const [{ startProxy }, { hostClock }] = await Promise.all([import('../observe/proxy/index.ts'), import('./host.ts')]);
  const { options, about } = await optionsOf(this, flags);
  const host = hostClock();
  const writer = flags.records ? await openFolder(flags, options, about, host) : undefined;
  let proxy: RunningProxy | undefined;
  const exported =
    flags.otlp || flags.otlpEndpoint !== undefined ? await exportOf(flags, host, () => proxy) : undefined;
  try {
    proxy = await startProxy(
      { ...options, ...(exported && { listeners: [exported.listener] }) },
      {
        now: host.clock.now,
        epochWall: host.epochWall,
        record: (record: RequestRecord) => writer?.add(record),
        recorded: () => ({ ...(writer?.counts ?? NO_RECORDS), problem: writer?.problem }),
      },
    );
  } catch (error) {
    await writer?.close().catch(() => {});
    throw error;
  }
  const running = proxy;
  writer?.track(() => running.cursor());
  say(this, flags, running, options, about, writer);
  await untilClosed(running, GRACE_MS);
  await exported?.close();
  const { total, records } = running.live({ windows: 0 });
  let lost: string | undefined;
  await writer?.close().catch((error) => {
    lost = messageOf(error);
  });
  if (flags.json) {
    this.stdout.line(JSON.stringify({ schema: 'goodput.proxy-end/1', total, records, problem: lost ?? null }));
  } else {
    this.stderr.line(`offered ${total.offered}, good ${total.outcomes.good}; records dropped ${records.dropped}`);
    if (writer) this.stderr.line(`Run folder: ${writer.folder}  (goodput report ${writer.folder})`);
  }
  if (lost !== undefined) throw new InputError(lost);
}

/** By OTLP; where to and with which keys is the environment's (OTEL_EXPORTER_OTLP_ENDPOINT, …_HEADERS). */
async function exportOf(flags: Flags, host: HostClock, proxy: () => RunningProxy | undefined) {
  const [{ otlpExport }, { VERSION }] = await Promise.all([
    import('../observe/export/index.ts'),
    import('./version.ts'),
  ]);
  return otlpExport({
    ...(flags.otlpEndpoint !== undefined && { endpoint: flags.otlpEndpoint }),
    service: 'goodput-proxy',
    version: VERSION,
    epochWall: host.epochWall,
    wall: Date.now,
    families: () => proxy()?.metricFamilies() ?? [],
  });
}

const NO_RECORDS = { written: 0, pending: 0, dropped: 0 };

interface About {
  readonly cap?: string;
  readonly isDefault: boolean;
}

async function optionsOf(cli: Cli, flags: Flags): Promise<{ options: ProxyOptions; about: About }> {
  const [{ tlsIdentity, upstreamTargets }, { contractOfFlags, readContract }, { readCap }] = await Promise.all([
    import('../observe/proxy/index.ts'),
    import('./slo-flags.ts'),
    import('./proxy-cap.ts'),
  ]);
  const { contract, isDefault } = await contractOfFlags(flags);
  const classContracts: Record<string, Contract> = {};
  for (const given of flags.classContract ?? []) {
    const m = /^([^=\s]{1,64})=(.+)$/.exec(given);
    if (!m) throw new InputError(`--class-contract: '${oneLine(given, 80)}' is not CLASS=FILE, like batch=batch.yaml`);
    classContracts[m[1] as string] = await readContract(m[2] as string);
  }
  const cap = flags.maxConcurrency === undefined ? undefined : readCap(flags.maxConcurrency);
  if (flags.maxQueueAge !== undefined && cap === undefined) {
    throw new InputError('--max-queue-age: nothing waits here without --max-concurrency; give both');
  }
  const listen = address(flags.listen, '--listen');
  const tls = tlsIdentity(flags.tlsCert, flags.tlsKey);
  const admin = address(flags.admin, '--admin');
  if (flags.adminOpen) cli.stderr.line('goodput: WARNING: the admin port answers every machine that can reach it');
  else if (!isLocal(admin.host)) {
    throw new InputError(
      `--admin ${oneLine(flags.admin, 60)}: other machines could reach it; use 127.0.0.1, or --admin-open to mean it`,
    );
  }
  return {
    about: { isDefault, ...(cap && { cap: cap.why }) },
    options: {
      upstreams: upstreamTargets(flags.upstream, {
        insecure: flags.insecure,
        ...(flags.cacert !== undefined && { cacert: flags.cacert }),
      }),
      ...listen,
      ...(tls && { tls }),
      admin: { ...admin, open: flags.adminOpen },
      contract,
      classContracts,
      classHeader: flags.classHeader,
      ...(flags.tenantHeader !== undefined && { tenantHeader: flags.tenantHeader }),
      ...(flags.operationHeader !== undefined && { operationHeader: flags.operationHeader }),
      groupByTrace: flags.groupByTrace,
      retryWindow: parseDuration(flags.retryWindow, '--retry-window'),
      ...(cap && { maxConcurrency: cap.requests }),
      ...(flags.maxQueueAge !== undefined && { maxQueueAge: parseDuration(flags.maxQueueAge, '--max-queue-age') }),
      preserveHost: flags.preserveHost,
      connectTimeout: parseDuration(flags.connectTimeout, '--connect-timeout'),
      window: parseDuration(flags.window, '--window'),
    },
  };
}

async function openFolder(flags: Flags, options: ProxyOptions, about: About, host: HostClock): Promise<RunWriter> {
  const [{ createRun }, { VERSION }] = await Promise.all([import('../store/index.ts'), import('./version.ts')]);
  return createRun(
    flags.out,
    flags.name,
    {
      epochWall: host.epochWall,
      seed: 0,
      contract: options.contract,
      workload: {
        text: 'production traffic, by arrival at the proxy',
        ...(about.isDefault && { default_contract: true }),
        ...(Object.keys(options.classContracts ?? {}).length > 0 && { contracts: options.classContracts }),
      },
      target: {
        kind: 'proxy',
        boundary: 'proxy: the clock starts when a request is received there',
        endpoint: options.upstreams.map((u) => u.url + u.prefix).join(', '),
      },
      versions: { goodput: VERSION, node: process.version },
      machine: machineFacts(host),
    },
    {
      clock: host.clock,
      keep: { age: parseDuration(flags.keepAge, '--keep-age'), bytes: parseSize(flags.keepSize, '--keep-size') },
    },
  );
}

function say(
  cli: Cli,
  flags: Flags,
  proxy: RunningProxy,
  options: ProxyOptions,
  about: About,
  writer: RunWriter | undefined,
): void {
  const upstreams = options.upstreams.map((u) => u.url + u.prefix);
  if (flags.json) {
    cli.stdout.line(
      JSON.stringify({
        listening: proxy.url,
        admin: proxy.adminUrl ?? null,
        upstreams,
        pid: process.pid,
        folder: writer?.folder ?? null,
      }),
    );
  } else {
    cli.stdout.line(`listening on ${proxy.url}`);
    cli.stdout.line(`upstream ${upstreams.join(', ')}`);
    cli.stdout.line(`admin ${proxy.adminUrl}/live /metrics /healthz`);
    if (writer) cli.stdout.line(`Run folder: ${writer.folder}`);
    if (about.cap !== undefined) cli.stdout.line(`at most ${options.maxConcurrency} in flight at each (${about.cap})`);
    if (about.isDefault) cli.stdout.line(`no contract was given: judging by the preset '${options.contract.name}'`);
    cli.stdout.line(
      `attempts are joined to operations by ${options.operationHeader ? `${options.operationHeader}, ` : ''}Idempotency-Key${options.groupByTrace ? ' or trace id' : ''}; without one each is an operation`,
    );
  }
  if (!isLocal(options.host)) cli.stderr.line(`goodput: ${proxy.url} is open to every machine that can reach it`);
}

const isLocal = (host: string): boolean => host === 'localhost' || host === '::1' || host.startsWith('127.');

function address(value: string, flag: string): { host: string; port: number } {
  const m = /^(?:(\[[0-9a-fA-F:.]+\]|[^:[\]\s]*):)?(\d{1,5})$/.exec(value.trim());
  const port = Number(m?.[2]);
  if (!m || port > 65_535) {
    throw new InputError(`${flag}: '${oneLine(value, 60)}' is not HOST:PORT, like 127.0.0.1:8080`);
  }
  return { host: (m[1] || '127.0.0.1').replace(/^\[|\]$/g, ''), port };
}

const SIZES: Readonly<Record<string, number>> = {
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
};

function parseSize(value: string, flag: string): number {
  const m = /^(\d+(?:\.\d+)?)\s*([kmgt]i?b)$/i.exec(value.trim());
  const unit = SIZES[m?.[2]?.toLowerCase() ?? ''];
  if (!m || unit === undefined)
    throw new InputError(`${flag}: '${oneLine(value, 40)}' is not a size, like 500MB or 10GB`);
  return Number(m[1]) * unit;
}
