/**
 * `goodput merge` on 100 replicas of 2,000 series: the whole command, and reading + merging alone, in wall and in processor
 * time (another load on the machine lengthens the first alone).
 *
 *   node bench/observe/merge.mjs [dist] [replicas] [series]
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { replicaText } from './replicas.mjs';

const [dist = 'dist', replicas = '100', series = '2000'] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(resolve(dist), path)).href);
const { evidenceOf, mergeEvidence } = await load('observe/evidence/index.js');
const { readSources } = await load('observe/scrape/index.js');

/** Processor ms of children that have ended: Linux counts in hundredths of a second. */
function childCpu() {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
  return 10 * (Number(fields[13]) + Number(fields[14]));
}

const folder = mkdtempSync(join(tmpdir(), 'goodput-merge-'));
try {
  const results = [];
  for (const own of [false, true]) {
    const files = Array.from({ length: Number(replicas) }, (_, i) => {
      const file = join(folder, `${own ? 'pod' : 'same'}-${i}.txt`);
      writeFileSync(file, replicaText(i, { series: Number(series), ...(own && { pod: `vllm-${i}` }) }));
      return file;
    });
    const wall = [];
    const cpu = [];
    for (let k = 0; k < 5; k++) {
      const [t, c] = [performance.now(), process.cpuUsage()];
      const { sources } = await readSources(files, { isWindow: false });
      const document = mergeEvidence(evidenceOf(sources), { files: files.length, families: 0, unmapped: 0 });
      wall.push(performance.now() - t);
      const used = process.cpuUsage(c);
      cpu.push((used.user + used.system) / 1000);
      if (document.ttft.replicas < Number(replicas)) throw new Error('not all replicas were merged');
    }
    const command = [];
    const commandCpu = [];
    for (let k = 0; k < 3; k++) {
      const t = performance.now();
      const before = childCpu();
      const run = spawnSync(process.execPath, [join(resolve(dist), 'cli/main.js'), 'merge', '--json', ...files], {
        maxBuffer: 1 << 30,
      });
      if (run.status !== 0) throw new Error(String(run.stderr));
      command.push(performance.now() - t);
      commandCpu.push(childCpu() - before);
    }
    results.push({
      labels: own ? "a label of every replica's own" : 'the same labels',
      'read + merge, wall ms': { first: Math.round(wall[0]), best: Math.round(Math.min(...wall)) },
      'read + merge, processor ms': { first: Math.round(cpu[0]), best: Math.round(Math.min(...cpu)) },
      'command --json, wall ms': { best: Math.round(Math.min(...command)) },
      'command --json, processor ms, all threads': { best: Math.round(Math.min(...commandCpu)) },
    });
  }
  console.log(JSON.stringify({ replicas: Number(replicas), series: Number(series), results }, null, 2));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
