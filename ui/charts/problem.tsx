/** What cannot be shown, and why. */
export function Problem({ what, why }: { what: string; why: string | undefined }) {
  return (
    <div class="problem" role="alert">
      <strong>{what}.</strong> {why}
    </div>
  );
}
