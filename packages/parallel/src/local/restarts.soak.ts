/**
 * Kills ranks at random moments, in training, saving and loading, and compares the words at the end with those of a run that nobody
 * killed. `npm run soak -- packages/parallel/src/local` (KILLS: how many, default 100).
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Launcher, localLauncher, runJob } from "../../testing/job";

const KILLS = Number(process.env.KILLS ?? 100);
const RANKS = 3;
/** Some for each life. */
const STEPS = 8 * KILLS;
const source = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
const IMPORTS = `import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { bitsOf, makeNet, optimizerOf } from ${source("../../testing/training.ts")};
import { DataParallel } from ${source("../data-parallel/data-parallel.ts")};
import { loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from ${source("../../../checkpoint/src/index.ts")};`;

/** Trains on until as many lives have been killed as are asked for. */
const program = (folder: string, kills: number) => `
const { rank, size } = communicator;
const path = ${JSON.stringify(folder)};
const lives = path + ".lives";
const count = existsSync(lives) ? readFileSync(lives, "utf8").length : 0;
const plan = await communicator.broadcast(rank === 0 ? { victim: Math.floor(Math.random() * size), after: Math.random() * 200 } : undefined);
if (count < ${kills} && plan.victim === rank) setTimeout(() => {
  appendFileSync(lives, "x");
  process.kill(process.pid, "SIGKILL");
}, plan.after);
const model = makeNet();
const parallel = new DataParallel(model, communicator);
const optimizer = optimizerOf({ algorithm: "NAdam", device: "js", steps: 1 }, model);
const loaded = await loadCheckpoint(path).catch((error) => error.code === "MISSING" ? null : Promise.reject(error));
if (loaded) {
  model.loadStateDict(Object.fromEntries(Object.keys(model.stateDict()).map((name) => [name, loaded.tensors[name]])));
  optimizer.loadStateDict(optimizerState(loaded));
}
const layout = { mesh: { shape: [size], axes: ["rank"] }, tensors: { "*": "replicate" } };
for (let step = (loaded?.step ?? 0) + 1; step <= ${STEPS}; step++) {
  const x = core.randn([5, 6], { generator: new core.Generator(100 * step + rank) });
  core.tidy(() => parallel.forward(x, true).pow(2).sum().backward());
  await parallel.sync();
  optimizer.step();
  optimizer.zeroGrad();
  const { tensors, values } = optimizerContents(optimizer.stateDict());
  const contents = { step, tensors: { ...model.stateDict(), ...tensors }, values };
  await saveCheckpoint(path, contents, { communicator, layout, keep: 2 });
}
// What is left to kill is killed before the job ends.
while (count < ${kills}) await sleep(50);
tell(await bitsOf(model, optimizer));`;

it(`${KILLS} kills leave the words of a run that was not interrupted`, { timeout: 3_600_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-kills-"));
  const restarting: Launcher = (size, file) => {
    const { command, args } = localLauncher(size, file);
    return { command, args: [args[0]!, "--restarts", String(KILLS + 10), ...args.slice(1)] };
  };
  try {
    const quiet = await runJob(RANKS, program(join(folder, "quiet"), 0), { imports: IMPORTS });
    expect([quiet.code, quiet.error]).toEqual([0, ""]);
    const path = join(folder, "killed");
    const killed = await runJob(RANKS, program(path, KILLS), {
      imports: IMPORTS,
      launcher: restarting,
      patience: 3_500_000,
    });
    const deaths = killed.error.split("was killed by SIGKILL; restart").length - 1;
    console.log(`${readFileSync(`${path}.lives`, "utf8").length} kills, ${deaths} restarts`);
    expect(killed.error.replace(/opt-run: rank \d of 3 was killed by SIGKILL; restart \d+ of \d+\n/g, "")).toBe("");
    expect(killed.code).toBe(0);
    expect(killed.told).toEqual(quiet.told);
    expect(deaths).toBe(KILLS);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
