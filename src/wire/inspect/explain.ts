/** Why an event counted as output or did not, in words. */
import { oneLine } from '../../base/errors.ts';
import type { OutputPart, StreamEvent, Usage } from '../../core/stream.ts';
import type { Frame } from '../framing/frame.ts';
import { isObject, type Json, listOf, objectOf, textOf } from '../json.ts';

/** One sentence fragment; what is output comes first. */
export function explain(event: StreamEvent, frame: Frame | undefined): string {
  if (event.malformed !== undefined) return `cannot be read: ${event.malformed}`;
  const said: string[] = event.outputs.map((part) => explainPart(part));
  for (const finish of event.finishes ?? []) {
    const unseen = finish.unseenEndTokens ? ', and usage counts an end token that is not shown' : '';
    const choice = finish.choice > 0 ? ` of choice ${finish.choice}` : '';
    said.push(`finish${choice}: ${oneLine(finish.reason, 60)}${unseen}`);
  }
  if (event.error !== undefined) {
    const { code, type, message } = event.error;
    const words = [code, type && oneLine(type, 60)].filter((w) => w !== undefined && w !== '').join(' ');
    said.push(`error${words && ` ${words}`}: ${oneLine(message, 120)}`);
  }
  if (event.usage !== undefined) said.push(explainUsage(event.usage));
  if (event.terminal) said.push('terminal event');
  if (event.impliedEnd) said.push('clean end, in a dialect that marks none');
  if (event.outputs.length === 0 && !event.error && frame !== undefined) {
    const why = silence(frame);
    if (why !== undefined && said.length === 0) said.push(why);
    else if (why !== undefined && why !== NOTHING) said.unshift(why.replace(/: framing, not output$/, ''));
  }
  return said.join('; ');
}

function explainPart(part: OutputPart): string {
  const choice = part.choice > 0 ? ` of choice ${part.choice}` : '';
  const shown = part.text === undefined ? '' : ` ${JSON.stringify(oneLine(visible(part.text), 60))}`;
  if (part.kind === 'unclassified')
    return `output${choice} of an unknown kind in ${oneLine(part.field ?? '?', 60)}${shown}`;
  if (part.text === undefined) return `${part.kind}${choice} as token ids`;
  const blank = part.text.trim() === '' ? ' (white space is output)' : '';
  return `${part.kind}${choice}${shown}${blank}`;
}

/** Line breaks written out, so that a chunk of them can be seen. */
function visible(text: string): string {
  return text
    .replaceAll('\r', '␍')
    .replaceAll('\n', '␊')
    .replaceAll('\t', '␉')
    .replace(/^ +| +$/g, (s) => '·'.repeat(s.length));
}

function explainUsage(usage: Usage): string {
  const parts = [
    usage.input === undefined ? undefined : `${usage.input} in`,
    usage.output === undefined ? undefined : `${usage.output} out`,
    usage.reasoning === undefined ? undefined : `${usage.reasoning} of them reasoning`,
  ].filter((p) => p !== undefined);
  return `usage: ${parts.join(', ') || 'no counts'}`;
}

const NOTHING = 'nothing to show';

/** What an event without output is. */
function silence(frame: Frame): string | undefined {
  const data = frame.data.trim();
  if (data === '[DONE]' || data === '"[DONE]"') return 'end marker [DONE], which is not success';
  if (data === '') return 'no data';
  let json: unknown;
  try {
    json = JSON.parse(data);
  } catch {
    return frame.event === undefined ? undefined : `${oneLine(frame.event, 60)} event, not output`;
  }
  if (!isObject(json)) return undefined;
  if (json.prompt_progress !== undefined) return 'progress of the prompt, not output';
  const type = textOf(json.type) ?? frame.event;
  if (Array.isArray(json.choices)) return silentChoices(json);
  if (objectOf(json.token)?.special === true)
    return `special token ${JSON.stringify(oneLine(String(objectOf(json.token)?.text), 30))}, not output`;
  if (type !== undefined) return type === 'ping' ? 'ping' : `${oneLine(type, 60)}: framing, not output`;
  return NOTHING;
}

function silentChoices(json: Json): string {
  const choices = listOf(json.choices).filter(isObject);
  if (choices.length === 0) return isObject(json.usage) ? 'no choices, usage only' : 'no choices, not output';
  const choice = choices[0]!;
  const delta = objectOf(choice.delta) ?? objectOf(choice.message);
  if (delta === undefined && choice.text === undefined) return 'no delta, not output';
  const keys = Object.keys(delta ?? {}).filter((key) => delta?.[key] !== null && delta?.[key] !== '');
  if (keys.length === 0) return 'empty delta, not output';
  return keys.length === 1 && keys[0] === 'role'
    ? 'role only, not output'
    : `only ${keys.map((k) => oneLine(k, 30)).join(', ')}, not output`;
}
