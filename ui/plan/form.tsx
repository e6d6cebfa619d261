/** The deployment and the traffic, to be chosen. */
import { ACCELERATORS, MODELS } from '../../src/model/index.ts';
import { adjust } from '../route.ts';
import { type Asked, DTYPES } from './asked.ts';

export function Form({ a }: { a: Asked }) {
  const pick = (name: string, label: string, value: string, options: readonly (readonly [string, string])[]) => (
    <div class="term">
      <label for={`plan-${name}`}>{label}</label>
      <select id={`plan-${name}`} value={value} onChange={(e) => adjust({ [name]: e.currentTarget.value })}>
        {options.map(([v, word]) => (
          <option value={v} key={v}>
            {word}
          </option>
        ))}
      </select>
    </div>
  );
  const number = (name: string, label: string, value: number, step = 1) => (
    <div class="term">
      <label for={`plan-${name}`}>{label}</label>
      <input
        id={`plan-${name}`}
        type="number"
        min={step}
        step="any"
        value={Number.isNaN(value) ? '' : value}
        placeholder="none"
        onInput={(e) => adjust({ [name]: e.currentTarget.value === '' ? 'none' : e.currentTarget.value })}
      />
    </div>
  );
  const same = (list: readonly string[]) => list.map((x) => [x, x] as const);
  return (
    <section class="card wide" aria-label="Deployment">
      <div class="terms">
        {pick('model', 'model', a.model, same(MODELS.map((m) => m.name).sort()))}
        {pick('gpu', 'accelerator', a.gpu, same(ACCELERATORS.map((x) => x.id).sort()))}
        {pick('tp', 'tensor parallel', String(a.tp), same(['1', '2', '4', '8', '16']))}
        {pick('weights', 'weights', a.weights ?? '', [['', 'as published'], ...same(DTYPES)])}
        {pick('kv', 'KV cache', a.kv, same(['bf16', 'fp8']))}
        {number('context', 'context, tokens', a.context)}
        {number('output', 'output, tokens', a.output)}
        {number('tpot', 'TPOT ≤, ms', a.tpot, 0.1)}
        {pick('basis', 'step times', a.basis, [
          ['calibrated', 'calibrated'],
          ['ideal', 'ideal'],
        ])}
      </div>
    </section>
  );
}
