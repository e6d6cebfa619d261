/** One device's memory as a bar. */
import { kvPoolBytesPerDevice, RESERVES, weightBytesPerDevice } from '../../src/model/index.ts';
import type { Built } from '../simulate.ts';
import { figure } from '../words.ts';

export function Memory({ b: { on } }: { b: Built }) {
  const total = on.accelerator.memory;
  const weights = weightBytesPerDevice(on);
  const kv = Math.max(0, kvPoolBytesPerDevice(on));
  const parts: [string, number, string][] = [
    ['weights', weights, '--s-1'],
    ['KV pool', kv, '--c-good'],
    ['activations and runtime', RESERVES.other, '--s-4'],
    ['kept free', (1 - RESERVES.share) * total, '--line'],
  ];
  const gb = (x: number): string => `${figure(x / 1e9, 3)} GB`;
  return (
    <div class="cohort">
      <div
        class="bar"
        role="img"
        aria-label={`Memory of one device: ${parts.map(([n, x]) => `${n} ${gb(x)}`).join(', ')}`}
      >
        {parts.map(([name, x, c]) => (
          <span key={name} style={{ flexGrow: String(x), background: `var(${c})` }} title={`${name} ${gb(x)}`} />
        ))}
      </div>
      <p class="legend">
        {gb(total)} a device:{' '}
        {parts.map(([name, x, c]) => (
          <span key={name}>
            <i style={{ background: `var(${c})` }} />
            {name} {gb(x)}{' '}
          </span>
        ))}
        {weights > RESERVES.share * total - RESERVES.other && <strong>The weights do not fit.</strong>}
      </p>
    </div>
  );
}
