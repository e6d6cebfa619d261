import { Key } from '../charts/controls.tsx';
import type { CurveSeries } from '../charts/curve.tsx';

/** Which colour is which series. */
export function Legend({ series }: { series: readonly CurveSeries[] }) {
  return (
    <span>
      {series.map((s) => (
        <Key key={s.name} color={s.color}>
          {s.name}
        </Key>
      ))}
    </span>
  );
}
