/** Spans out of OTLP/HTTP bodies, protobuf or JSON: names, ids, times and plain attributes, nothing else. */
import { InputError, messageOf } from '../../base/errors.ts';
import { asDouble, fieldsOf, ProtobufError } from './protobuf.ts';

export type Attribute = string | number | boolean;

export interface Span {
  readonly name: string;
  /** Hex. */
  readonly trace: string;
  readonly span: string;
  readonly parent?: string;
  /** Nanoseconds since 1970 UTC. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: ReadonlyMap<string, Attribute>;
  /** The resource's service.name. */
  readonly service?: string;
  readonly failed: boolean;
}

const MOST_TEXT = 512;
const text = new TextDecoder();
const cut = (s: string): string => (s.length > MOST_TEXT ? s.slice(0, MOST_TEXT) : s);
const textOf = (bytes: Uint8Array | undefined): string =>
  bytes === undefined ? '' : cut(text.decode(bytes.subarray(0, 4 * MOST_TEXT)));
const hexOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes?.subarray(0, 32) ?? []).toString('hex');

/** @throws InputError where it is no ExportTraceServiceRequest. */
export function spansOfProtobuf(body: Uint8Array): Span[] {
  const spans: Span[] = [];
  try {
    for (const request of fieldsOf(body)) {
      if (request.number !== 1 || request.bytes === undefined) continue;
      let service: string | undefined;
      const scopes: Uint8Array[] = [];
      for (const field of fieldsOf(request.bytes)) {
        if (field.bytes === undefined) continue;
        if (field.number === 1) service = serviceOf(attributesIn(field.bytes, 1));
        else if (field.number === 2) scopes.push(field.bytes);
      }
      for (const scope of scopes) {
        for (const { number, bytes } of fieldsOf(scope)) {
          if (number === 2 && bytes !== undefined) spans.push(spanOf(bytes, service));
        }
      }
    }
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw new InputError(`the body is no OTLP trace request: ${messageOf(error)}`, { cause: error });
  }
  return spans;
}

function spanOf(message: Uint8Array, service: string | undefined): Span {
  const of = new Map<number, { bytes?: Uint8Array; value?: bigint }>();
  let failed = false;
  for (const field of fieldsOf(message)) {
    of.set(field.number, field);
    if (field.number === 15 && field.bytes) {
      for (const status of fieldsOf(field.bytes)) if (status.number === 3 && status.value === 2n) failed = true;
    }
  }
  const parent = hexOf(of.get(4)?.bytes);
  return {
    name: textOf(of.get(5)?.bytes),
    trace: hexOf(of.get(1)?.bytes),
    span: hexOf(of.get(2)?.bytes),
    ...(parent !== '' && { parent }),
    start: of.get(7)?.value ?? 0n,
    end: of.get(8)?.value ?? 0n,
    attributes: attributesIn(message, 9),
    ...(service !== undefined && { service }),
    failed,
  };
}

function attributesIn(message: Uint8Array, number: number): Map<string, Attribute> {
  const attributes = new Map<string, Attribute>();
  for (const field of fieldsOf(message)) {
    if (field.number !== number || field.bytes === undefined) continue;
    let key = '';
    let value: Attribute | undefined;
    for (const part of fieldsOf(field.bytes)) {
      if (part.number === 1) key = textOf(part.bytes);
      else if (part.number === 2 && part.bytes) value = attributeOf(part.bytes);
    }
    if (key !== '' && value !== undefined) attributes.set(key, value);
  }
  return attributes;
}

function attributeOf(message: Uint8Array): Attribute | undefined {
  for (const { number, bytes, value } of fieldsOf(message)) {
    if (number === 1 && bytes !== undefined) return textOf(bytes);
    if (value === undefined) continue;
    if (number === 2) return value !== 0n;
    if (number === 3) return Number(BigInt.asIntN(64, value));
    if (number === 4) return asDouble(value);
  }
  return undefined; // a list, a map, bytes
}

const serviceOf = (attributes: ReadonlyMap<string, Attribute>): string | undefined => {
  const name = attributes.get('service.name');
  return typeof name === 'string' && name !== '' ? name : undefined;
};

/** @throws InputError where it is no ExportTraceServiceRequest. */
export function spansOfJson(body: string): Span[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch (error) {
    throw new InputError(`the body is no JSON: ${messageOf(error)}`, { cause: error });
  }
  const request = record(parsed);
  const resources = request?.resourceSpans;
  if (!Array.isArray(resources)) throw new InputError('the body is no OTLP trace request: it has no resourceSpans');
  return resources.flatMap((resource) => {
    const service = serviceOf(jsonAttributes(record(record(resource)?.resource)?.attributes));
    return list(record(resource)?.scopeSpans).flatMap((scope) =>
      list(record(scope)?.spans).flatMap((span) => jsonSpan(record(span), service)),
    );
  });
}

const record = (x: unknown): Record<string, unknown> | undefined =>
  typeof x === 'object' && x !== null && !Array.isArray(x) ? (x as Record<string, unknown>) : undefined;
const list = (x: unknown): readonly unknown[] => (Array.isArray(x) ? x : []);
const string = (x: unknown): string => (typeof x === 'string' ? cut(x) : '');

function jsonSpan(span: Record<string, unknown> | undefined, service: string | undefined): Span[] {
  if (span === undefined) return [];
  const parent = string(span.parentSpanId);
  const code = record(span.status)?.code;
  return [
    {
      name: string(span.name),
      trace: string(span.traceId).toLowerCase(),
      span: string(span.spanId).toLowerCase(),
      ...(parent !== '' && { parent: parent.toLowerCase() }),
      start: nanos(span.startTimeUnixNano),
      end: nanos(span.endTimeUnixNano),
      attributes: jsonAttributes(span.attributes),
      ...(service !== undefined && { service }),
      failed: code === 2 || code === 'STATUS_CODE_ERROR',
    },
  ];
}

/** Nanoseconds are strings in JSON, being longer than a number holds. */
function nanos(x: unknown): bigint {
  if (typeof x === 'string' && /^\d{1,20}$/.test(x)) return BigInt(x);
  return typeof x === 'number' && Number.isSafeInteger(x) && x >= 0 ? BigInt(x) : 0n;
}

function jsonAttributes(x: unknown): Map<string, Attribute> {
  const attributes = new Map<string, Attribute>();
  for (const item of list(x)) {
    const key = string(record(item)?.key);
    const value = record(record(item)?.value);
    if (key === '' || value === undefined) continue;
    if (typeof value.stringValue === 'string') attributes.set(key, cut(value.stringValue));
    else if (typeof value.boolValue === 'boolean') attributes.set(key, value.boolValue);
    else if (typeof value.doubleValue === 'number') attributes.set(key, value.doubleValue);
    else if (typeof value.intValue === 'number') attributes.set(key, value.intValue);
    else if (typeof value.intValue === 'string' && /^-?\d{1,19}$/.test(value.intValue))
      attributes.set(key, Number(value.intValue));
  }
  return attributes;
}
