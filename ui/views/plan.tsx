/** What a model on an accelerator can do, and where the cliff is: the step-time model and the simulator, in the page. */
import { useMemo } from 'preact/hooks';
import { messageOf } from '../../src/base/errors.ts';
import { Problem } from '../charts/problem.tsx';
import { Answers } from '../plan/answers.tsx';
import { asked } from '../plan/asked.ts';
import { Form } from '../plan/form.tsx';
import { Stored } from '../plan/stored.tsx';
import { type Built, build } from '../simulate.ts';

export default function PlanView() {
  const a = asked();
  const key = JSON.stringify(a);
  const built = useMemo(() => {
    try {
      return { is: build(a) };
    } catch (error) {
      return { problem: messageOf(error) };
    }
  }, [key]);
  return (
    <div class="page">
      <header class="heading">
        <h1>Plan</h1>
        <p class="note">
          What could this model on that accelerator do? Below, a full batch that decodes: the longer its steps, the more
          tokens a second, until a step outlasts the TPOT limit and nothing is good any more. Computed in the page, by
          the code of goodput model and goodput simulate.
        </p>
      </header>
      <Form a={a} />
      {built.problem !== undefined ? (
        <Problem what="This cannot be built" why={built.problem} />
      ) : (
        <Answers a={a} b={built.is as Built} />
      )}
      <Stored />
    </div>
  );
}
