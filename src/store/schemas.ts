/** JSON Schemas of the JSON files in a run folder, quoted in docs/run-folder.md. Unknown keys are allowed: later versions add. */
import { CURSOR_SCHEMA, HEALTH_SCHEMA, REPORT_SCHEMA, RUN_SCHEMA } from './meta.ts';

const micros = { type: 'integer', description: 'µs since the run’s epoch' };
const count = { type: 'integer', minimum: 0 };

export const RUN_JSON = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'run.json',
  type: 'object',
  required: [
    'schema',
    'name',
    'epoch',
    'epoch_unix_ms',
    'seed',
    'contract',
    'workload',
    'target',
    'versions',
    'machine',
  ],
  properties: {
    schema: { const: RUN_SCHEMA },
    name: { type: 'string' },
    epoch: { type: 'string', description: 'wall time of the run’s monotonic epoch, ISO 8601, UTC: a label' },
    epoch_unix_ms: { type: 'number', description: 'the same in ms since 1970' },
    seed: { type: 'number' },
    contract: {
      type: 'object',
      description: 'as resolved; limits and deadline in ms (deadline null: none)',
      required: ['name', 'boundary', 'limits', 'deadline', 'valid', 'cases', 'attainment'],
      properties: {
        boundary: { enum: ['scheduled', 'dispatched'] },
        limits: { type: 'object', additionalProperties: { type: 'number' } },
        deadline: { type: ['number', 'null'] },
        attainment: { type: 'number', minimum: 0, maximum: 1 },
      },
    },
    workload: { type: 'object', description: 'what was offered, defaults filled in' },
    target: { type: 'object', description: 'what was measured; keys and passwords are never written' },
    versions: { type: 'object', additionalProperties: { type: 'string' } },
    machine: { type: 'object' },
    command: { type: 'array', items: { type: 'string' } },
  },
} as const;

export const CURSOR_JSON = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'cursor.json',
  type: 'object',
  required: ['schema', 'time_us', 'closed', 'pid', 'host', 'offered', 'dropped', 'open', 'segments', 'rows'],
  properties: {
    schema: { const: CURSOR_SCHEMA },
    time_us: { ...micros, description: 'when it was written, µs since the run’s epoch' },
    closed: { type: 'boolean', description: 'the run ended and nothing will be added' },
    pid: { ...count, description: 'the writing process' },
    host: { type: 'string', description: 'the machine it runs on' },
    offered: { ...count, description: 'operations offered so far' },
    dropped: { ...count, description: 'records not kept because too many were waiting to be written' },
    segments: { ...count, description: 'segments written so far' },
    rows: { ...count, description: 'rows in them' },
    window: {
      type: 'object',
      description: 'the cohort’s window of arrivals, [start, end)',
      required: ['start_us', 'end_us'],
      properties: {
        start_us: micros,
        end_us: micros,
        estimated: { type: 'boolean', description: 'not planned, but taken from the arrivals' },
        operations: {
          type: 'array',
          description: 'the operations of a counted cohort, [from, to); absent where the window decides',
          items: count,
          minItems: 2,
          maxItems: 2,
        },
        sessions: {
          type: 'array',
          description: 'in a load of sessions, the cohort’s, [from, to), with all their turns',
          items: count,
          minItems: 2,
          maxItems: 2,
        },
      },
    },
    open: {
      type: 'array',
      description: 'operations offered that have no final row in those segments',
      items: {
        type: 'object',
        required: ['operation', 'attempt', 'scheduled_us', 'class'],
        properties: {
          operation: count,
          attempt: { ...count, description: 'an attempt under way, which has no row yet' },
          scheduled_us: micros,
          dispatched_us: micros,
          class: { type: 'string' },
          session: { type: 'integer' },
          turn: { type: 'integer' },
          asked: {
            type: 'object',
            properties: {
              input: { type: 'number', description: 'tokens' },
              output: { type: 'number', description: 'tokens' },
              choices: { type: 'number' },
              stream: { type: 'boolean' },
            },
          },
        },
      },
    },
  },
} as const;

export const HEALTH_JSON = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'health.json',
  type: 'object',
  description: 'the client’s own health; its keys are those of `client` in the JSON report',
  required: ['schema'],
  properties: { schema: { const: HEALTH_SCHEMA } },
} as const;

export const REPORT_JSON = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'report.json',
  type: 'object',
  description: 'the report as printed with --json at the end of the run',
  required: ['schema'],
  properties: { schema: { const: REPORT_SCHEMA } },
} as const;
