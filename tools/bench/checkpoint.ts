/** Checkpoints beside raw input and output of the same bytes, and beside torch DCP, interleaved in one run: only ratios mean something. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { loadCheckpoint, mergeCheckpoint, reshardCheckpoint, saveCheckpoint, verifyCheckpoint } from "@opt/checkpoint";
import { planningSeconds } from "./checkpoint-plan";
import { type DcpSeconds, torchDcp } from "./checkpoint-torch";

const HELP = `tsx --conditions=@opt/source tools/bench/checkpoint.ts -- [options]
  --mib <n>       size of the checkpoint (default 256: 64 tensors of 1024 x 1024 f32 at 256)
  --rounds <n>    interleaved rounds (default 7)
  --folder <dir>  where to write (default runs/bench)
  --out <file>    JSON report (default runs/bench/checkpoint.json)
torch DCP takes part when OPT_TORCH_PYTHON names a Python that has torch.`;

const { values: options } = parseArgs({
  options: {
    mib: { type: "string", default: "256" },
    rounds: { type: "string", default: "7" },
    folder: { type: "string", default: "runs/bench" },
    out: { type: "string", default: "runs/bench/checkpoint.json" },
    help: { type: "boolean", default: false },
  },
});
if (options.help) {
  console.log(HELP);
  process.exit(0);
}

const count = Math.ceil(Number(options.mib) / 4);
const rounds = Number(options.rounds);
mkdirSync(options.folder, { recursive: true });
const folder = mkdtempSync(join(resolve(options.folder), "checkpoint-"));
const tensors = Object.fromEntries(
  Array.from({ length: count }, (_, i) => {
    const data = Float32Array.from({ length: 1 << 20 }, (_, k) => Math.sin(i * 7919 + k));
    return [`layer.${i}.weight`, { dtype: "f32", shape: [1024, 1024], data }];
  }),
);

async function rawWrite(path: string): Promise<void> {
  const file = await open(path, "w");
  for (const { data } of Object.values(tensors)) await file.write(new Uint8Array(data.buffer));
  await file.sync();
  await file.close();
}

async function rawRead(path: string): Promise<void> {
  const file = await open(path, "r");
  for (let i = 0; i < count; i++) await file.read(new Uint8Array(4 << 20), 0, 4 << 20, i * (4 << 20));
  await file.close();
}

const at = (name: string) => join(folder, name);
const layout = { mesh: { shape: [2, 2], axes: ["a", "b"] }, tensors: { "*": ["a", "b"] } };
const WORKS: Record<string, (round: number) => Promise<unknown>> = {
  "raw write + fsync": (round) => rawWrite(at(`raw-${round}`)),
  "save, 1 rank": (round) => saveCheckpoint(at(`one-${round}`), { step: 1, tensors }),
  "save, 4 ranks": (round) => saveCheckpoint(at(`four-${round}`), { step: 1, tensors }, { world: 4 }),
  "save, 4 ranks, 2x2": (round) => saveCheckpoint(at(`mesh-${round}`), { step: 1, tensors }, { layout }),
  "raw read": (round) => rawRead(at(`raw-${round}`)),
  "load, 1 rank": (round) => loadCheckpoint(at(`one-${round}`), { as: "plain" }),
  "load, 4 ranks": (round) => loadCheckpoint(at(`four-${round}`), { as: "plain" }),
  verify: (round) => verifyCheckpoint(at(`four-${round}`)),
  "merge, 4 ranks": (round) => mergeCheckpoint(at(`four-${round}`), at(`merged-${round}`)),
  "merge, 4 ranks, 2x2": (round) => mergeCheckpoint(at(`mesh-${round}`), at(`merged2-${round}`)),
  "reshard 4 to 2": (round) => reshardCheckpoint(at(`four-${round}`), at(`two-${round}`), { ranks: 2 }),
};

const seconds = new Map(Object.keys(WORKS).map((name) => [name, [] as number[]]));
const torch: DcpSeconds[] = [];
let torchReason: string | undefined;
try {
  for (let round = 0; round < rounds; round++) {
    for (const [name, work] of Object.entries(WORKS)) {
      const start = performance.now();
      await work(round);
      seconds.get(name)!.push((performance.now() - start) / 1000);
    }
    const dcp = torchReason === undefined ? torchDcp(at(`dcp-${round}`), count) : torchReason;
    if (typeof dcp === "string") torchReason = dcp;
    else torch.push(dcp);
    for (const name of ["raw", "one", "four", "mesh", "merged", "merged2", "two", "dcp"]) {
      rmSync(at(`${name}-${round}`), { recursive: true, force: true });
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

const median = (list: readonly number[]) => [...list].sort((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
// On a busy machine the quickest round is the one that was disturbed least.
const of = (name: string) => Math.min(...seconds.get(name)!);
const ratios: [string, number, number | undefined][] = [
  ["save, 1 rank / raw write + fsync", of("save, 1 rank") / of("raw write + fsync"), 1.3],
  ["save, 4 ranks / raw write + fsync", of("save, 4 ranks") / of("raw write + fsync"), 1.3],
  ["save, 4 ranks, 2x2 / raw write + fsync", of("save, 4 ranks, 2x2") / of("raw write + fsync"), undefined],
  ["merge, 4 ranks / raw write + fsync", of("merge, 4 ranks") / of("raw write + fsync"), 2],
  ["merge, 4 ranks, 2x2 / raw write + fsync", of("merge, 4 ranks, 2x2") / of("raw write + fsync"), 2],
  ["load, 1 rank / raw read", of("load, 1 rank") / of("raw read"), 1.5],
  ["load, 4 ranks / raw read", of("load, 4 ranks") / of("raw read"), 1.5],
  ["verify / raw read", of("verify") / of("raw read"), undefined],
];
if (torch.length > 0) {
  const dcp = Math.min(...torch.map(({ save, reshard }) => save + reshard));
  ratios.push(["reshard 4 to 2 / torch DCP save + load into 2", of("reshard 4 to 2") / dcp, 1]);
}
const planning = planningSeconds();
const report = {
  mib: count * 4,
  rounds,
  seconds: Object.fromEntries(
    [...seconds].map(([name, list]) => [name, { least: Math.min(...list), median: median(list) }]),
  ),
  torch:
    torch.length > 0
      ? { save: median(torch.map(({ save }) => save)), reshard: median(torch.map(({ reshard }) => reshard)) }
      : torchReason,
  ratios: Object.fromEntries(ratios.map(([name, ratio]) => [name, ratio])),
  planningSeconds: planning,
};
mkdirSync(dirname(options.out), { recursive: true });
writeFileSync(options.out, `${JSON.stringify(report, null, 2)}\n`);
for (const [name, list] of seconds)
  console.log(`${name.padEnd(46)} least ${Math.min(...list).toFixed(3)} s, median ${median(list).toFixed(3)} s`);
for (const [name, ratio, limit] of ratios)
  console.log(`${name.padEnd(46)} ${ratio.toFixed(2)}${limit === undefined ? "" : ` (must hold: ${limit})`}`);
console.log(`${"planning 4096 to 3072 ranks, 2,000 tensors".padEnd(46)} ${planning.toFixed(2)} s (must hold: 5 s)`);
if (torchReason !== undefined) console.log(`torch DCP skipped: ${torchReason}`);
