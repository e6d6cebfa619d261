import { expect, it } from 'vitest';
import { traceContext } from './trace.ts';

it('reads a trace context as the recommendation says', () => {
  const id = '0af7651916cd43dd8448eb211c80319c';
  const span = 'b7ad6b7169203331';
  expect(traceContext(`00-${id}-${span}-01`)).toEqual({ traceId: id, parentId: span, sampled: true });
  expect(traceContext(`cc-${id}-${span}-00-what`)?.sampled).toBe(false);
  for (const bad of [undefined, '', `ff-${id}-${span}-01`, `00-${'0'.repeat(32)}-${span}-01`, `00-${id}-${span}-01-x`])
    expect(traceContext(bad)).toBeUndefined();
});
