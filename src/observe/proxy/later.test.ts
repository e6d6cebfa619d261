import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Later } from './later.ts';

/** A loop by hand: what is scheduled waits for `turn`. */
function loop() {
  let due: (() => void)[] = [];
  return {
    schedule: (run: () => void) => void due.push(run),
    turn: () => {
      const now = due;
      due = [];
      for (const run of now) run();
      return now.length;
    },
  };
}

describe('what is done later', () => {
  it('comes in order and whole, however small the bounds and however slowly it is done', () => {
    const note = fc.oneof(
      { weight: 4, arbitrary: fc.array(fc.uint8Array({ maxLength: 9 }), { minLength: 1, maxLength: 3 }) },
      { weight: 2, arbitrary: fc.constant('do' as const) },
      { weight: 1, arbitrary: fc.constant('turn' as const) },
    );
    fc.assert(
      fc.property(
        fc.array(note, { maxLength: 80 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 2, max: 40 }),
        fc.integer({ min: 0, max: 3 }),
        (all, notes, bytes, tick) => {
          const { schedule, turn } = loop();
          let clock = 0;
          const later = new Later(
            () => (clock += tick),
            () => expect.fail('no note throws'),
            schedule,
            { notes, bytes },
          );
          const seen: string[] = [];
          const told: string[] = [];
          const sink = {
            read: (data: Buffer, t: number, written: number) => {
              if (data.length > 0) seen.push(`${t} ${written} ${data.toString('hex')}`);
            },
          };
          for (const [i, what] of all.entries()) {
            if (what === 'turn') turn();
            else if (what === 'do') {
              told.push(`do ${i}`);
              later.do(() => void seen.push(`do ${i}`));
            } else {
              // The very buffer is used again at once, as a connection's is.
              const read = Buffer.concat([Buffer.from('..'), ...what.flatMap((p) => [p, Buffer.from('-')])]);
              const ranges: number[] = [];
              let at = 2;
              for (const p of what) {
                ranges.push(at, at + p.length);
                at += p.length + 1;
              }
              const data = Buffer.concat(what).toString('hex');
              later.read(sink, read, ranges, ranges.length, i, i + 0.5);
              if (data !== '') told.push(`${i} ${i + 0.5} ${data}`);
              read.fill(0);
            }
            expect(later.waiting).toBeLessThanOrEqual(notes);
          }
          while (turn() > 0);
          expect(later.waiting).toBe(0);
          // A read larger than all room is told in pieces.
          expect(joined(seen)).toEqual(joined(told));
        },
      ),
    );
  });

  it('lets the loop look for input between slices, and loses only the note that throws', () => {
    const { schedule, turn } = loop();
    let clock = 0;
    let defects = 0;
    const later = new Later(
      () => (clock += 0.6),
      () => defects++,
      schedule,
    );
    const seen: number[] = [];
    for (let i = 0; i < 100; i++) {
      later.do(() => {
        if (i === 3) throw new Error('a defect');
        seen.push(i);
      });
    }
    expect(turn()).toBe(1);
    expect(seen).toEqual([]); // a burst: what follows it goes first
    expect(turn()).toBe(1);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.length).toBeLessThan(50);
    while (turn() > 0);
    expect(seen).toEqual(Array.from({ length: 100 }, (_, i) => i).filter((i) => i !== 3));
    expect(defects).toBe(1);
  });

  it('waits for a burst to pass, though not for ever', () => {
    const { schedule, turn } = loop();
    const later = new Later(() => 0, expect.fail, schedule);
    let done = 0;
    let turns = 0;
    while (done === 0 && turns < 1000) {
      for (let i = 0; i < 5; i++) later.do(() => done++);
      turn();
      turns++;
    }
    expect(turns).toBeGreaterThan(2);
    expect(turns).toBeLessThan(100);
  });

  it('is done at once when someone asks, notes made by notes included at the next turn', () => {
    const { schedule, turn } = loop();
    const later = new Later(() => 0, expect.fail, schedule, { notes: 2, bytes: 8 });
    const seen: string[] = [];
    later.do(() => {
      seen.push('a');
      later.do(() => void seen.push('c'));
    });
    later.do(() => void seen.push('b'));
    later.drain();
    expect(seen).toEqual(['a', 'b']);
    turn();
    expect(seen).toEqual(['a', 'b', 'c']);
  });
});

/** Consecutive data of one read as one. */
function joined(list: readonly string[]): string[] {
  const out: string[] = [];
  let last = '';
  for (const line of list) {
    const m = /^(\d\S* \d\S*) (.+)$/.exec(line);
    if (m !== null && m[1] === last) out.push(`${out.pop()}${m[2]}`);
    else out.push(line);
    last = m?.[1] ?? '';
  }
  return out;
}
