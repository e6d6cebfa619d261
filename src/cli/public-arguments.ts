/** The command line as it may be kept. */
import type { Cli } from './command.ts';

/** The command line without what may be secret: values of headers and bodies. */
export function publicArguments(_cli: Cli): string[] {
  const args = process.argv.slice(3);
  return args.map((arg, i) => {
    if (/^--?(header|body)$/.test(args[i - 1] ?? '')) return '…';
    if (/^--(header|body)=/.test(arg)) return `${arg.slice(0, arg.indexOf('='))}=…`;
    return /^[a-z]+:\/\//i.test(arg) ? redacted(arg) : arg;
  });
}

function redacted(url: string): string {
  try {
    const u = new URL(url);
    return `${u.protocol}//${u.host}${u.pathname}${u.search ? '?…' : ''}`;
  } catch {
    return '…';
  }
}
