/** One figure, what it is, and what must be known beside it. */
export interface KpiProps {
  /** Tests know the figure by it. */
  readonly id?: string | undefined;
  readonly name: string;
  readonly value: string;
  readonly more: string;
  readonly tone?: 'good' | 'bad' | undefined;
}

export function Kpi(props: KpiProps) {
  return (
    <div class={`kpi ${props.tone ?? ''}`} data-kpi={props.id}>
      <span class="name">{props.name}</span>
      <span class="value">{props.value}</span>
      <span class="more">{props.more}</span>
    </div>
  );
}
