/** What a record may keep of a server's words: no key, and nothing that could be a prompt or an answer. */
import { oneLine } from '../../base/errors.ts';

/** Keys of known issuers, also when the server has masked their middle, and anything that follows `Bearer`. */
const KEY_LIKE =
  /\b(?:sk|pk|rk|gsk|hf|xai|nvapi|pplx|r8)[-_][\w*.•…-]{6,}|\bAIza[\w*-]{10,}|\bBearer\s+[\w*.~+/=-]{8,}/g;
/** Servers quote what was sent to them: quoted text longer than a name goes. */
const QUOTED = /'[^']{33,}'|"[^"]{33,}"|`[^`]{33,}`/g;

export function cleanDetail(text: string): string {
  return oneLine(text.replace(KEY_LIKE, '***').replace(QUOTED, "'…'"), 200);
}

/** Why a frame could not be understood, without the frame. */
export function withoutQuotes(reason: string): string {
  return reason.replace(/:? '.*$/s, '');
}
