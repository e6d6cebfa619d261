/** What the body of an error response says, in one line. */
import { oneLine } from '../base/errors.ts';

/** Most bytes of an error body that are kept and read. */
export const ERROR_BODY_BYTES = 65_536;

/**
 * The message inside a JSON error of any of the usual shapes, else the title of an HTML page, else the first line of
 * text; empty for an empty body. Cleaned and cut, not redacted.
 */
export function describeErrorBody(body: string, contentType: string): string {
  const text = body.trim();
  if (text === '') return '';
  if (isHtml(contentType, text)) {
    const title = htmlTitle(text);
    return title ? `HTML page titled '${title}'` : 'an HTML page';
  }
  const json = parseJson(text);
  if (json !== undefined) {
    const message = messageIn(json);
    return oneLine(message ?? text);
  }
  return oneLine(text.split(/\r?\n/, 1)[0] ?? '');
}

export function isHtml(contentType: string, text: string): boolean {
  return /\bhtml\b/i.test(contentType) || /^\s*(<!doctype html|<html[\s>])/i.test(text.slice(0, 256));
}

export function htmlTitle(text: string): string {
  const title = /<title[^>]*>([^<]{0,300})/i.exec(text)?.[1] ?? /<h1[^>]*>([^<]{0,300})/i.exec(text)?.[1] ?? '';
  return oneLine(title, 120);
}

/** JSON, or the first line or `data:` field of a stream that is JSON; undefined when neither is. */
function parseJson(text: string): unknown {
  for (const candidate of [text, text.replace(/^data:\s*/, '').split(/\r?\n/, 1)[0] ?? '']) {
    try {
      return JSON.parse(candidate);
    } catch {
      // not this one
    }
  }
  return undefined;
}

/**
 * `error.message` (OpenAI, Anthropic, Gemini), `message` (vLLM before 0.10, NIM), `error` (Ollama, TGI, Triton),
 * `detail` (FastAPI: text, or a list of validation errors), `error.details`, `errors[0]`.
 */
function messageIn(json: unknown, depth = 0): string | undefined {
  if (typeof json === 'string') return json === '' ? undefined : json;
  if (depth > 4 || typeof json !== 'object' || json === null) return undefined;
  if (Array.isArray(json)) return messageIn(json[0], depth + 1);
  const object = json as Record<string, unknown>;
  for (const key of ['error', 'message', 'detail', 'errors', 'msg', 'error_message', 'title']) {
    const message = messageIn(object[key], depth + 1);
    if (message !== undefined) {
      const where = key === 'msg' && Array.isArray(object.loc) ? ` (at ${object.loc.join('.')})` : '';
      return `${message}${where}`;
    }
  }
  return undefined;
}
