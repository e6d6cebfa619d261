import { describe, expect, it } from 'vitest';
import { contractOf } from '../../core/contract.ts';
import { LATENCY_BOUNDS, METRICS, withLimit } from '../export/names.ts';
import { thresholds } from './burn-rate.ts';
import { capacityOf } from './capacity-of.ts';
import { grafanaDashboard } from './grafana.ts';
import { kedaScaledObject } from './keda.ts';
import { type AlertRule, RULE_DEFAULTS, ruleFile } from './rules.ts';

const shares = (target: number): number[] => thresholds(target).map((t) => t.badShare);

describe('burn-rate thresholds', () => {
  it('are the multiples of the budget where the budget can burn so fast', () => {
    expect(shares(0.999)).toEqual([0.0144, 0.006, 0.001]);
    expect(shares(0.95)).toEqual([0.72, 0.3, 0.05]);
    expect(thresholds(0.95).some((t) => t.capped)).toBe(false);
  });

  it('are capped where they could never be reached: 14.4x a budget of 10 % is 144 % bad', () => {
    expect(shares(0.9)).toEqual([0.55, 0.325, 0.1]);
    expect(shares(0.5)).toEqual([0.75, 0.625, 0.5]);
    expect(thresholds(0.9).map((t) => t.capped)).toEqual([true, true, false]);
  });

  it('never leave a threshold that all bad cannot pass, and never a slower alert above a faster one', () => {
    for (let target = 0.01; target < 1; target += 0.01) {
      const found = shares(target);
      expect(Math.max(...found)).toBeLessThan(1);
      expect([...found].sort((a, b) => b - a)).toEqual(found);
    }
  });

  it('refuse a target without a budget', () => {
    expect(() => thresholds(1)).toThrow(/no error budget/);
    expect(() => thresholds(0)).toThrow(/give one between/);
  });
});

describe('rules', () => {
  const contract = contractOf({ ttft: 400, tpot: 50 }, { name: 'chat', attainment: 0.99 });

  it('rest on counters that grow together, never on arrivals', () => {
    const alerts = ruleFile(contract).groups.flatMap((g) => g.rules);
    for (const rule of alerts) {
      if ('record' in rule && rule.record.startsWith('goodput:bad'))
        expect(rule.expr).not.toContain(METRICS.arrived.name);
    }
    const paging = alerts.filter((r): r is AlertRule => 'alert' in r);
    expect(paging.map((a) => a.labels.severity)).toEqual(['page', 'page', 'ticket']);
    for (const a of paging) expect(a.expr).toContain(`>= ${RULE_DEFAULTS.minBad}`);
  });

  it('size replicas only from a known capacity', () => {
    const records = (capacityPerReplica?: number): string =>
      JSON.stringify(ruleFile(contract, { ...RULE_DEFAULTS, ...(capacityPerReplica && { capacityPerReplica }) }));
    expect(records()).not.toContain('required_replicas');
    expect(records(12.5)).toContain('ceil(goodput:offered_rps:rate2m * 1.2 / 12.5)');
    expect(() => kedaScaledObject(contract, RULE_DEFAULTS)).toThrow(/--capacity/);
  });

  it('scale on what leads, never on goodput', () => {
    const scaled = JSON.stringify(kedaScaledObject(contract, { ...RULE_DEFAULTS, capacityPerReplica: 8 }));
    expect(scaled).toContain(METRICS.arrived.name);
    expect(scaled).toContain(METRICS.oldestWaiting.name);
    expect(scaled).not.toContain(METRICS.good.name);
  });
});

describe('the Grafana dashboard', () => {
  const contract = contractOf({ ttft: 400 }, { name: 'Chat <b>', attainment: 0.9 });
  const board = grafanaDashboard(contract, RULE_DEFAULTS) as {
    uid: string;
    panels: { title: string; targets: { expr: string }[]; gridPos: { x: number; y: number } }[];
  };

  it('asks only for series that are exposed or recorded', () => {
    const known = new Set(Object.values(METRICS).map((m) => m.name as string));
    for (const { expr } of board.panels.flatMap((p) => p.targets)) {
      for (const [name] of expr.matchAll(/(?<![:a-z_])goodput_[a-z0-9_]+/g))
        expect(known).toContain(name.replace(/_bucket$/, ''));
    }
    expect(board.uid).toMatch(/^goodput-[a-z0-9-]+$/);
  });

  it('has panels of numbers of their own, each with a query, an id a query and the data source the reader chose', () => {
    const whole = board as unknown as {
      schemaVersion: number;
      templating: { list: { name: string; type: string }[] };
      panels: { id: number; type: string; datasource: { uid: string }; targets: { refId: string; expr: string }[] }[];
    };
    expect(whole.schemaVersion).toBe(39);
    expect(whole.templating.list.map((v) => v.name)).toEqual(['datasource', 'class']);
    expect(new Set(whole.panels.map((p) => p.id)).size).toBe(whole.panels.length);
    for (const { type, datasource, targets } of whole.panels) {
      expect(type).toBe('timeseries');
      expect(datasource.uid).toBe('$datasource');
      expect(targets.length).toBeGreaterThan(0);
      expect(new Set(targets.map((t) => t.refId)).size).toBe(targets.length);
      for (const { expr } of targets) {
        const variables = [...expr.matchAll(/\$(\w+)/g)].map((m) => m[1]);
        for (const name of variables) expect(['class', '__rate_interval']).toContain(name);
      }
    }
    expect(JSON.parse(JSON.stringify(board))).toEqual(board);
  });

  it('puts no two panels on one place', () => {
    const places = board.panels.map((p) => `${p.gridPos.x},${p.gridPos.y}`);
    expect(new Set(places).size).toBe(places.length);
  });
});

describe('capacityOf', () => {
  it('reads the lower end, of one replica', () => {
    const text = JSON.stringify({ schema: 'goodput.capacity/1', capacity: { low: 24, high: 26, confidence: 0.95 } });
    expect(capacityOf(text, 'c.json')).toBe(24);
    expect(capacityOf(text, 'c.json', 2)).toBe(12);
  });

  it('takes the best row of a plan', () => {
    const rows = [
      { gpus: null, rate: 0 },
      { gpus: 4, rate: 9.5 },
    ];
    expect(capacityOf(JSON.stringify({ schema: 'goodput.plan/1', rows }), 'p.json')).toBe(9.5);
  });

  it('refuses what holds none, in one line', () => {
    expect(() => capacityOf('{', 'c.json')).toThrow(/c\.json: is not JSON/);
    expect(() => capacityOf('{}', 'c.json')).toThrow(/neither a capacity nor a plan/);
    const none = JSON.stringify({ schema: 'goodput.capacity/1', capacity: { low: null, high: 1 } });
    expect(() => capacityOf(none, 'c.json')).toThrow(/found no rate inside the contract/);
  });
});

describe('withLimit', () => {
  it("puts the contract's limit among the bounds, in seconds", () => {
    expect(withLimit(LATENCY_BOUNDS, 400)).toContain(0.4);
    expect(withLimit([0.1, 0.4], 400)).toEqual([0.1, 0.4]);
    expect(withLimit([0.1], undefined)).toEqual([0.1]);
  });
});
