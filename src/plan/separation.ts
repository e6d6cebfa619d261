/** Which coefficients the data tell apart, and what is said of those they do not. */
import { trim } from '../base/units.ts';
import { COEFFICIENTS, type CoefficientName, type Form } from './form.ts';
import { conditioning, type Normal } from './least-squares.ts';

/** Beyond this the weakest direction is noise. */
const WORST_CONDITION = 150;

/**
 * Gives up columns until the rest can be told apart, and says what each stands for then.
 * @param context tokens of context of a typical decode, for the sentence.
 */
export function separate(
  form: Form,
  normal: Normal,
  context: number,
  worst = WORST_CONDITION,
): { use: boolean[]; condition: number; unseparated: string[] } {
  const scale = normal.scales();
  const use = form.columns.map((_, i) => scale[i]! > 0);
  const unseparated: string[] = [];
  for (const [i, name] of form.columns.entries()) {
    if (!use[i]) unseparated.push(`${name}: nothing in the data varies it; it is taken as 0 and not known`);
  }
  for (;;) {
    const { number, weakest } = conditioning(normal, use);
    if (number <= worst) return { use, condition: number, unseparated };
    const group = form.columns.filter((_, i) => use[i] && Math.abs(weakest[i]!) > 0.25);
    const dropped = form.giveUp.find((name) => group.includes(name) && group.length > 1);
    if (!dropped) return { use, condition: number, unseparated };
    use[form.columns.indexOf(dropped)] = false;
    const rest = group.filter((name) => name !== dropped);
    unseparated.push(sentence(dropped, rest, context));
  }
}

function sentence(dropped: CoefficientName, rest: readonly CoefficientName[], context: number): string {
  const where = COEFFICIENTS[dropped];
  let why = 'they change together in these data';
  if (dropped === 'sequence' || dropped === 'kv') {
    why = `a sequence held about ${trim(context, 3)} tokens of context throughout`;
  }
  return `${dropped} (${where.means}) is not separated from ${rest.join(' and ')}: ${why}; ${rest.join(' and ')} carries both, and holds where that stays so`;
}
