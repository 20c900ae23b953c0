/**
 * Checkpoints beside raw input and output, torch.save, torch DCP and safetensors, on the same bytes and interleaved in one run: only
 * ratios mean something. What each has written is read back and compared before anything is timed.
 *
 * Loading is dominated by memory: a page that is new to a process costs several times what copying into it does. So both sides load into
 * memory of one kind: new (each in a process of its own that has loaded nothing yet), reused (what was loaded before has been freed:
 * `dispose`, `del`), or that of a model which is there. The bound is on new and on reused memory.
 *
 * What a virtual machine's host has taken back costs ten times more again, at random: before new memory is measured, another process has
 * just had and left as much.
 *
 * Before each timed run of either side what it reads is in the page cache, which some machines clear of files after half a minute, and the
 * disk has nothing left to write, of what was removed either.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { boxesOf, planTensor } from "@opt/checkpoint/plan";
import { build } from "esbuild";
import { machine } from "../machine";
import { median } from "../measure";
import { type Talk, talkTo } from "../process-session";

const HELP = `OPT_TORCH_PYTHON=<python with torch> tsx --conditions=@opt/source tools/bench/checkpoint/checkpoint.ts [options]
  --mib <n>       size of the checkpoint (default 512: 128 tensors of 1024 x 1024 f32)
  --rounds <n>    interleaved rounds (default 7)
  --only <regex>  time only works whose names it matches (all are run once, to be compared)
  --device <name> where tensors are loaded to (default: the best there is)
safetensors takes part when that Python has it.`;

const { values: options } = parseArgs({
  options: {
    mib: { type: "string", default: "512" },
    rounds: { type: "string", default: "7" },
    only: { type: "string", default: "" },
    device: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const python = process.env.OPT_TORCH_PYTHON ?? "";
if (options.help || python === "") {
  console.log(HELP);
  process.exit(options.help ? 0 : 2);
}
const [mib, rounds] = [Number(options.mib), Number(options.rounds)];
const only = new RegExp(options.only);
const device = options.device ? { device: options.device } : {};

interface Answer {
  readonly works: readonly string[];
  readonly torch: string;
  readonly device: string;
  readonly isEqual: boolean;
  readonly milliseconds: number;
  /** Processor time of all threads, in milliseconds: what a busy machine changes least. */
  readonly cpu: number;
  /** MiB beyond what the process held before. */
  readonly peak: number;
}
type Who = Talk<Answer>;

const LEAVE = `
import mmap
memory = mmap.mmap(-1, ${3 * mib * 2 ** 20}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_HUGEPAGE)
for at in range(0, len(memory), 4096): memory[at] = 1`;

/** The disk rests. */
async function settle(): Promise<void> {
  spawnSync("sync", { stdio: "inherit" });
  await setTimeout(300); // blocks of removed files are discarded after the journal says so
}

const results = new Map<string, Answer[]>();

/** A timed run of a work. `isFresh`: the machine has memory that nobody uses, in pages of any size. */
async function run(who: Who, name: string, title = name, isFresh = false): Promise<void> {
  if (!only.test(title)) return;
  await who.ask({ command: "prepare", name });
  await settle();
  if (isFresh) spawnSync(python, ["-S", "-c", LEAVE], { stdio: "inherit" });
  const answer = await who.ask({ command: "run", name });
  results.set(title, [...(results.get(title) ?? []), answer]);
}

async function warm(who: Who, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await who.ask({ command: "prepare", name });
    await who.ask({ command: "run", name });
  }
}

// Where the device's package is found: without it the session would take another device, and no test would say so.
const workspace = fileURLToPath(new URL("../../../runs/bench/", import.meta.url));
mkdirSync(workspace, { recursive: true });
const folder = mkdtempSync(join(workspace, "checkpoint-"));
const program = join(folder, "session.mjs");
await build({
  entryPoints: [fileURLToPath(new URL("./checkpoint-session.ts", import.meta.url))],
  ...{ bundle: true, platform: "node", format: "esm", logLevel: "error" },
  conditions: ["@opt/source"],
  external: ["h5wasm"],
  outfile: program,
  // Some libraries still call require.
  banner: { js: 'import { createRequire as make } from "node:module"; const require = make(import.meta.url);' },
});

const SMALL = "100,000 tensors";
const FEW_ROUNDS = 3;
/** In the order of a round: who writes what another work reads comes first. */
const OURS = [
  ...["raw write + fsync", "save", "save, 4 ranks", "raw read"],
  ...["load as Tensors, reused memory", "load as Tensors, no checksums", "load into Tensors", "load, 4 ranks"],
  ...["verify", "merge", "reshard 4 to 2"],
];
const OURS_SMALL = [`${SMALL}, 4 ranks: save`, `${SMALL}, 4 ranks: load`, `${SMALL}: reshard 4 to 3`];
const ASYNC = "async save, until it returns";
/** What loads in a process of its own, under its name there. */
const NEW = { ours: "load as Tensors", theirs: "safetensors load_file, copied" };
/** Keeps what is freed, whatever its size: without it the C library gives some of it back. */
const REUSE = { MALLOC_MMAP_THRESHOLD_: `${32 << 20}`, MALLOC_TRIM_THRESHOLD_: `${2 ** 40}` };
/** Memory that is new to the process costs a fault for each page, twice the copy itself: both copies get the one kind, or the other. */
const KINDS = [
  { kind: "fresh", env: { MALLOC_MMAP_THRESHOLD_: "65536" } },
  { kind: "warm", env: REUSE },
] as const;
/** What others wrote and we can read. */
const CHECKED = ["one", "four", "two", "merged.safetensors", "torch.pt", "dcp", "st.safetensors"];

const opened: Who[] = [];
async function openSession(side: "ours" | "theirs", request: object, env: NodeJS.ProcessEnv = {}) {
  const theirProgram = fileURLToPath(new URL("./checkpoint_session.py", import.meta.url));
  const who: Who =
    side === "ours"
      ? talkTo(process.execPath, ["--expose-gc", program], env)
      : talkTo(python, ["-B", theirProgram], env);
  opened.push(who);
  return { who, about: await who.ask({ command: "open", folder, count: 0, ...device, ...request }) };
}

/** Each in a new process, closed again. */
async function runNew(side: "ours" | "theirs"): Promise<void> {
  const title = `${NEW[side]}, new memory`;
  if (!only.test(title)) return;
  const { who } = await openSession(side, {});
  await run(who, NEW[side], title, true);
  await who.close();
}

async function measureAll(): Promise<string> {
  const source = join(folder, "source.pt");
  const theirs = await openSession("theirs", { count: Math.ceil(mib / 4), source });
  const { who: ours, about } = await openSession("ours", { source });
  rmSync(source);
  const { works } = theirs.about;
  const reusing = works.includes(NEW.theirs) ? (await openSession("theirs", {}, REUSE)).who : undefined;
  // The first round warms up, and what it wrote is compared.
  await warm(theirs.who, works);
  await warm(ours, OURS);
  if (reusing) await warm(reusing, [NEW.theirs]);
  for (const name of CHECKED) {
    if (name === "st.safetensors" && !reusing) continue;
    const { isEqual } = await ours.ask({ command: "check", name });
    if (!isEqual) throw new Error(`${name} does not hold what was saved`);
  }
  for (let round = 0; round < rounds; round++) {
    for (const name of works) await run(theirs.who, name);
    for (const name of OURS) await run(ours, name);
    if (reusing) await run(reusing, NEW.theirs, `${NEW.theirs}, reused memory`);
    await runNew("ours");
    if (reusing) await runNew("theirs");
  }
  for (let round = 0; round < FEW_ROUNDS; round++) for (const name of OURS_SMALL) await run(ours, name);
  await ours.close();
  for (const { kind, env } of KINDS) {
    const { who } = await openSession("ours", { source: join(folder, "one") }, env);
    await warm(who, [`memory copy, ${kind}`, ASYNC]);
    for (let round = 0; round < rounds; round++) {
      await run(who, `memory copy, ${kind}`, undefined, kind === "fresh");
      await run(who, ASYNC, `${ASYNC}, ${kind}`, kind === "fresh");
    }
    await who.close();
  }
  return `${mib} MiB, ${rounds} rounds, Node ${process.version}, device ${about.device}, PyTorch ${theirs.about.torch}, ${machine()}`;
}

/** Planning alone: 4096 ranks to 3072, 2,000 tensors of 2,000 different shapes, every box of every rank. */
function planningSeconds(): number {
  const from = { mesh: { shape: [64, 64], axes: ["data", "model"] }, tensors: { "*": ["data", "model"] } };
  const to = { mesh: { shape: [48, 64], axes: ["data", "model"] }, tensors: { "*": ["data", "model"] } };
  const start = performance.now();
  let copies = 0;
  for (let i = 0; i < 2000; i++) {
    const tensor = { name: `tensor.${i}`, shape: [4096 + i, 8192] };
    for (const sources of planTensor(tensor, boxesOf(from, tensor), boxesOf(to, tensor))) copies += sources.length;
  }
  if (copies < 2000 * 3072) throw new Error("[bench] the plan is incomplete");
  return (performance.now() - start) / 1000;
}

const of = (name: string, what: "milliseconds" | "cpu" | "peak" = "milliseconds") =>
  median((results.get(name) ?? []).map((one) => one[what]));

/** What is divided by what, and what the ratio must not exceed. */
const RATIOS: readonly (readonly [ours: string, theirs: string, limit?: number])[] = [
  ["save", "safetensors save_file + fsync", 1.15],
  ["save", "raw write + fsync"],
  ["save", "torch.save + fsync"],
  ["save", "DCP save"],
  [`${NEW.ours}, new memory`, `${NEW.theirs}, new memory`, 1.5],
  [`${NEW.ours}, reused memory`, `${NEW.theirs}, reused memory`, 1.5],
  ["load into Tensors", "safetensors load_file + load_state_dict"],
  ["load as Tensors, reused memory", "safetensors load_file, touched"],
  ["load as Tensors, reused memory", "torch.load"],
  ["load into Tensors", "DCP load"],
  ["verify", "raw read"],
  ["merge", "DCP merge + fsync", 0.4],
  ["merge", "raw write + fsync"],
  [`${ASYNC}, fresh`, "memory copy, fresh", 1.2],
  [`${ASYNC}, warm`, "memory copy, warm", 1.2],
];

function report(title: string): void {
  const rows: (readonly [title: string, value: number, limit?: number])[] = [
    ...RATIOS.flatMap(([a, b, limit]) => [
      [`${a} / ${b}`, of(a) / of(b), limit] as const,
      ["  processor time", of(a, "cpu") / of(b, "cpu")] as const,
    ]),
    ["load as Tensors: peak / data", of("load as Tensors, new memory", "peak") / mib, 1.2],
    [`${OURS_SMALL[0]}, seconds`, of(OURS_SMALL[0]!) / 1000, 6],
    [`${OURS_SMALL[1]}, seconds`, of(OURS_SMALL[1]!) / 1000, 6],
    [`${OURS_SMALL[2]}, seconds`, of(OURS_SMALL[2]!) / 1000, 10],
    ["planning 4096 to 3072 ranks, 2,000 tensors, seconds", planningSeconds(), 5],
  ];
  console.log(`${title}\n`);
  for (const [name, runs] of results) {
    // Other programs only ever lengthen a run.
    const least = Math.min(...runs.map(({ milliseconds }) => milliseconds));
    const times = [of(name), least, of(name, "cpu")].map((time) => `${(time / 1000).toFixed(3)} s`);
    const peak = `peak +${of(name, "peak").toFixed(0)} MiB`;
    console.log(`${name.padEnd(50)} ${times[0]} (least ${times[1]}), processors ${times[2]}, ${peak}`);
  }
  console.log();
  for (const [name, value, limit] of rows.filter(([, value]) => !Number.isNaN(value)))
    console.log(`${name.padEnd(70)} ${value.toFixed(2)}${limit === undefined ? "" : ` (must hold: ${limit})`}`);
}

try {
  report(await measureAll());
} finally {
  await Promise.all(opened.map((who) => who.close()));
  rmSync(folder, { recursive: true, force: true });
}
