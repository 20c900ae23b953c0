/** Real processes killed (SIGKILL) at random moments of real saves. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { bundled } from "@opt/testkit/bundled";
import { expect } from "vitest";
import { readManifest } from "../../src/format/manifest";
import { listSteps } from "../../src/format/steps";
import { loadCheckpoint } from "../../src/operations";
import { localFileSystem } from "../../src/platform/local";
import { verifyCheckpoint } from "../../src/read/verify";
import { Rendezvous } from "../../src/save/ranks/communicator";
import { saveCheckpoint } from "../../src/save/save";
import { random } from "../random";

/** A process that runs the program, once it has begun save number `saves`. */
async function start(
  program: string,
  args: readonly string[],
  saves: number,
  point?: Rendezvous,
): Promise<ChildProcess> {
  const stdio = ["ignore", "pipe", "inherit", "ipc"] as const;
  const child = spawn(process.execPath, [program, ...args], { stdio: [...stdio] });
  // Ranks exchange their messages through this process.
  child.on("message", async ({ rank, value }: { rank: number; value: unknown }) => {
    const all = await point!.exchange(rank, value);
    if (child.connected) child.send(all as never, () => {});
  });
  let begun = 0;
  for await (const text of child.stdout!.iterator({ destroyOnReturn: false })) {
    begun += String(text).split("saving").length - 1;
    if (begun >= saves) break;
  }
  child.stdout!.resume();
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

export interface KillCounts {
  readonly kills: number;
  /** Kills that left something unfinished: only those prove anything. */
  readonly unfinished: number;
  readonly latest: number;
}

/**
 * Kills saving processes again and again, all of them at once, and starts them anew: each time the newest step must
 * verify, load whole, be of one life, and never be an older one than before.
 */
async function killLoop(
  run: string,
  kills: number,
  begin: (life: number, saves: number) => Promise<readonly ChildProcess[]>,
): Promise<KillCounts> {
  const next = random(7);
  let latest = -1;
  let unfinished = 0;
  for (let life = 1; life <= kills; life++) {
    const children = await begin(life, 1 + (next() % 2));
    await new Promise((resolve) => setTimeout(resolve, next() % 400));
    await Promise.all(children.map(kill));
    const names = (await localFileSystem.list(run).catch(() => [])).map(({ name }) => name);
    if (names.some((name) => /\.tmp-/.test(name))) unfinished++;
    const newest = (await listSteps(localFileSystem, run).catch(() => [])).at(-1)?.step ?? -1;
    expect(newest).toBeGreaterThanOrEqual(latest);
    latest = newest;
    if (latest >= 0) await expectWhole(run);
  }
  expect(unfinished).toBeGreaterThan(kills / 20);
  expect(latest).toBeGreaterThan(0);
  // The next save that ends sweeps whatever the killed ones have left.
  await saveCheckpoint(run, { step: latest + 1, tensors: { w: { dtype: "U8", shape: [1], data: new Uint8Array(1) } } });
  const left = (await localFileSystem.list(run)).map(({ name }) => name).filter((name) => !/^step-\d+$/.test(name));
  expect(left).toEqual([]);
  for (const { path } of await listSteps(localFileSystem, run)) {
    const files = (await localFileSystem.list(path)).map(({ name }) => name);
    const { files: known } = await readManifest(localFileSystem, path);
    expect(files.sort()).toEqual(["manifest.json", ...known.map(({ name }) => name)].sort());
  }
  return { kills, unfinished, latest };
}

/** The newest step verifies, and every element of it says the life that its values say. */
async function expectWhole(run: string): Promise<void> {
  expect(await verifyCheckpoint(run)).toMatchObject({ ok: true });
  const { tensors, values } = await loadCheckpoint(run, { as: "plain" });
  const { buffer, byteOffset, byteLength } = tensors.w!.data;
  const lives = new Set(new Float64Array(buffer as ArrayBuffer, byteOffset, byteLength / 8));
  expect([...lives]).toEqual([Number(values.life)]);
}

/** How a process saves; `large`: files that are written past the system's cache. */
export type SaveMode = "sync" | "async" | "overwrite" | "large";

/** One process that saves as `mode` says. */
export async function killOneProcess(folder: string, kills: number, mode: SaveMode): Promise<KillCounts> {
  const [program] = await bundled(new URL("./endless-saves.ts", import.meta.url).pathname);
  const run = join(folder, mode);
  return killLoop(run, kills, async (life, saves) => [await start(program, [run, String(life), mode], saves)]);
}

/** Three processes that save together. */
export async function killRanks(folder: string, kills: number): Promise<KillCounts> {
  const [program] = await bundled(new URL("./endless-ranks.ts", import.meta.url).pathname);
  const run = join(folder, "ranks");
  return killLoop(run, kills, (life, saves) => {
    const point = new Rendezvous(3);
    return Promise.all([0, 1, 2].map((rank) => start(program, [run, String(rank), String(life)], saves, point)));
  });
}
