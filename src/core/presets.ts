/**
 * Contracts to start from, each with its reasons. The numbers are starting points with a public ground, not standards:
 * what your users put up with is yours to find out.
 */
import type { Share } from '../base/units.ts';
import { type Contract, contractOf, type LimitName, type Limits } from './contract.ts';

/** The three things a user of a language model waits for. */
export type Protection = 'first response' | 'smooth streaming' | 'completion deadline';

export const PRESET_NAMES = ['chat', 'voice', 'agent', 'completion', 'batch'] as const;
export type PresetName = (typeof PRESET_NAMES)[number];

export interface Preset {
  readonly contract: Contract;
  /** Who waits, and for what. */
  readonly who: string;
  readonly protects: readonly Protection[];
  /** What it leaves open on purpose, and why. */
  readonly leaves: string;
  /** Why each limit is what it is. */
  readonly why: Readonly<Partial<Record<LimitName, string>>>;
  readonly whyDeadline: string;
  readonly whyAttainment: string;
}

/** Published grounds, named in the reasons. */
export const SOURCES = {
  nielsen:
    'Nielsen, Usability Engineering (1993), ch. 5: 0.1 s feels instant, 1 s keeps the flow of thought, 10 s keeps attention',
  mlperf:
    'MLPerf Inference server limits at p99: Llama 2 70B TTFT 2 s, TPOT 200 ms; its interactive variant TTFT 450 ms, TPOT 40 ms',
  reading: 'Brysbaert (2019): adults read English silently at about 238 words a minute, 5 to 6 tokens a second',
  turns: 'Stivers et al. (2009), PNAS 106: the gap between turns of a conversation is about 0.2 s across ten languages',
  speech: 'conversational speech runs at about 150 words a minute, 3 to 4 tokens a second',
} as const;

export const PRESETS: Readonly<Record<PresetName, Preset>> = {
  chat: {
    contract: preset('chat', { ttft: 500, tpot: 50, gap: 1000 }, 30_000, 0.9),
    who: 'a person who reads the answer while it is written',
    protects: ['first response', 'smooth streaming'],
    leaves: 'How long a whole answer may take is left to the deadline: a longer answer is not a worse one.',
    why: {
      ttft: 'a first word within half a second stays well inside the 1 s that keeps the flow of thought (Nielsen), and is what MLPerf asks of interactive serving (450 ms)',
      tpot: '20 tokens a second is some four times silent reading speed (Brysbaert 2019), so that skimming never waits; MLPerf asks 40 ms of interactive serving, 200 ms else',
      gap: 'a stall of more than a second in mid-sentence is noticed as one (Nielsen), however good the mean',
    },
    whyDeadline: 'ends the wait for an answer that will not come',
    whyAttainment: 'nine of ten: a first target that a busy server can be held to; raise it as you learn',
  },
  voice: {
    contract: preset('voice', { ttfa: 400, tpot: 100, gap: 400 }, 15_000, 0.95),
    who: 'a person who listens to the answer spoken',
    protects: ['first response', 'smooth streaming'],
    leaves: 'The end of the answer: speech takes longer to play than to make.',
    why: {
      ttfa: 'people take turns within about 0.2 s (Stivers et al. 2009); recognition and synthesis take their own share, so 400 ms is already a pause. TTFA, not TTFT: reasoning is not spoken',
      tpot: '10 tokens a second is about three times the pace of speech, which leaves synthesis its lookahead',
      gap: 'a longer stall drains the audio already made and is heard as a stutter',
    },
    whyDeadline: 'nobody stays on a silent line longer',
    whyAttainment: 'a turn that fails is a dropped word in a conversation; nineteen of twenty must hold',
  },
  agent: {
    contract: preset('agent', { e2e: 30_000, tpot: 40 }, 60_000, 0.95),
    who: 'a program that acts on the whole answer, step after step',
    protects: ['completion deadline'],
    leaves: 'The first token: nobody watches it, and the next step starts at the last.',
    why: {
      e2e: 'the loop waits for the whole step; ten steps at this limit are five minutes',
      tpot: 'steps differ in length, so a limit a token keeps long ones honest where a limit a step cannot',
    },
    whyDeadline: 'twice the limit: a step that late has stalled the chain',
    whyAttainment: 'steps multiply: at 95 % a step, ten steps all hold 60 % of the time',
  },
  completion: {
    contract: preset('completion', { ttft: 400, latency: 1000 }, 5_000, 0.9),
    who: 'a person typing, who is offered the rest of the line',
    protects: ['first response', 'completion deadline'],
    leaves: 'The flow of tokens: the suggestion is shown whole.',
    why: {
      ttft: 'a server that has not begun by then will not be done in time; it also tells queueing from slow decoding',
      latency:
        'a suggestion is useful while the typist still thinks of that line: 1 s (Nielsen). The last token counts, not the end of the stream',
    },
    whyDeadline: 'the typist has moved on; a later answer is waste',
    whyAttainment: 'a missed suggestion costs little by itself',
  },
  batch: {
    contract: preset('batch', { e2e: 600_000 }, 600_000, 0.99),
    who: 'a job that reads the results when all are there',
    protects: ['completion deadline'],
    leaves: 'First response and smooth streaming: nobody is watching.',
    why: {
      e2e: 'one item must not hold up the job; ten minutes is a bound to edit, since only your job knows its own',
    },
    whyDeadline: 'the same ten minutes: past the limit there is nothing left to wait for',
    whyAttainment: 'each item that fails has to be run again by someone',
  },
};

function preset(name: string, limits: Limits, deadline: number, attainment: Share): Contract {
  return contractOf(limits, { name, deadline, attainment });
}
