/** What the pages compute without a browser. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CONTRACT_DEFAULTS, type Contract } from '../../src/core/contract.ts';
import { parseContract } from '../../src/core/contract-file.ts';
import { ChunksBuilder, decodeChunks, encodeChunks, thin } from '../../src/dashboard/packed/index.ts';
import { quantile } from '../../src/stats/quantile.ts';
import { toldOf } from '../../ui/diagnosis/told.ts';
import { hashOf, parseHash } from '../../ui/hash.ts';
import { ecdf } from '../../ui/series.ts';
import { contractFile, moved, movedFromParams, paramsOfMoved, readMs } from '../../ui/what-if.ts';

const contract: Contract = { ...CONTRACT_DEFAULTS, name: 'own', limits: { ttft: 500, tpot: 50, smoothness: 0.9 } };

describe('a contract that is tried', () => {
  const terms = fc.record(
    {
      ttft: fc.option(fc.double({ min: 0.001, max: 1e5, noNaN: true })),
      gap: fc.option(fc.integer({ min: 1, max: 10_000 })),
      tpot: fc.option(fc.integer({ min: 1, max: 1000 })),
      deadline: fc.option(fc.integer({ min: 1, max: 100_000 })),
      attainment: fc.double({ min: 0.01, max: 1, noNaN: true }),
    },
    { requiredKeys: [] },
  );

  it('comes back from the address as it was', () => {
    fc.assert(
      fc.property(terms, (by) => {
        const tried = moved(contract, by);
        const params = Object.entries(paramsOfMoved(contract, tried)).filter(([, v]) => v !== undefined);
        const { params: read } = parseHash(hashOf('run', Object.fromEntries(params) as Record<string, string>), 'runs');
        expect(moved(contract, movedFromParams(read))).toEqual(tried);
      }),
    );
  });

  it('comes back from its file as it was', () => {
    fc.assert(
      fc.property(terms, (by) => {
        const tried = moved(contract, {
          ...by,
          deadline: 120_000,
          smoothness: null,
          tpot: 50,
          ttft: 500,
        });
        expect(parseContract(contractFile(tried), 'file')).toEqual(tried);
      }),
    );
  });

  it('reads times as people write them', () => {
    expect(['500', '500ms', '1.5 s', '2m', '250us', '', 'x', '-3'].map(readMs)).toEqual([
      500,
      500,
      1500,
      120_000,
      0.25,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('a distribution', () => {
  it('keeps both ends, rises, and is right at every point it keeps', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1e4, noNaN: true }), { minLength: 1, maxLength: 3000 }),
        (values) => {
          const sorted = Float64Array.from(values).sort();
          const { x, share } = ecdf(sorted, 100);
          expect(x[0]).toBe(sorted[0]);
          expect(x.at(-1)).toBe(sorted.at(-1));
          expect(share.at(-1)).toBe(1);
          x.forEach((v, k) => {
            const below = sorted.filter((s) => s < v).length;
            const upTo = sorted.filter((s) => s <= v).length;
            expect(share[k]! * sorted.length).toBeGreaterThan(below);
            expect(share[k]! * sorted.length).toBeLessThanOrEqual(upTo + 1e-6);
          });
        },
      ),
      { numRuns: 30 },
    );
    expect(quantile(ecdf(Float64Array.from({ length: 10_000 }, (_, i) => i)).x, 1)).toBe(9999);
  });
});

describe('thinned chunks', () => {
  it('keep of every row its ends and its largest gap, and every long gap while there is room', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 60 }), {
          minLength: 1,
          maxLength: 10,
        }),
        (list) => {
          const builder = new ChunksBuilder();
          const all = list.map((gaps, op) => {
            let t = 0;
            const at = gaps.map((g) => (t += g));
            builder.add(op, 0, at);
            return at;
          });
          const { chunks, kept, of } = thin(builder.finish(), 20, 1e9);
          expect(of).toBe(all.flat().length);
          expect(kept).toBe(chunks.us.length);
          const again = decodeChunks(encodeChunks(chunks).buffer);
          expect(again).toEqual(chunks);
          all.forEach((at, r) => {
            const row = [...chunks.us.subarray(r === 0 ? 0 : chunks.end[r - 1]!, chunks.end[r]!)].map((x) => x / 1000);
            expect(row[0]).toBe(at[0]);
            expect(row.at(-1)).toBe(at.at(-1));
            const gaps = at.slice(1).map((t, i) => t - at[i]!);
            const most = gaps.indexOf(Math.max(...gaps));
            if (most >= 0) expect(row).toEqual(expect.arrayContaining([at[most], at[most + 1]]));
            expect(at).toEqual(expect.arrayContaining(row));
          });
        },
      ),
      { numRuns: 100 },
    );
    const short = new ChunksBuilder();
    short.add(3, 10, [20, 30]);
    expect(thin(short.finish(), 10, 1)).toMatchObject({ kept: 2, of: 2 });
    expect(() => decodeChunks(new ArrayBuffer(3))).toThrow(/damaged/);
  });
});

describe('a diagnosis', () => {
  it('is read as it stands, and what is not there is not shown', () => {
    const told = toldOf({
      verdict: 'cause',
      causes: [
        {
          id: 'kv-pressure',
          confidence: 0.8,
          evidence: [{ text: 'KV 0.95', before: 0.5, after: 0.95 }, 'preemptions rose'],
        },
      ],
      attribution_ms: { queue: 800, prefill: 200, residual: -10 },
      ruled_out: [{ id: 'cold-start', why: 'the process is old' }],
      missing: ['GPU clocks'],
    });
    expect(told.total).toBe(990);
    expect(told.causes[0]).toMatchObject({
      title: 'kv pressure',
      evidence: [{ text: 'KV 0.95', before: 0.5, after: 0.95 }, { text: 'preemptions rose' }],
    });
    expect(told.ruledOut).toEqual(['cold-start: the process is old']);
    const ours = toldOf({
      schema: 'goodput.diagnosis/1',
      verdict: 'cause',
      summary: 'The queue grew.',
      causes: [
        {
          id: 'capacity',
          label: 'admission or capacity',
          confidence: 0.9,
          evidence: [
            {
              fact: 'queue',
              label: 'queue time',
              before: 120,
              after: 864,
              change: 7.2,
              low: 6.1,
              high: 8.4,
              kind: 'ratio',
              unit: 'ms',
              source: 'server-metrics',
              weight: 2,
            },
          ],
          against: [],
          knob: 'replicas',
          price: 'GPUs',
        },
      ],
      attribution_ms: { queue: 744, prefill: null, residual: 6 },
      attribution: { total: { value: 751, low: 700, high: 800 } },
      ruled_out: [
        {
          id: 'kv',
          label: 'KV pressure',
          because: [
            {
              label: 'KV usage',
              before: 0.4,
              after: 0.41,
              change: 0.01,
              kind: 'difference',
              unit: '',
              source: 'server-metrics',
            },
          ],
        },
      ],
      missing: [{ what: 'GPU clocks', side: 'after', decides: ['clocks'], how: 'scrape DCGM' }],
      what_would_fix: [{ cause: 'capacity', knob: 'replicas', simulated: true, text: 'two replicas bring TTFT back' }],
    });
    expect(ours.total).toBe(751);
    expect(ours.attribution).toEqual([
      { name: 'queue', ms: 744 },
      { name: 'residual', ms: 6 },
    ]);
    expect(ours.causes[0]).toMatchObject({ title: 'admission or capacity', knob: 'replicas' });
    expect(ours.causes[0]?.evidence[0]?.text).toBe('queue time: 120 → 864 ms, × 7.2 (6.1 to 8.4), server-metrics');
    expect(ours.ruledOut).toEqual(['KV pressure: KV usage: 0.4 → 0.41, by 0.01, server-metrics']);
    expect(ours.missing).toEqual(['GPU clocks (after), which decides clocks: scrape DCGM']);
    expect(ours.fixes).toEqual(['two replicas bring TTFT back']);
    expect(() => toldOf({})).toThrow(/verdict/);
    expect(() => toldOf(null)).toThrow(/verdict/);
  });
});
