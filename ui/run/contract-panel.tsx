/** The contract's terms to be typed, and contracts that were tried before. */
import { useEffect, useState } from 'preact/hooks';
import { type Contract, LIMIT_NAMES, type LimitName } from '../../src/core/contract.ts';
import type { Saved } from '../../src/dashboard/saved.ts';
import { contract, isWhatIf, judgement, move, own, reset, settle, source } from '../state.ts';
import { contractFile, readMs, TERMS } from '../what-if.ts';
import { LIMIT_HELP, LIMIT_WORDS, limitsText, percent, whole } from '../words.ts';

export function ContractPanel() {
  const c = contract.value;
  const base = own.value;
  if (!c || !base) return null;
  const j = judgement.value;
  return (
    <section class="card wide contract" aria-label="Contract">
      <header>
        <h2>
          Contract{' '}
          {isWhatIf.value ? <span class="badge what-if">what if</span> : <span class="badge">the run's own</span>}
        </h2>
        {isWhatIf.value && (
          <button type="button" onClick={reset}>
            Back to the run's own
          </button>
        )}
      </header>
      <div class="terms">
        {LIMIT_NAMES.filter((n) => n !== 'smoothness' || base.limits.smoothness !== undefined).map((name) => (
          <Term key={name} name={name} c={c} own={base} />
        ))}
        <Term name="deadline" c={c} own={base} />
        <Term name="attainment" c={c} own={base} />
      </div>
      <p class="note">
        Verdicts follow at once, from the stored requests. Empty takes a limit away.
        {j?.staleSmoothness
          ? ' Smoothness is kept as it was measured under the run’s own TTFT and TPOT limits; goodput report --slo measures it anew.'
          : ''}
        {isWhatIf.value && j && j.packed.classes.length > 1 ? ' It holds for all classes alike.' : ''}
        {isWhatIf.value && j ? (
          <span data-took={j.took.toFixed(1)}>
            {' '}
            {whole(j.packed.rows)} verdicts in {j.took.toFixed(0)} ms.
          </span>
        ) : null}
      </p>
      {source.value.kind === 'api' && <SavedContracts c={c} />}
      {source.value.kind === 'file' && isWhatIf.value && <Download c={c} />}
    </section>
  );
}

type TermName = LimitName | 'deadline' | 'attainment';

const termOf = (c: Contract, name: TermName): number | undefined =>
  name === 'deadline'
    ? Number.isFinite(c.deadline) && c.deadline !== null
      ? c.deadline
      : undefined
    : name === 'attainment'
      ? c.attainment
      : c.limits[name];

const isShare = (name: TermName): boolean => name === 'attainment' || name === 'smoothness';

function shown(name: TermName, value: number | undefined): string {
  if (value === undefined) return '';
  return isShare(name) ? percent(value) : value >= 1000 && value % 100 === 0 ? `${value / 1000} s` : `${value} ms`;
}

function Term({ name, c, own: base }: { name: TermName; c: Contract; own: Contract }) {
  const value = termOf(c, name);
  const [text, setText] = useState<string | undefined>(undefined);
  const [wrong, setWrong] = useState(false);
  const id = `term-${name}`;
  const take = (): void => {
    if (text === undefined) return;
    const trimmed = text.trim();
    if (trimmed === '' && name !== 'attainment') move({ [name]: null });
    else {
      const share = /^(\d+(?:\.\d+)?)\s*(%)?$/.exec(trimmed);
      const x = isShare(name)
        ? share
          ? Number(share[1]) / (share[2] || Number(share[1]) > 1 ? 100 : 1)
          : undefined
        : readMs(trimmed);
      if (x === undefined || (isShare(name) && x > 1) || (name === 'deadline' && x <= 0)) {
        setWrong(true);
        return;
      }
      move({ [name]: x });
    }
    setWrong(false);
    setText(undefined);
    settle();
  };
  const word = name === 'deadline' ? 'deadline' : name === 'attainment' ? 'target' : LIMIT_WORDS[name];
  const moved = termOf(base, name) !== value;
  return (
    <div class={`term${moved ? ' moved' : ''}`}>
      <label for={id} title={name === 'deadline' || name === 'attainment' ? undefined : LIMIT_HELP[name]}>
        {word} {name === 'smoothness' || name === 'attainment' ? '≥' : '≤'}
      </label>
      <input
        id={id}
        type="text"
        autocomplete="off"
        spellcheck={false}
        placeholder="none"
        aria-invalid={wrong}
        value={text ?? shown(name, value)}
        onInput={(e) => setText(e.currentTarget.value)}
        onBlur={take}
        onKeyDown={(e) => {
          if (e.key === 'Enter') take();
          else if (e.key === 'Escape') {
            setText(undefined);
            setWrong(false);
          } else if ((e.key === 'ArrowUp' || e.key === 'ArrowDown') && value !== undefined) {
            e.preventDefault();
            const by = (e.shiftKey ? 1.1 : 1.02) ** (e.key === 'ArrowUp' ? 1 : -1);
            setText(undefined);
            move({
              [name]: Math.min(isShare(name) ? 1 : Number.POSITIVE_INFINITY, Number((value * by).toPrecision(3))),
            });
            settle();
          }
        }}
      />
      {wrong && <span class="hint">{isShare(name) ? 'a share, like 90 %' : 'a time, like 500 ms or 1.5 s'}</span>}
    </div>
  );
}

function Download({ c }: { c: Contract }) {
  // Made when it is asked for: a limit is moved through hundreds of contracts.
  const download = (): void => {
    const a = document.createElement('a');
    a.href = URL.createObjectURL(new Blob([contractFile(c)], { type: 'application/json' }));
    a.download = 'contract.json';
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
  };
  return (
    <button type="button" onClick={download}>
      Download as a contract file
    </button>
  );
}

function SavedContracts({ c }: { c: Contract }) {
  const [saved, setSaved] = useState<Saved | undefined>(undefined);
  const [name, setName] = useState('');
  const [problem, setProblem] = useState('');
  useEffect(() => {
    source.value.saved().then(setSaved, (e: Error) => setProblem(e.message));
  }, []);
  const put = (contracts: Saved['contracts']): void => {
    // Read again first: another page may have saved meanwhile.
    source.value
      .saved()
      .then((now) => source.value.save({ ...now, contracts }))
      .then(
        (next) => {
          setSaved(next);
          setProblem('');
        },
        (e: Error) => setProblem(e.message),
      );
  };
  const list = saved?.contracts ?? [];
  const save = (e: Event): void => {
    e.preventDefault();
    const title = name.trim() || `what if ${list.length + 1}`;
    put([
      ...list.filter((x) => x.name !== title),
      { ...c, name: title, deadline: Number.isFinite(c.deadline) ? c.deadline : null },
    ]);
    setName('');
  };
  return (
    <div class="saved">
      {list.length > 0 && (
        <ul aria-label="Saved contracts">
          {list.map((s) => {
            const full = { ...s, deadline: s.deadline ?? Number.POSITIVE_INFINITY };
            return (
              <li key={s.name}>
                <button
                  type="button"
                  title={limitsText(full)}
                  onClick={() => {
                    const terms = Object.fromEntries(TERMS.map((t) => [t, termOf(full, t) ?? null]));
                    move(terms);
                    settle();
                  }}
                >
                  {s.name}
                </button>
                <button
                  type="button"
                  class="quiet"
                  aria-label={`Forget ${s.name}`}
                  onClick={() => put(list.filter((x) => x !== s))}
                >
                  ×
                </button>
              </li>
            );
          })}
        </ul>
      )}
      {isWhatIf.value && (
        <form onSubmit={save}>
          <label for="save-as" class="sr">
            Name of this contract
          </label>
          <input id="save-as" value={name} placeholder="name it" onInput={(e) => setName(e.currentTarget.value)} />
          <button type="submit">Save this contract</button> <Download c={c} />
        </form>
      )}
      {problem && <p class="warn">{problem}</p>}
    </div>
  );
}
