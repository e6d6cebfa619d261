import { describe, expect, it } from 'vitest';
import { describeErrorBody } from './error-body.ts';

describe('describeErrorBody', () => {
  it.each([
    ['{"error":{"message":"no such model","type":"x"}}', 'application/json', 'no such model'],
    ['{"object":"error","message":"too long","code":400}', 'application/json', 'too long'],
    ['{"error":"model not found"}', 'application/json', 'model not found'],
    ['{"detail":"Not Found"}', 'application/json', 'Not Found'],
    [
      '{"detail":[{"loc":["body","model"],"msg":"Field required"}]}',
      'application/json',
      'Field required (at body.model)',
    ],
    ['[{"error":{"code":400,"message":"API key not valid"}}]', 'application/json', 'API key not valid'],
    ['{"code":7}', 'application/json', '{"code":7}'],
    ['data: {"error":{"message":"queue is full"}}\n\n', 'text/event-stream', 'queue is full'],
    ['<!DOCTYPE html><head><title>502 Bad\nGateway</title>', 'text/html', "HTML page titled '502 Bad Gateway'"],
    ['<html><body>hm', 'text/plain', 'an HTML page'],
    ['upstream timed out\nmore', 'text/plain', 'upstream timed out'],
    ['evil \u001b[31mred', 'text/plain', 'evil ·[31mred'],
    ['', 'text/plain', ''],
  ])('%s', (body, type, said) => {
    expect(describeErrorBody(body, type)).toBe(said);
  });

  it('does not follow deep nesting without end', () => {
    const nested = `${'{"error":'.repeat(50)}"x"${'}'.repeat(50)}`;
    expect(describeErrorBody(nested, 'application/json')).toContain('{"error"');
  });
});
