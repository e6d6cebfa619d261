/** What the engine model says at the same rates: dashed on the chart. It starts from what the run says of itself. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../../src/base/errors.ts';
import type { ProfileEngine } from '../../src/dashboard/profile.ts';
import type { Setting } from '../../src/dashboard/setting.ts';
import type { CurveDot, CurveSeries } from '../charts/curve.tsx';
import { source } from '../state.ts';

const REQUESTS = 600;
const BY_PROFILE = 'of the profile';

interface Names {
  readonly models: readonly string[];
  readonly gpus: readonly string[];
  /** The catalogue's name of a model as a server names it; undefined where it has none. */
  readonly canonical: (name: string) => string | undefined;
}

/** @param id the run it starts from. */
export function Predict(props: {
  id: string;
  series: readonly CurveSeries[];
  onDone: (s: CurveSeries | undefined) => void;
}) {
  const { id, series, onDone } = props;
  const [state, setState] = useState('');
  const [names, setNames] = useState<Names | undefined>(undefined);
  const [setting, setSetting] = useState<Setting | undefined>(undefined);
  const [profile, setProfile] = useState<ProfileEngine | undefined>(undefined);
  const stop = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  useEffect(() => {
    void import('../../src/model/index.ts').then((m) =>
      setNames({
        models: m.MODELS.map((x) => x.name).sort(),
        gpus: m.ACCELERATORS.map((a) => a.id).sort(),
        canonical: (name) => {
          try {
            return m.model(name).name;
          } catch {
            return undefined;
          }
        },
      }),
    );
  }, []);
  useEffect(() => {
    let stale = false;
    source.value.setting(id).then(
      (s) => !stale && setSetting(s),
      (e: Error) => !stale && setState(e.message),
    );
    return () => {
      stale = true;
    };
  }, [id]);
  const read = async (file: File | undefined): Promise<void> => {
    setProfile(undefined);
    if (!file) return;
    try {
      setProfile(await source.value.profile(await file.text()));
      setState('');
    } catch (e) {
      setState(`${file.name}: ${messageOf(e)}`);
    }
  };
  const run = (e: Event): void => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    const text = (name: string): string => String(form.get(name) ?? '');
    const rates = [...new Set(series.flatMap((s) => s.points.map((p) => p.rate)))].sort((a, b) => a - b);
    // Where few rates are known, the curve is drawn about them.
    const all = rates.length >= 5 ? rates : [0.4, 0.6, 0.8, 1, 1.2, 1.5, 2].map((f) => f * (rates.at(-1) as number));
    stop.current?.abort();
    const control = new AbortController();
    stop.current = control;
    const on = profile ? `profile ${profile.name}` : `${text('model')} on ${text('tp')} × ${text('gpu')}`;
    void (async () => {
      try {
        const [{ simulateRate }, { contractOf }] = await Promise.all([
          import('../simulate.ts'),
          import('../../src/core/contract.ts'),
        ]);
        const limits = Object.fromEntries(
          ['ttft', 'tpot'].flatMap((name) => (text(name) === '' ? [] : [[name, Number(text(name))]])),
        );
        const contract = contractOf(limits, { deadline: 60_000 });
        const engine = {
          model: text('model'),
          gpu: text('gpu'),
          tp: Number(text('tp')),
          kv: 'bf16' as const,
          basis: 'calibrated' as const,
          maxSeqs: 256,
          replicas: 1,
        };
        const dots: CurveDot[] = [];
        for (const [k, rate] of all.entries()) {
          setState(`simulating ${k + 1} of ${all.length}…`);
          const lengths = { input: Number(text('input')), output: Number(text('output')) };
          const ask = { engine: profile ?? engine, contract, ...lengths, rate, requests: REQUESTS, seed: 1 };
          dots.push(await simulateRate(ask, control.signal));
          onDone({ name: `model: ${on}`, color: '--muted', dashed: true, points: [...dots] });
        }
        setState(
          `${on}: ${profile ? 'step times of the profile' : 'step times calibrated on served measurements elsewhere'}; ${REQUESTS} simulated requests a rate, all of the mean length`,
        );
      } catch (error) {
        if ((error as Error).name !== 'AbortError') setState(messageOf(error));
      }
    })();
  };
  if (!names || (!setting && state === '')) return null;
  const model = setting?.model ? names.canonical(setting.model) : undefined;
  const gpu = names.gpus.find((g) => g === setting?.gpu);
  return (
    <section class="card wide" aria-label="Model prediction">
      <header>
        <h2>What the model predicts</h2>
      </header>
      <p class="note">
        {model && gpu
          ? `The run was made on ${model} on ${setting?.tp ?? 1} × ${gpu}, and so is the prediction, unless you choose otherwise.`
          : `The run does not say ${model ? 'on which accelerator' : setting?.model ? `a model that the catalogue knows ('${setting.model}')` : 'which model'} it was made${model ? '' : ' with'}: choose ${model ? 'it' : 'model and accelerator'}, or open a profile of it.`}
        {setting?.profile
          ? ` It was simulated with the profile '${setting.profile}': open its file to predict with it.`
          : ''}
      </p>
      <form class="terms" onSubmit={run} key={`${id} ${setting?.model}`}>
        <Pick name="model" off={profile !== undefined} options={names.models} value={model} />
        <Pick name="gpu" label="accelerator" off={profile !== undefined} options={names.gpus} value={gpu} />
        <Num name="tp" label="tensor parallel" value={setting?.tp ?? 1} off={profile !== undefined} />
        <div class="term">
          <label for="pick-profile" title="made by goodput calibrate; instead of model and accelerator">
            or a profile (YAML)
          </label>
          <input
            id="pick-profile"
            class="wide"
            type="file"
            accept=".yaml,.yml,.json"
            onChange={(e) => void read(e.currentTarget.files?.[0])}
          />
        </div>
        <Num name="input" label="input tokens" value={setting?.input ?? 512} />
        <Num name="output" label="output tokens" value={setting?.output ?? 128} />
        <Num name="ttft" label="TTFT ≤, ms" value={setting?.ttft} />
        <Num name="tpot" label="TPOT ≤, ms" value={setting?.tpot} />
        <button type="submit">Simulate at these rates</button>
      </form>
      <p class="note" role="status">
        {state}
      </p>
    </section>
  );
}

function Pick(props: {
  name: string;
  label?: string;
  options: readonly string[];
  value: string | undefined;
  off: boolean;
}) {
  const { name, options, value, off } = props;
  return (
    <div class="term">
      <label for={`pick-${name}`}>{props.label ?? name}</label>
      <select id={`pick-${name}`} name={name} required disabled={off}>
        {(value === undefined || off) && <option value="">{off ? BY_PROFILE : 'choose'}</option>}
        {options.map((o) => (
          <option key={o} selected={!off && o === value}>
            {o}
          </option>
        ))}
      </select>
    </div>
  );
}

function Num(props: { name: string; label: string; value: number | null | undefined; off?: boolean }) {
  const { name, label, value, off = false } = props;
  return (
    <div class="term">
      <label for={`num-${name}`}>{label}</label>
      <input
        id={`num-${name}`}
        name={name}
        type="number"
        min="0"
        step="any"
        placeholder="none"
        required={name !== 'ttft' && name !== 'tpot'}
        disabled={off}
        defaultValue={value === null || value === undefined ? '' : String(value)}
      />
    </div>
  );
}
