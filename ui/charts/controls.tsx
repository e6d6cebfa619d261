/** Small parts that several pages share. */
import { adjust } from '../route.ts';

/** What a colour on a chart means. */
export function Key(props: { color: string; children: preact.ComponentChildren }) {
  return (
    <span class="key">
      <i style={{ background: `var(${props.color})` }} />
      {props.children}
    </span>
  );
}

/** A choice kept in the address; it starts the rows anew. */
export function Select(props: {
  name: string;
  label: string;
  value: string;
  all: string;
  options: readonly (readonly [string, string])[];
}) {
  return (
    <label>
      {props.label}{' '}
      <select
        name={props.name}
        value={props.value}
        onChange={(e) =>
          adjust({ [props.name]: e.currentTarget.value || undefined, first: undefined, from: undefined, to: undefined })
        }
      >
        <option value="">{props.all}</option>
        {props.options.map(([value, word]) => (
          <option value={value} key={value}>
            {word}
          </option>
        ))}
      </select>
    </label>
  );
}
