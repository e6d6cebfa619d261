/** `run.json`: what was asked, resolved. */
import { join } from 'node:path';
import { InputError, oneLine } from '../base/errors.ts';
import type { Contract } from '../core/contract.ts';
import { readJson } from './json.ts';
import { RUN_SCHEMA, type RunMeta, type StoredMeta } from './meta.ts';

export function metaToDisk(name: string, meta: RunMeta): object {
  const { epochWall, contract, ...rest } = meta;
  return {
    schema: RUN_SCHEMA,
    name,
    // The wall time twice: for people, and exactly.
    epoch: new Date(epochWall).toISOString(),
    epoch_unix_ms: epochWall,
    contract: { ...contract, deadline: Number.isFinite(contract.deadline) ? contract.deadline : null },
    ...rest,
  };
}

/** @throws InputError when the folder is not a run, its `run.json` is damaged, or it is of a later version than ours. */
export function readMeta(folder: string): StoredMeta {
  const shown = oneLine(folder);
  const disk = readJson(folder, 'run.json');
  if (!disk) {
    throw new InputError(`${shown}: is not a run folder (no run.json in it); give a folder that 'goodput bench' made`);
  }
  const path = oneLine(join(folder, 'run.json'));
  const version = /^goodput\.run\/(\d+)$/.exec(String(disk.schema));
  if (!version)
    throw new InputError(
      `${path}: schema is ${shownValue(disk.schema)}, expected '${RUN_SCHEMA}'; is it a goodput run?`,
    );
  if (disk.schema !== RUN_SCHEMA) {
    throw new InputError(
      `${path}: schema ${shownValue(disk.schema)} is newer than this version reads ('${RUN_SCHEMA}'); update goodput to read it`,
    );
  }
  const damaged = (key: string): InputError =>
    new InputError(
      `${path}: '${key}' is missing or damaged; restore the file from a copy, the rows beside it are untouched`,
    );
  const object = (key: string): Record<string, unknown> => {
    const value = disk[key];
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw damaged(key);
    return value as Record<string, unknown>;
  };
  const number = (key: string): number => {
    const value = disk[key];
    if (typeof value !== 'number' || !Number.isFinite(value)) throw damaged(key);
    return value;
  };
  const contract = object('contract');
  for (const key of ['limits', 'valid', 'cases']) {
    if (typeof contract[key] !== 'object' || contract[key] === null) throw damaged(`contract.${key}`);
  }
  if (contract.deadline !== null && typeof contract.deadline !== 'number') throw damaged('contract.deadline');
  if (typeof contract.attainment !== 'number') throw damaged('contract.attainment');
  if (contract.boundary !== 'scheduled' && contract.boundary !== 'dispatched') throw damaged('contract.boundary');
  const command = disk.command;
  return {
    schema: RUN_SCHEMA,
    name: typeof disk.name === 'string' ? disk.name : '',
    epochWall: number('epoch_unix_ms'),
    seed: number('seed'),
    contract: { ...contract, deadline: contract.deadline ?? Number.POSITIVE_INFINITY } as unknown as Contract,
    workload: object('workload'),
    target: object('target'),
    versions: object('versions') as Record<string, string>,
    machine: object('machine'),
    ...(Array.isArray(command) && { command: command.map(String) }),
  };
}

function shownValue(value: unknown): string {
  return value === undefined ? 'missing' : `'${oneLine(String(value), 40)}'`;
}
