/** What capacity really is: the rate at which the long-run attainment crosses the target, from a million requests a rate. */
import { load } from './dist.mjs';
import { REGIMES } from './regimes.mjs';

const { probeOf } = await load('plan/probe.js');

const TARGET = 0.9;
/** Runs a rate's requests are cut into, each warmed up: their spread gives the error of the truth. */
const PARTS = 10;
const WARMUP = 20_000;

const logit = (p) => Math.log(p / (1 - p));

function attainment(regime, rate, requests, salt) {
  const shares = Array.from({ length: PARTS }, (_, i) => {
    const request = {
      rate,
      seed: 900_000 + salt * 1000 + i,
      requests: requests / PARTS,
      warmup: WARMUP,
      role: 'confirm',
      why: '',
    };
    return probeOf(regime.target, request).attainment;
  });
  const mean = shares.reduce((a, b) => a + b, 0) / PARTS;
  const sd = Math.sqrt(shares.reduce((a, b) => a + (b - mean) ** 2, 0) / (PARTS - 1));
  return { rate, attainment: mean, error: sd / Math.sqrt(PARTS), requests };
}

/** @returns {{ capacity: number, error: number, points: object[], busy: number | null }} error: standard error, relative. */
export function truthOf(name, requests) {
  const regime = REGIMES[name];
  let [low, high] = regime.around;
  let salt = 0;
  while (high / low > 1.03) {
    const rate = Math.sqrt(low * high);
    if (attainment(regime, rate, 50_000, salt++).attainment >= TARGET) low = rate;
    else high = rate;
  }
  // Two rates about the knee by a million requests each, and the crossing between them by log-odds.
  const middle = Math.sqrt(low * high);
  const a = attainment(regime, middle / 1.01, requests, salt++);
  const b = attainment(regime, middle * 1.01, requests, salt++);
  const slope = (logit(a.attainment) - logit(b.attainment)) / Math.log(b.rate / a.rate);
  const capacity = a.rate * Math.exp((logit(a.attainment) - logit(TARGET)) / slope);
  const check = attainment(regime, capacity, requests, salt++);
  const per = slope * TARGET * (1 - TARGET);
  return {
    capacity: capacity * Math.exp((check.attainment - TARGET) / per),
    error: check.error / per,
    points: [a, check, b],
  };
}
